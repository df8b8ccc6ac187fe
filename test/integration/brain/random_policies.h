// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include "pkg/policy/registry.h"
#include "pkg/topology/machine.h"

namespace resmgr::test {

using RandomEngine = std::mt19937_64;

// From `first` to `last`, the same on each platform.
int64_t RandomNumber(RandomEngine& random, int64_t first, int64_t last);
// Once in `times`.
bool RandomOnce(RandomEngine& random, int64_t times);

// A machine of up to 96 CPUs: packages, NUMA nodes whose numbers may have gaps, caches, threads,
// isolated and offline CPUs, kinds of cores, huge pages, nodes without CPUs.
Machine RandomMachine(RandomEngine& random);

// A section of the configuration for a policy of this name: any of the options by which it decides
// where containers with whole CPUs go. nullopt: the policy does not take these options together, or
// not on this machine.
struct RandomPolicy {
  PolicyFactory factory;
  std::string section;
  std::string reserved;  // list of CPUs, or ""
  // Whether it refuses containers for want of room that share CPUs under other policies.
  bool refuses_when_short = false;
};
std::optional<RandomPolicy> RandomPolicyFor(const std::string& name, const Machine& machine,
                                            RandomEngine& random);

}  // namespace resmgr::test
