// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/resmgr/cgroup_access.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/resmgr/state_writer.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// Sends the pusher's updates to the runtime: several of them together, and with the values that
// other programs have set, where the runtime would undo these. Loop's thread only.
class UpdateSender {
 public:
  struct Hooks {
    // An update was answered. Never called for updates from before a disconnection.
    std::function<void(ContainerKey key, const Status& status)> answered;
    // Returns the container whose update with this number is still to be sent; nullptr: it is not.
    std::function<ContainerRecord*(ContainerKey key, uint64_t update)> wanted;
  };

  // All references must outlive it; `others` may be null.
  UpdateSender(RuntimeClient& runtime, ContainerStore& store, StateWriter& state_writer,
               ValuesOfOthers* others, Hooks hooks);

  // Sends PushState::payload, at once or with the gathered ones.
  void Send(const ContainerRecord& record);
  // Between these calls, at most about `most` updates are only collected: SendGathered writes the
  // notes of all of them with one write, and then sends them.
  void BeginGathering(size_t most);
  void SendGathered();

  // Drops the answers that are still to come.
  void Disconnected();
  // Whether all updates since the last disconnection are answered.
  bool AllAnswered() const { return unanswered_ == 0; }
  // Calls `callback` unless the connection has been lost since, or this is gone.
  template <typename Callback>
  auto Guard(Callback callback) const {
    return connection_->Guard(std::move(callback));
  }

 private:
  // An update that waits until the values of other programs are looked up.
  struct LookedUp {
    ContainerKey key;
    uint64_t update;
  };
  // An update that is noted as open and not sent yet.
  struct Gathered {
    const Container* container;  // the record's container, which is not erased meanwhile
    std::shared_ptr<const ResourceValues> values;
  };

  void LookUp();
  void CallLookedUp(const std::vector<LookedUp>& updates, const ValuesOfOthers::Found& found);
  void Call(const Container& container, const ResourceValues& values);
  void CallGathered();
  void TakeAnswer(ContainerKey key, const Status& status);

  RuntimeClient& runtime_;
  ContainerStore& store_;
  StateWriter& state_writer_;
  ValuesOfOthers* const others_;
  const Hooks hooks_;
  size_t unanswered_ = 0;  // calls since the last disconnection
  bool gathering_ = false;
  std::vector<Gathered> gathered_;
  std::vector<LookedUp> to_look_up_;
  std::optional<Lifetime> connection_{std::in_place};  // a new one after each disconnection
};

}  // namespace resmgr
