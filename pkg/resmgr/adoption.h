// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/units.h"
#include "pkg/resmgr/applied_resources.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/resmgr/state_writer.h"
#include "pkg/resmgr/synchronizer.h"

namespace resmgr {

struct Adoption {
  // A container that the list shows exited (kEnded) or does not show any more (kRemoved).
  struct Ended {
    ContainerKey key{};
    LifeEvent event = LifeEvent::kEnded;
    std::string_view why;
  };

  // The values in force for each container that runs or may run, by ascending key. Without
  // those about which something happened after the list was asked for. CPUs on which no other
  // container runs count as exclusive: a container that they are granted to must wait until this
  // one has left them.
  std::vector<std::pair<ContainerKey, AppliedResources>> in_force;
  // Their records are as before: to end them is the caller's part.
  std::vector<Ended> ended;
  // Newly listed containers that run or may run, by ascending key.
  std::vector<ContainerKey> adopted;
  // Containers whose starts have a known outcome now.
  std::vector<ContainerKey> start_known;
  // Containers that run although no start of them was under way here, or only one that began at an
  // unknown time: updates that were sent before may have come too late for it.
  std::vector<ContainerKey> started_unseen;
  // Containers known by notes alone so far (ContainerRecord::kept), which the runtime now reports
  // for the first time.
  std::set<ContainerKey> kept_reported;
  // Containers for which this list is the first with the values in force since the runtime's last
  // update (NumbersSetLater::reported).
  std::vector<ContainerKey> first_reported;
  // Number of pods that are new here and whose QoS class was taken from the state, since the
  // runtime does not tell it.
  size_t classes_not_told = 0;
  // Containers with another name than at their creation, which was not known here.
  std::vector<ContainerKey> renamed;
  // Containers that are new here and of which nothing was kept, ascending.
  std::vector<ContainerKey> without_notes;
};

// Makes the store hold the pods and containers that the runtime listed. `since` is the store's
// clock when the list was asked for: later changes of a record overrule the list. A container whose
// creation is under way is left alone. A container that is new here gets the cpuset in force as its
// placement, with what `state_writer` kept of it, for the policy to confirm; if the list is unclear
// about it, the kept data is used, and without that it is not taken over yet. New ones are added in
// the order of their ids, so the same list gives the same keys.
Adoption Adopt(ContainerStore& store, const RuntimeInventory& inventory,
               const Synchronizer::Removed& gone, uint64_t since, Bytes memory_capacity,
               const StateWriter& state_writer);

// Forgets pod sandboxes that the list does not show, once their containers are erased.
void EraseUnlistedPods(ContainerStore& store, const RuntimeInventory& inventory, uint64_t since);

}  // namespace resmgr
