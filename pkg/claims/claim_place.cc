// SPDX-License-Identifier: Apache-2.0
#include "pkg/claims/claim_place.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "pkg/allocator/alignment.h"
#include "pkg/claims/claim_options.h"

namespace resmgr {
namespace {

// The online CPUs of a cache whose lowest CPU is `first`, if its CPU numbers have the same gaps as
// those of the cache `whole`.
CpuSet OnlineAsIn(const CpuSet& whole, int first, const Machine& machine) {
  CpuSet cpus;
  for (const int cpu : whole) {
    const Cpu* const moved = machine.FindCpu(first + cpu - whole.First());
    if (moved != nullptr && moved->online) cpus.Add(moved->id);
  }
  return cpus;
}

// The length of the first run of consecutive numbers: 4 for 0-3,16-19.
int RunOf(const CpuSet& cpus) {
  int run = 0;
  while (cpus.Contains(cpus.First() + run))
    ++run;
  return run;
}

const CpuSet* FindCache(int number, const Machine& machine) {
  const Cpu* const cpu = machine.FindCpu(number);
  if (cpu == nullptr) return nullptr;
  if (cpu->online)
    return cpu->l3 < 0 ? nullptr : &machine.l3_groups()[static_cast<size_t>(cpu->l3)];
  for (const CpuSet& cache : machine.l3_groups())
    if (!cache.empty() && NumberOfCache(cache, machine) == number) return &cache;
  return nullptr;
}

}  // namespace

int NumberOfCache(const CpuSet& cache, const Machine& machine) {
  const std::vector<CpuSet>& caches = machine.l3_groups();
  const CpuSet& whole = *std::ranges::max_element(caches, {}, &CpuSet::size);
  if (whole.size() == cache.size()) return cache.First();
  const int run = RunOf(whole);
  std::optional<int> number;
  for (const int cpu : whole) {
    const int first = cache.First() - (cpu - whole.First());
    const Cpu* const lowest = machine.FindCpu(first);
    if (lowest == nullptr || lowest->online || (first - whole.First()) % run != 0) continue;
    if (OnlineAsIn(whole, first, machine) != cache) continue;
    if (number) return cache.First();
    number = first;
  }
  return number.value_or(cache.First());
}

StatusOr<ClaimPlace> PlaceOf(const ClaimPart& part, const Machine& machine) {
  if (part.l3_of) {
    const CpuSet* const cache = FindCache(*part.l3_of, machine);
    if (cache == nullptr) return InvalidArgument("there is no L3 cache of CPU {}", *part.l3_of);
    return ClaimPlace{.cpus = *cache, .name = fmt::format("the L3 cache of CPU {}", *part.l3_of)};
  }
  if (part.node) {
    const NumaNode* const node = machine.FindNode(*part.node);
    if (node == nullptr) return InvalidArgument("there is no NUMA node {}", *part.node);
    return ClaimPlace{.cpus = node->cpus, .name = fmt::format("NUMA node {}", *part.node)};
  }
  return ClaimPlace{.cpus = machine.allowed(), .name = ""};
}

StatusOr<ClaimPlace> PlaceOf(const ClaimPart& part, const ClaimOptions& options,
                             const Machine& machine) {
  StatusOr<ClaimPlace> place = PlaceOf(part, machine);
  if (!place.ok() || !options.core_type) return place;
  CpuSet alike;
  for (const int cpu : place->cpus)
    if (machine.FindCpu(cpu)->kind == *options.core_type) alike.Add(cpu);
  place->name = fmt::format("{} CPUs{}{}", CoreTypeName(*options.core_type),
                            place->name.empty() ? "" : " of ", place->name);
  place->cpus = alike;
  return place;
}

bool FitsPart(const ClaimPart& part, const ClaimOptions& options, const CpuSet& cpus,
              const Machine& machine) {
  if (options.WholeCores() && machine.WithSiblings(cpus) != cpus) return false;
  if (options.l3 && !AlignedPlaces(machine).IsAligned(Alignment::kL3, cpus)) return false;
  const StatusOr<ClaimPlace> place = PlaceOf(part, options, machine);
  return place.ok() && (place->name.empty() || cpus.IsSubsetOf(place->cpus));
}

}  // namespace resmgr
