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
// context must outlive this object, and the calls in its stages must end before it. Loop's thread
// only.
class DoorHosting {
 public:
  using MakeAccess = std::function<std::unique_ptr<RuntimeAccess>()>;

  // Each user gets an access of its own, so that its calls do not wait for those of others.
  DoorHosting(const DoorContext& context, HookHostingOptions hooks,
              const std::optional<NriHostingOptions>& nri, const MakeAccess& make_access)
      : clock_(context.loop),
        access_(make_access()),
        inventory_(clock_, *access_),
        hooks_(context, inventory_, std::move(hooks)) {
    if (nri) nri_.emplace(context, make_access(), inventory_, *nri);
  }

  void Start() {
    hooks_.Start();
    if (nri_) nri_->Start();
  }
  void Configure(const Config& config) {
    hooks_.Configure(config.hooks);
    if (nri_) nri_->Configure(config.nri);
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
  LoopClock clock_;
  const std::unique_ptr<RuntimeAccess> access_;  // for the inventory
  Inventory inventory_;
  std::optional<NriHosting> nri_;
  HookHosting hooks_;
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

// A runtime client that also reports each update by the brain that the runtime has accepted. Loop's
// thread only.
class UpdateTeller final : public RuntimeClient {
 public:
  using Told = std::function<void(const ContainerId& id, const ResourceValues& values)>;

  // `client` outlives this object. All that `told` uses must outlive the answers of `client`.
  UpdateTeller(RuntimeClient& client, Told told) : client_(client), told_(std::move(told)) {}

  void UpdateContainer(const ContainerId& id, const ResourceValues& adjustment,
                       std::function<void(Status)> done) override {
    client_.UpdateContainer(
        id, adjustment,
        [told = told_, id, adjustment, done = std::move(done)](const Status& status) {
          if (status.ok()) told(id, adjustment);
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
  const Told told_;
};

}  // namespace resmgr
