// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/config/config.h"
#include "pkg/model/problem.h"
#include "pkg/node/front_door.h"
#include "pkg/node/hook_hosting.h"
#include "pkg/node/nri_hosting.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/runtime/inventory.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {

// The inventory of a front door, and the hook servers and NRI plugins that it hosts. All of the
// context and the door must outlive this object, and the calls in its stages must end before it.
// Loop's thread only.
class DoorHosting {
 public:
  using MakeAccess = std::function<std::unique_ptr<RuntimeAccess>()>;

  // Each user gets an access of its own, so that its calls do not wait for those of others.
  DoorHosting(const DoorContext& context, FrontDoor& door, HookHostingOptions hooks,
              const std::optional<NriHostingOptions>& nri, const MakeAccess& make_access)
      : loop_(context.loop),
        door_(door),
        clock_(context.loop),
        access_(make_access()),
        inventory_(clock_, *access_),
        hooks_(context, inventory_, std::move(hooks)) {
    if (nri) nri_.emplace(context, make_access(), inventory_, *nri);
  }

  void Start() {
    hooks_.Start();
    if (nri_) nri_->Start();
    started_ = true;
    // In most cases a brain comes before the next turn of the loop.
    begin_ = loop_.After(std::chrono::milliseconds(0), [this] { Watch(); });
  }
  void Configure(const Config& config) {
    hooks_.Configure(config.hooks);
    if (nri_) nri_->Configure(config.nri);
    if (started_) Watch();
  }
  // Whether a brain has a link now, which reports the runtime's events and connections.
  void SetLinked(bool linked) {
    linked_ = linked;
    if (started_) Watch();
  }
  // A link has connected to a runtime, for the first time or again.
  void RuntimeConnected() {
    inventory_.RefreshSoon();
    if (nri_) nri_->RuntimeConnected();
  }
  // Tells the NRI plugins that the host ends, then runs `done`, once.
  void StopPlugins(std::function<void()> done) { nri_ ? nri_->Stop(std::move(done)) : done(); }

  std::vector<PluginView> plugins() const {
    std::vector<PluginView> all = hooks_.plugins();
    if (nri_) std::ranges::move(nri_->plugins(), std::back_inserter(all));
    return all;
  }
  std::vector<Problem> problems() const {
    std::vector<Problem> all = hooks_.problems();
    if (nri_) std::ranges::move(nri_->problems(), std::back_inserter(all));
    return all;
  }
  std::vector<SeenContainer> seen() const {
    std::vector<SeenContainer> all = hooks_.seen();
    return all.empty() && nri_ ? nri_->seen() : all;
  }
  Inventory& inventory() { return inventory_; }

 private:
  // Keeps a link of the door's own while plugins or servers are hosted and no brain has one: the
  // runtime may be replaced under the null policy, too.
  void Watch() {
    if (linked_ || !(nri_ || hooks_.serving())) return link_.reset();
    if (link_ != nullptr) return;
    link_ = door_.MakeLink();
    link_->Retire();
    link_->Connect({.connected = [] {},
                    .joined = [] {},
                    .disconnected = [] {},
                    .happened = [](const ContainerEvent&) {}});
  }

  EventLoop& loop_;
  FrontDoor& door_;
  bool started_ = false;
  bool linked_ = false;
  EventLoop::HandlePtr begin_;
  LoopClock clock_;
  const std::unique_ptr<RuntimeAccess> access_;  // for the inventory
  Inventory inventory_;
  std::optional<NriHosting> nri_;
  HookHosting hooks_;
  std::unique_ptr<BrainLink> link_;  // destroyed first
};

// Adds a problem if no process listens at the socket. Does not block.
inline void AddUnreached(std::string_view what, const std::string& socket,
                         std::vector<Problem>& all) {
  const Status reached = ConnectUnix(socket).status();
  if (reached.ok()) return;
  all.push_back({.kind = "runtime",
                 .message = fmt::format("the {} cannot be reached: {}", what, Message(reached)),
                 .objects = {socket},
                 .next = "ss -lx, which shows whether its socket is there"});
}

// A runtime client that also reports each update by the brain that the runtime has accepted to the
// door's inventory. Loop's thread only.
class UpdateTeller final : public RuntimeClient {
 public:
  // `client` outlives this object, and `hosting`, which is empty after the door's end, outlives the
  // answers of `client`.
  UpdateTeller(RuntimeClient& client, std::optional<DoorHosting>& hosting)
      : client_(client), hosting_(hosting) {}

  void UpdateContainer(const ContainerId& id, const ResourceValues& adjustment,
                       std::function<void(Status)> done) override {
    client_.UpdateContainer(
        id, adjustment,
        [&hosting = hosting_, id, adjustment, done = std::move(done)](const Status& status) {
          if (status.ok() && hosting) hosting->inventory().SetValues(id, adjustment);
          done(status);
        });
  }
  void ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) override {
    client_.ListAll(std::move(known), std::move(done));
  }
  bool ListsTellNews() const override { return client_.ListsTellNews(); }
  bool WritesNotedValues() const override { return client_.WritesNotedValues(); }
  bool StartsExited() const override { return client_.StartsExited(); }
  bool Renames() const override { return client_.Renames(); }

 private:
  RuntimeClient& client_;
  std::optional<DoorHosting>& hosting_;
};

}  // namespace resmgr
