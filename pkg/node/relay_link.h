// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/cri/backends.h"
#include "pkg/cri/runtime_clients.h"
#include "pkg/cri/runtime_connection.h"
#include "pkg/node/front_door.h"
#include "pkg/node/update_teller.h"

namespace resmgr {

// One brain's connections to the runtimes behind the relay: one to each, which the brain sees as
// one. It counts as connected while one of them is. When one is connected, all unconnected others
// are tried at once, and only then it is reported, so that the first list includes all running
// runtimes. Loop's thread only.
class RelayLink final : public BrainLink {
 public:
  using TakeList = RuntimeAccess::Done<RuntimeAccess::Everything>;
  struct Told {
    std::function<void()> connected{};  // called for each connection to a runtime
    std::function<void(const ContainerEvent&)> happened{};  // for events of the link itself
    // As RuntimeConnection::Events::listing, for a link to the only runtime.
    std::function<TakeList()> listing{};
    UpdateTeller::Told updated{};  // the runtime has carried out the brain's update
  };

  // Connects to the only runtime. `aliases` of its handlers, which outlive this object, may be
  // null.
  RelayLink(const DoorContext& context, const std::string& runtime_socket,
            const HandlerAliases* aliases, Told told);
  // Connects to all of these, which outlive this object.
  RelayLink(const DoorContext& context, Backends& backends, Told told);

  RuntimeClient& runtime() override { return *teller_; }
  void Connect(RuntimeEvents events) override;
  Status EnsureConnected() override;
  void Retire() override { LeaveEventsToClient(true); }

  // Whether clients' event streams provide the events, so that this link needs none of its own.
  void LeaveEventsToClient(bool leave);
  // Takes an event that a client got through the relay.
  void TellEvent(const ContainerEvent& event) {
    if (events_.happened) events_.happened(event);
  }
  // Takes a change by a call that the relay does not understand.
  void TellChange() {
    if (events_.changed) events_.changed();
  }

 private:
  // Runs attempt(runtime) for each connection, then reports the new ones.
  template <typename Attempt>
  void TryEach(const Attempt& attempt);
  void OnConnected(size_t runtime);
  void OnDisconnected(size_t runtime);

  const Told told_;
  const Backends* const backends_ = nullptr;  // set with several runtimes
  RuntimeEvents events_{};                    // set by Connect
  std::vector<std::unique_ptr<RuntimeConnection>> connections_;
  std::optional<RuntimeClients> clients_;  // set with several runtimes
  std::optional<UpdateTeller> teller_;     // in front of the runtimes
  bool trying_ = false;
  std::vector<size_t> came_;  // new ones of this TryEach
};

}  // namespace resmgr
