// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/resmgr/resource_manager.h"

namespace resmgr {

// The containers that a change leaves with fewer exclusive CPUs than they have, for people:
// "default/dsp/main (CPU 1, exclusive -> CPUs 0-1, shared)". Of many, the first ones are named and
// the others counted. Empty when no container loses any.
std::string DescribeLosses(const std::vector<ResourceManager::Move>& moves);

// Those moves alone.
std::vector<ResourceManager::Move> LossesAmong(const std::vector<ResourceManager::Move>& moves);

}  // namespace resmgr
