// SPDX-License-Identifier: Apache-2.0
#include "pkg/allocator/cpu_allocator.h"

#include <algorithm>

namespace resmgr {

namespace {

StatusOr<CpuSet> Take(const Machine& machine, const CpuSet& available, int count,
                      const CpuAllocatorOptions& options) {
  if (options.distribute_across_numa) {
    return TakeDistributed(machine, available, count, options.group_size);
  }
  return TakePacked(machine, available, count, options);
}

}  // namespace

StatusOr<CpuSet> AllocateCpus(const Machine& machine, const CpuSet& available,
                              const CpuSet& preferred, int count,
                              const CpuAllocatorOptions& options) {
  const CpuSet usable = available & machine.online();
  const CpuSet aligned = usable & preferred;
  // Too large a count must be refused as a whole, with the numbers of the whole.
  if (aligned.empty() || count > usable.size()) return Take(machine, usable, count, options);
  const int from_aligned = std::min(count, aligned.size());
  RESMGR_ASSIGN_OR_RETURN(const CpuSet first, Take(machine, aligned, from_aligned, options));
  RESMGR_ASSIGN_OR_RETURN(const CpuSet rest,
                          Take(machine, usable - first, count - from_aligned, options));
  return first | rest;
}

}  // namespace resmgr
