// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "pkg/model/container.h"

namespace resmgr {

// One container's new placement.
struct PlacementChange {
  ContainerKey key{};
  Placement placement;
};

// New shared CPUs of any number of containers, whose placements stay the same in everything else. A
// grant of exclusive CPUs, or their return, changes hundreds of sharing containers, and a placement
// for each would cost more than the decision.
struct SharedChange {
  CpuSet cpus;                           // never empty
  std::vector<ContainerKey> containers;  // all placed on shared CPUs before; ascending

  // The new CPUs of a container with this placement.
  CpuSet CpusFor(const Placement& placement) const { return cpus | placement.exclusive; }
};

// A policy's decision: every container whose placement differs from before, the one asked about
// included, each of them once.
struct Plan {
  std::vector<PlacementChange> changes;  // mostly one
  std::vector<SharedChange> shared;

  bool empty() const { return changes.empty() && shared.empty(); }
  // Adds a change of the container: its new placement, empty as yet.
  Placement& Change(ContainerKey key);
  // How many containers change.
  size_t size() const;

  // The new placement among `changes`; nullptr when there is none.
  const Placement* Find(ContainerKey key) const;
  // The container's placement once the plan is carried out; nullopt when it does not change.
  std::optional<Placement> NewPlacement(const Container& container) const;
};

}  // namespace resmgr
