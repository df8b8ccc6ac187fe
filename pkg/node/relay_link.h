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
// one. It counts as connected while one of them is. When one comes, all others that are not there
// are tried at once, and only then it is told: so the first list lacks no runtime that is there.
// Loop's thread only.
class RelayLink final : public BrainLink {
 public:
  struct Told {
    std::function<void()> connected{};                      // for each connection to a runtime
    std::function<void(const ContainerEvent&)> happened{};  // that came to the link itself
    UpdateTeller::Told updated{};  // the runtime has done what the brain asked for
  };

  // To the only runtime. `aliases` of its handlers, which outlive this, may be null.
  RelayLink(const DoorContext& context, const std::string& runtime_socket,
            const HandlerAliases* aliases, Told told);
  // To all of these, which outlive it.
  RelayLink(const DoorContext& context, Backends& backends, Told told);

  RuntimeClient& runtime() override { return *teller_; }
  void Connect(RuntimeEvents events) override;
  Status EnsureConnected() override;
  void Retire() override { LeaveEventsToClient(true); }

  // Clients listen to the runtimes' events, and the relay tells them to us.
  void LeaveEventsToClient(bool leave);
  // A client got this event by the relay.
  void TellEvent(const ContainerEvent& event) {
    if (events_.happened) events_.happened(event);
  }
  // Likewise by a call that the relay does not understand.
  void TellChange() {
    if (events_.changed) events_.changed();
  }

 private:
  // Runs attempt(runtime) for each connection, then tells which ones came.
  template <typename Attempt>
  void TryEach(const Attempt& attempt);
  void OnConnected(size_t runtime);
  void OnDisconnected(size_t runtime);

  const Told told_;
  const Backends* const backends_ = nullptr;  // where there are several
  RuntimeEvents events_{};                    // once it connects
  std::vector<std::unique_ptr<RuntimeConnection>> connections_;
  std::optional<RuntimeClients> clients_;  // where there are several
  std::optional<UpdateTeller> teller_;     // before these
  bool trying_ = false;
  std::vector<size_t> came_;  // in this TryEach
};

}  // namespace resmgr
