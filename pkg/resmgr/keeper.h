// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/resmgr/container_store.h"
#include "pkg/state/state_store.h"

namespace resmgr {

// Brings what changed about containers to the durable state, and back after a restart. Without a
// state it does nothing. Loop's thread only.
class Keeper {
 public:
  Keeper(StateStore* state, const ContainerStore& store) : state_(state), store_(store) {}

  // A container that has an id and is placed by the policy; others are not kept.
  void Keep(const ContainerRecord& record);
  void Forget(const ContainerId& id);
  // Everything was adopted that there is.
  void ForgetTheRest();

  // What was kept of the container that the runtime reports; nullptr when nothing was.
  const SavedContainer* Find(const ContainerId& id) const;

 private:
  StateStore* const state_;
  const ContainerStore& store_;
};

}  // namespace resmgr
