// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "pkg/model/container.h"
#include "pkg/topology/machine.h"

namespace resmgr::test {

std::vector<CpuSet> NodesOf(const Machine& machine);

// The share of containers that lie within one group, among all that would fit into one.
struct Share {
  int64_t within = 0;
  int64_t of = 0;

  void Count(const std::vector<CpuSet>& groups, const CpuSet& cpus, int64_t need);
  double Percent() const {
    return of == 0 ? 100 : 100 * static_cast<double>(within) / static_cast<double>(of);
  }
};

// The CPUs that a container has for itself alone: exclusive ones, or those of a balloon that is
// made for single containers (balloons_bench.h).
CpuSet AloneOn(const Placement& placement);

// Shares of such containers that lie within one group.
struct ExclusiveShares {
  Share l3;
  Share node;
  Share package;

  void Count(const Machine& machine, const Container& container);
};

}  // namespace resmgr::test
