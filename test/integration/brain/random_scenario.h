// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/topology/machine.h"

namespace resmgr::test {

// A random life of a node as text that `cri-resmgr-ctl simulate` reads: pods that come and go,
// resizes, new attempts, changes of the configuration, and restarts of the daemon in between.
struct RandomScenario {
  std::string config;
  std::vector<std::string> documents;  // each ends with a line break
};

// The same seed gives the same scenario. `policy` is active from the beginning to the end.
RandomScenario SomeScenario(const Machine& machine, std::string_view policy, uint64_t seed);

}  // namespace resmgr::test
