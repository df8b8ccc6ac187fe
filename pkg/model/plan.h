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

// New shared CPUs for any number of containers, whose placements stay the same in everything else.
// A grant of exclusive CPUs, or their return, changes hundreds of sharing containers, and a
// placement for each would cost more than the decision.
struct SharedChange {
  CpuSet cpus;                           // never empty
  std::vector<ContainerKey> containers;  // all were placed on shared CPUs; ascending

  // The new CPUs of a container that had this placement.
  CpuSet CpusFor(const Placement& placement) const { return cpus | placement.exclusive; }
};

// A policy's decision: every container whose placement changes, including the container that was
// asked about, each once.
struct Plan {
  std::vector<PlacementChange> changes;  // mostly one
  std::vector<SharedChange> shared;

  bool empty() const { return changes.empty() && shared.empty(); }
  // Adds a change of the container, and returns its new placement, which is empty.
  Placement& Change(ContainerKey key);
  // How many containers change.
  size_t size() const;

  // The new placement in `changes`; nullptr if there is none.
  const Placement* Find(ContainerKey key) const;
  // The container's placement after the plan; nullopt if it does not change.
  std::optional<Placement> NewPlacement(const Container& container) const;
};

}  // namespace resmgr
