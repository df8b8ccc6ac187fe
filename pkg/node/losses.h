// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/resmgr/resource_manager.h"

namespace resmgr {

// Describes the containers that lose exclusive CPUs by a change: "default/dsp/main (CPU 1,
// exclusive -> CPUs 0-1, shared)". If there are many, the first ones are named and the others
// counted. Empty if no container loses any.
std::string DescribeLosses(const std::vector<ResourceManager::Move>& moves);

// The moves by which containers lose exclusive CPUs.
std::vector<ResourceManager::Move> LossesAmong(const std::vector<ResourceManager::Move>& moves);

}  // namespace resmgr
