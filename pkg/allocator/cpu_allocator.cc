// SPDX-License-Identifier: Apache-2.0
#include "pkg/allocator/cpu_allocator.h"

#include <algorithm>
#include <vector>

namespace resmgr {

namespace {

// The free CPUs of the package that has the fewest of them and still enough; if none has enough,
// those of the packages with the most.
CpuSet InFewestPackages(const Machine& machine, const CpuSet& free, int count) {
  struct Part {
    CpuSet cpus;
    int size = 0;
  };
  std::vector<Part> parts;
  const Part* best = nullptr;
  parts.reserve(machine.packages().size());
  for (const CpuSet& package : machine.packages()) {
    const CpuSet cpus = package & free;
    parts.push_back({cpus, cpus.size()});
    if (parts.back().size < count) continue;
    if (best == nullptr || parts.back().size < best->size) best = &parts.back();
  }
  if (best != nullptr) return best->cpus;
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.size > b.size; });
  CpuSet chosen;
  for (const Part& part : parts) {
    if (chosen.size() >= count) break;
    chosen |= part.cpus;
  }
  return chosen;
}

StatusOr<CpuSet> Take(const Machine& machine, const CpuSet& free, int count,
                      const CpuAllocatorOptions& options) {
  const bool aligned = options.align_by_package && count <= free.size();
  const CpuSet& available = aligned ? InFewestPackages(machine, free, count) : free;
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
  // An excessive count must be refused as a whole, with the numbers of the whole.
  if (aligned.empty() || count > usable.size()) return Take(machine, usable, count, options);
  const int from_aligned = std::min(count, aligned.size());
  RESMGR_ASSIGN_OR_RETURN(const CpuSet first, Take(machine, aligned, from_aligned, options));
  RESMGR_ASSIGN_OR_RETURN(const CpuSet rest,
                          Take(machine, usable - first, count - from_aligned, options));
  return first | rest;
}

}  // namespace resmgr
