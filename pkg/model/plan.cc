// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/plan.h"

#include <algorithm>

namespace resmgr {

Placement& Plan::Change(ContainerKey key) {
  PlacementChange& change = changes.emplace_back();
  change.key = key;
  return change.placement;
}

size_t Plan::size() const {
  size_t count = changes.size();
  for (const SharedChange& change : shared)
    count += change.containers.size();
  return count;
}

const Placement* Plan::Find(ContainerKey key) const {
  for (const PlacementChange& change : changes) {
    if (change.key == key) return &change.placement;
  }
  return nullptr;
}

std::optional<Placement> Plan::NewPlacement(const Container& container) const {
  if (const Placement* const placement = Find(container.key)) return *placement;
  for (const SharedChange& change : shared) {
    if (!std::binary_search(change.containers.begin(), change.containers.end(), container.key)) {
      continue;
    }
    Placement placement = container.placement;
    placement.cpus = change.CpusFor(placement);
    return placement;
  }
  return std::nullopt;
}

}  // namespace resmgr
