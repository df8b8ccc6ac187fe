// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/resmgr/container_store.h"
#include "pkg/state/open_calls.h"
#include "pkg/state/state_store.h"

namespace resmgr {

// Brings what changed about containers to the durable state, and back after a restart. Without a
// state nothing comes back. Loop's thread only.
class Keeper {
 public:
  using Call = OpenCalls::Kind;

  Keeper(StateStore* state, const ContainerStore& store)
      : state_(state), store_(store), calls_(state == nullptr ? own_calls_ : state->open_calls()) {}

  // A container that has an id and is placed by the policy; others are not kept.
  void Keep(const ContainerRecord& record);
  void Forget(const ContainerId& id);
  // Everything was adopted that there is.
  void ForgetTheRest();

  // A call about the container is about to be sent; its outcome is known.
  void Begin(Call call, const ContainerId& id) { calls_.Begin(call, id); }
  void End(Call call, const ContainerId& id) { calls_.End(call, id); }
  bool IsOpen(Call call, const ContainerId& id) const { return calls_.Contains(call, id); }
  // Of a container that is new here: what a daemon before this one may have begun. Where its notes
  // are missing, any start.
  StartDoubt DoubtOfStart(const ContainerId& id) const {
    if (!calls_.complete()) return StartDoubt::kOutcomeAndCpus;
    return IsOpen(Call::kStart, id) ? StartDoubt::kOutcome : StartDoubt::kNone;
  }

  // What was kept of the container that the runtime reports; nullptr when nothing was.
  const SavedContainer* Find(const ContainerId& id) const;

 private:
  StateStore* const state_;
  const ContainerStore& store_;
  OpenCalls own_calls_;  // without a state
  OpenCalls& calls_;
};

}  // namespace resmgr
