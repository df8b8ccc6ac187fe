// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "pkg/topology/cpu_set.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// CPUs of one kind, as hwloc groups them.
struct CpuKind {
  CpuSet cpus;
  int efficiency = -1;         // higher is faster
  std::string_view core_type;  // by its vendor; outlives this
  int64_t base_mhz = 0;        // 0: unknown
  int64_t max_mhz = 0;
  int64_t capacity = 0;  // as Linux counts it, at most 1024
};

// Sets which CPUs are efficient cores.
void ApplyKinds(const std::vector<CpuKind>& kinds, std::vector<Cpu>& cpus);
// Sets the order of the CPUs by their speed.
void ApplySpeeds(const std::vector<CpuKind>& kinds, std::vector<Cpu>& cpus);

}  // namespace resmgr
