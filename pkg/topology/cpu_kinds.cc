// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/cpu_kinds.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <tuple>

namespace resmgr {
namespace {

bool IsEfficientType(const CpuKind& kind) {
  return kind.core_type == "IntelAtom";
}

// Whether cores of these speeds are nearly equal, so they may be of one design: favoured cores are
// some percent faster than others, while efficient cores reach three quarters of performance cores
// at most.
bool NearlyEqual(int64_t a, int64_t b) {
  constexpr int64_t kPercent = 80;
  return 100 * std::min(a, b) >= kPercent * std::max(a, b);
}

// The speed of each kind by the best measure that all kinds have; all 0 if there is none.
std::vector<int64_t> Capacities(const std::vector<CpuKind>& kinds) {
  std::vector<int64_t> values(kinds.size());
  for (int64_t CpuKind::*const what : {&CpuKind::capacity, &CpuKind::max_mhz, &CpuKind::base_mhz}) {
    std::ranges::transform(kinds, values.begin(), what);
    if (std::ranges::all_of(values, [](int64_t value) { return value > 0; })) return values;
  }
  return std::vector<int64_t>(kinds.size());
}

// The kinds of the slowest design, as indexes of `kinds`: the slowest kind, and each that is nearly
// equal to the one before it. If there is only one design, these are all kinds.
std::set<size_t> SlowestDesign(const std::vector<CpuKind>& kinds) {
  const std::vector<int64_t> capacities = Capacities(kinds);
  std::vector<size_t> order(kinds.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::ranges::sort(order, {}, [&kinds](size_t i) { return kinds[i].efficiency; });
  std::set<size_t> slowest;
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t capacity = capacities[order[i]];
    const bool apart = i > 0 && (capacity == 0 || !NearlyEqual(capacities[order[i - 1]], capacity));
    if (apart) break;
    slowest.insert(order[i]);
  }
  return slowest;
}

}  // namespace

// hwloc also makes separate kinds of cores of one design that reach different clock rates. If the
// vendor names the designs, only the names count; else the slowest of several designs is the
// efficient one.
void ApplyKinds(const std::vector<CpuKind>& kinds, std::vector<Cpu>& cpus) {
  const bool named = std::any_of(kinds.begin(), kinds.end(),
                                 [](const CpuKind& kind) { return !kind.core_type.empty(); });
  const bool ranked = std::all_of(kinds.begin(), kinds.end(),
                                  [](const CpuKind& kind) { return kind.efficiency >= 0; });
  std::set<size_t> efficient;
  if (!named && ranked) efficient = SlowestDesign(kinds);
  for (size_t i = 0; named && i < kinds.size(); ++i) {
    if (IsEfficientType(kinds[i])) efficient.insert(i);
  }
  if (efficient.empty() || efficient.size() == kinds.size()) return;
  for (size_t i = 0; i < kinds.size(); ++i) {
    for (Cpu& cpu : cpus) {
      if (!kinds[i].cpus.Contains(cpu.id)) continue;
      cpu.kind = efficient.contains(i) ? CoreKind::kEfficient : CoreKind::kPerformance;
    }
  }
}

// Uses hwloc's order, which begins with the designs of the cores. If hwloc cannot order the kinds,
// the clock rates decide, the base rate first, since vendors guarantee it for prioritized cores
// (Intel SST-BF).
void ApplySpeeds(const std::vector<CpuKind>& kinds, std::vector<Cpu>& cpus) {
  const bool ranked = std::all_of(kinds.begin(), kinds.end(),
                                  [](const CpuKind& kind) { return kind.efficiency >= 0; });
  const bool clocked = std::all_of(kinds.begin(), kinds.end(), [](const CpuKind& kind) {
    return kind.base_mhz > 0 || kind.max_mhz > 0;
  });
  if (!ranked && !clocked) return;
  const auto clocks = [](const CpuKind& kind) { return std::tuple(kind.base_mhz, kind.max_mhz); };
  for (const CpuKind& kind : kinds) {
    std::set<std::tuple<int64_t, int64_t>> slower;
    for (const CpuKind& other : kinds) {
      if (clocks(other) < clocks(kind)) slower.insert(clocks(other));
    }
    for (Cpu& cpu : cpus) {
      if (!kind.cpus.Contains(cpu.id)) continue;
      cpu.speed = ranked ? kind.efficiency : static_cast<int>(slower.size());
    }
  }
}

}  // namespace resmgr
