// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/units.h"
#include "pkg/resmgr/applied_resources.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/decider.h"
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

  // The values in force for each container that runs or may run, by ascending key; without
  // containers about which something happened after the list was asked for. CPUs on which no other
  // container runs count as exclusive, so that a container that gets these CPUs waits until this
  // one has left them.
  std::vector<std::pair<ContainerKey, AppliedResources>> in_force;
  // Containers that ended or are gone. Their records are unchanged: the caller ends them.
  std::vector<Ended> ended;
  // Newly listed containers that run or may run, by ascending key.
  std::vector<ContainerKey> adopted;
  // Containers with a start under way whose outcome this list shows.
  std::vector<ContainerKey> start_known;
  // Containers that run although no start of them was under way here, or only one that began at an
  // unknown time: updates that were sent before may have been too late for the start.
  std::vector<ContainerKey> started_unseen;
  // Containers known by notes alone so far (ContainerRecord::kept), which the runtime now reports
  // for the first time.
  std::set<ContainerKey> kept_reported;
  // Containers for which this list is the first with the values in force since the runtime's last
  // update (NumbersSetLater::reported).
  std::vector<ContainerKey> first_reported;
  // Number of pods that are new here and whose QoS class was taken from the saved state, since the
  // runtime does not report it.
  size_t classes_not_told = 0;
  // Containers whose name has changed since their creation without the change being known here.
  std::vector<ContainerKey> renamed;
  // Containers that are new here and have no saved data, ascending.
  std::vector<ContainerKey> without_notes;
  // Containers that may have another request than the one with which the shares of their pod were
  // saved: an update was under way, or one had arrived that was not saved.
  std::vector<ContainerKey> resized;
  // Newly listed containers that were saved only as creations without an answer.
  std::vector<ContainerKey> from_creations;
};

// Brings the store up to date with the pods and containers that the runtime listed. `since` is the
// store's clock when the list was asked for: a record that changed later overrules the list. A
// container whose creation is under way is left alone. A container that is new here gets the cpuset
// in force as its placement, with what `state_writer` saved of it, for the policy to confirm; if
// the list is unclear about it, the saved data is used, and without saved data it is not taken over
// yet. New ones are added in the order of their ids, so the same list gives the same keys.
// `decider` knows the CPUs of claims.
Adoption Adopt(ContainerStore& store, const RuntimeInventory& inventory,
               const Synchronizer::Removed& gone, uint64_t since, Bytes memory_capacity,
               const StateWriter& state_writer, const Decider& decider);

}  // namespace resmgr
