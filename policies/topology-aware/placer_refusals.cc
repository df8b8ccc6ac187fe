// SPDX-License-Identifier: Apache-2.0
// The texts of refusals: the need, the shortage and the pools that are full.
#include <algorithm>
#include <span>

#include "pkg/base/bytes_text.h"
#include "pkg/base/count_text.h"
#include "policies/topology-aware/placer.h"

namespace resmgr {
namespace {

// Pools that a refusal names.
constexpr size_t kNamedPools = 8;

}  // namespace

Status Placer::Shortage(const Demand& demand) const {
  const Need& need = demand.need;
  const PoolTree& tree = book_.tree();
  Grant memory{.need = need, .pool = tree.root()};
  if (!FindMemory(memory, memory.pool)) {
    const Bytes capacity = book_.memory().Capacity(*memory.zone);
    if (need.memory > capacity) {
      return InvalidArgument("needs {} of memory, but this node has no more than {}",
                             BytesText(need.memory.value), BytesText(capacity.value));
    }
    return ResourceExhausted(
        "needs {} of memory, but only {} are free", BytesText(need.memory.value),
        BytesOf(std::max<int64_t>((capacity - book_.CertainMemory()).value, 0), capacity.value));
  }
  const std::string what = Needs(demand);
  const Pool& root = tree.at(tree.root());
  // Without reserved CPUs one CPU is kept for containers that share.
  const int kept = book_.reserved().empty() ? 1 : 0;
  const int isolated_cpus = need.isolated_never ? 0 : root.isolated.size();
  const int most =
      need.isolated_required ? isolated_cpus : root.sharable.size() + isolated_cpus - kept;
  if (need.cpu_class == CpuClass::kExclusive && ExclusiveCount(need) > most) {
    return InvalidArgument("{}, but this node can grant no more than {}", what, most);
  }
  const int64_t all =
      int64_t{1000} * (root.sharable.size() + isolated_cpus) + book_.cpus().unreserved().value;
  if (need.cpu_class == CpuClass::kExclusive &&
      int64_t{1000} * ExclusiveCount(need) + need.fraction > all) {
    return InvalidArgument("{}, but this node can grant no more than {}m", what, all);
  }
  const bool anywhere = !demand.strict_hints || demand.hints.empty();
  if (need.cpu_class == CpuClass::kExclusive && need.alignment != Alignment::kPrefer && anywhere) {
    return WantOfPlace(demand, what);
  }
  std::vector<int> asked;
  for (const Pool& pool : tree.pools()) {
    if (pool.parent < 0 || pool.parent == tree.root()) asked.push_back(pool.id);
  }
  if (anywhere) {
    const CpuSet& isolated = root.isolated;
    const int free = need.isolated_required ? book_.cpus().FreeIsolated(root.id).size()
                                            : book_.cpus().Sliceable(root.id, need.fraction);
    return ResourceExhausted("{}, {} of {} free ({})", what, free,
                             need.isolated_required ? isolated.size() : root.cpus.size(),
                             Levels(need, asked));
  }
  const std::string levels = Levels(need, asked);
  asked.clear();
  for (const Pool& pool : tree.pools()) {
    if (asked.size() < kNamedPools && IsNear(demand, pool.id)) asked.push_back(pool.id);
  }
  if (asked.empty()) {
    return ResourceExhausted("{}, but no pool is near to all its devices and volumes ({})", what,
                             levels);
  }
  return ResourceExhausted(
      "{}, but no pool that is near to all its devices and volumes can grant them now ({})", what,
      Levels(need, asked));
}

// The lack of each place for exclusive CPUs that must not be split. A container that runs stays in
// its own.
Status Placer::WantOfPlace(const Demand& demand, std::string_view what) const {
  const Need& need = demand.need;
  const std::string_view in_one = InOnePlace(need.alignment);
  const bool stays = demand.keeps_held && ExclusiveCount(need) >= demand.held.size();
  std::vector<std::pair<std::string_view, int>> free;
  int most = 0;
  for (const AlignedPlace& place : finder_.places().Of(need.alignment)) {
    most = std::max(most, finder_.MostOf(need, place.cpus));
    if (stays && !demand.held.IsSubsetOf(place.cpus)) continue;
    free.emplace_back(place.name, finder_.FreeOf(demand, place.cpus));
  }
  if (ExclusiveCount(need) > most) {
    return InvalidArgument("{} {}, but this node can grant no more than {} there", what, in_one,
                           most);
  }
  if (free.empty()) {
    return ResourceExhausted("{} {}, but the CPUs {} that it runs on are not, and it keeps them",
                             what, in_one, demand.held.ToString());
  }
  return ResourceExhausted("{} {}{} ({})", what, in_one, stays ? ", where it runs" : "",
                           DescribeLack(free, ExclusiveCount(need)));
}

std::string Placer::Needs(const Demand& demand) const {
  const Need& need = demand.need;
  if (need.cpu_class != CpuClass::kExclusive) {
    return fmt::format("needs {}m of shared CPUs", need.fraction);
  }
  return fmt::format(
      "needs {}{}",
      CountText(ExclusiveCount(need),
                need.isolated_required ? "exclusive isolated CPU" : "exclusive CPU"),
      need.fraction > 0 ? fmt::format(" and {}m of shared ones", need.fraction) : "");
}

// The amounts that some pools could still grant.
std::string Placer::Levels(const Need& need, std::span<const int> pools) const {
  const CpuLedger& cpus = book_.cpus();
  std::string levels;
  for (const int pool : pools) {
    levels += fmt::format("{}{}: ", levels.empty() ? "" : ", ", book_.tree().at(pool).name);
    if (need.cpu_class != CpuClass::kExclusive) {
      levels += fmt::format("{}m", std::max<int64_t>(cpus.Room(pool), 0));
    } else if (need.isolated_required) {
      levels += fmt::format("{}", cpus.FreeIsolated(pool).size());
    } else {
      levels += fmt::format("{}", cpus.Grantable(pool, need.fraction));
    }
  }
  return levels;
}

}  // namespace resmgr
