// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/model/container.h"

namespace resmgr {

// One container's new placement.
struct PlacementChange {
  ContainerKey key{};
  Placement placement;
};

// What a policy decided: every container whose placement differs from before, the one asked about
// included.
struct Plan {
  std::vector<PlacementChange> changes;

  const Placement* Find(ContainerKey key) const {
    for (const PlacementChange& change : changes) {
      if (change.key == key) return &change.placement;
    }
    return nullptr;
  }
};

}  // namespace resmgr
