// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/policy/registry.h"

namespace resmgr::test {

// The balloons policy with a balloon for each Guaranteed container, and balloons for the others
// that share idle CPUs of their NUMA nodes.
PolicyFactory DedicatedBalloonsFactory();
// The same, where the former make room for themselves within a NUMA node.
PolicyFactory BalloonsWithinNodeFactory();
// The same with 64 balloons for all containers.
PolicyFactory SixtyFourBalloonsFactory();

}  // namespace resmgr::test
