// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "pkg/kube/annotations.h"
#include "policies/topology-aware/topology_aware_policy.h"

namespace resmgr {
namespace {

// One percent of the value of PoolRule::kHints that a pool has if it meets all hints.
constexpr int64_t kHintPercent = 10'000'000'000;

// If the rule counts CPUs, its numbers here and in the best pool. The numbers of other rules mean
// nothing to users.
std::string Amounts(PoolRule rule, int64_t here, int64_t best) {
  if (rule != PoolRule::kCpuLimit && rule != PoolRule::kSharedRoom) return "";
  return fmt::format(" ({:g} CPUs against {:g})", static_cast<double>(here) / 1000,
                     static_cast<double>(best) / 1000);
}

// Whether the container is in the root although no pool has room for it.
bool FitsNowhere(const PoolScore& best) {
  return best[PoolRule::kFits] == 0;
}

constexpr std::string_view kNoRoom = "no room";

// The verdict about the place that was taken.
std::string WhyTaken(const PoolTree& tree, const Grant& grant, const PoolScore& best) {
  if (FitsNowhere(best)) return "no pool has room, and it shares here all the same";
  // Only the fraction of a container with exclusive CPUs may be elsewhere.
  if (best.pool == grant.pool || !grant.exclusive.empty()) return "the best";
  return fmt::format("the best; it is in {} now, since others got CPUs here",
                     tree.at(grant.pool).name);
}

}  // namespace

Zone TopologyAwarePolicy::ZoneOf(const Pool& pool) const {
  const PoolTree& tree = book_.tree();
  return {
      .name = pool.name,
      .parent = pool.parent < 0 ? "" : tree.at(pool.parent).name,
      .kind = std::string(ToString(pool.level)),
      .cpus = pool.cpus,
      .exclusive = pool.cpus & book_.cpus().exclusive(),
      .shared = book_.cpus().SharedSet(pool.id),
      .mems = tree.at(pool.memory_pool).nodes[kAllMemoryTypes],
      .shared_request = MilliCpu{book_.cpus().OwnShared(pool.id)},
      .free = MilliCpu{book_.cpus().Room(pool.id)},
      .memory_capacity = tree.at(pool.memory_pool).capacity[kAllMemoryTypes],
      .memory_used = book_.memory().Within(pool.memory_pool),
      .containers = book_.cpus().Members(pool.id),
  };
}

std::vector<std::string> TopologyAwarePolicy::WaysIn(const Snapshot& snapshot, const Pod& pod,
                                                     const Container& container) const {
  if (book_.Find(container.key) != nullptr) {
    // A refused resize: the container's own CPUs are not a reason against it.
    const std::unique_ptr<Policy> without = Clone();
    if (without->Release(snapshot, container.key).ok()) {
      return without->WaysIn(snapshot, pod, container);
    }
  }
  const Demand demand = MakeDemand(pod, container);
  std::vector<std::string> ways;
  const auto add_if_it_fits = [&](std::string_view way, const auto& change) {
    Demand other = demand;
    change(other);
    const StatusOr<Grant> grant = placer_.Place(other);
    if (grant.ok() && CheckOverhead(snapshot, *grant, 0).ok()) ways.emplace_back(way);
  };
  const auto annotation = [&](std::string_view key, std::string_view value) {
    return AnnotationChange(pod.annotations, key, container.name, value);
  };
  if (demand.need.alignment != Alignment::kPrefer) {
    add_if_it_fits(WayToSplit(demand.need.alignment, pod.annotations, container.name, name()),
                   [](Demand& other) { other.need.alignment = Alignment::kPrefer; });
  }
  if (demand.strict_hints) {
    add_if_it_fits(annotation("strict.topologyhints", "false"),
                   [](Demand& other) { other.strict_hints = false; });
  }
  if (demand.need.isolated_required) {
    add_if_it_fits(annotation("require-isolated-cpus", "false"),
                   [](Demand& other) { other.need.isolated_required = false; });
  } else if (demand.need.isolated_never) {
    add_if_it_fits(annotation("prefer-isolated-cpus", "true"), [](Demand& other) {
      other.need.isolated_never = false;
      other.need.isolated = true;
    });
  }
  if (demand.need.hide_hyperthreads) {
    add_if_it_fits(annotation("hide-hyperthreads", "false"),
                   [](Demand& other) { other.need.hide_hyperthreads = false; });
  }
  return ways;
}

std::vector<Zone> TopologyAwarePolicy::Zones(const Snapshot& snapshot) const {
  std::vector<Zone> zones;
  const PoolTree& tree = book_.tree();
  const Overhead overhead = snapshot.Overheads().shown;
  const MilliCpu left = MilliCpu{book_.cpus().Room(tree.root())} - overhead.cpu;
  // Pools in an order for users: parents first, siblings in their order.
  std::vector<int> open = {tree.root()};
  while (!open.empty()) {
    const Pool& pool = tree.at(open.back());
    open.pop_back();
    zones.push_back(ZoneOf(pool));
    zones.back().free = std::min(*zones.back().free, left);
    open.insert(open.end(), pool.children.rbegin(), pool.children.rend());
  }
  zones.front().overhead = overhead;
  zones.front().classes = options_.shared_classes;
  if (book_.reserved().empty()) return zones;
  const Pool& around = tree.at(book_.reserved_pool());
  zones.push_back({.name = std::string(kReservedPool),
                   .parent = around.name,
                   .cpus = book_.reserved(),
                   .shared = book_.reserved(),
                   .mems = tree.at(around.memory_pool).nodes[kAllMemoryTypes],
                   .shared_request = MilliCpu{book_.reserved_used()},
                   .free = MilliCpu{book_.ReservedRoom()},
                   .containers = book_.reserved_members(),
                   .classes = options_.reserved_classes});
  return zones;
}

ClassNames TopologyAwarePolicy::ClassesOf(ContainerKey key) const {
  const Grant* const grant = book_.Find(key);
  if (grant == nullptr || grant->need.cpu_class == CpuClass::kPreserved) return {};
  if (grant->need.cpu_class == CpuClass::kReserved) return options_.reserved_classes;
  return grant->exclusive.empty() ? options_.shared_classes : options_.exclusive_classes;
}

std::vector<ConsideredPlace> TopologyAwarePolicy::Considered(ContainerKey key) const {
  const Grant* const grant = book_.Find(key);
  if (grant == nullptr) return {};
  const PoolTree& tree = book_.tree();
  std::vector<ConsideredPlace> places;
  for (const PoolScore& candidate : grant->candidates) {
    const PoolScore& best = grant->candidates.front();
    ConsideredPlace& place = places.emplace_back();
    place.name = tree.at(candidate.pool).name;
    place.free = MilliCpu{candidate.free};
    if (candidate.free_memory >= 0) place.free_memory = Bytes{candidate.free_memory};
    place.near_devices = static_cast<int>(candidate[PoolRule::kHints] / kHintPercent);
    if (candidate[PoolRule::kAffinity] != 0 || best[PoolRule::kAffinity] != 0) {
      place.affinity = static_cast<double>(candidate[PoolRule::kAffinity]) /
                       static_cast<double>(int64_t{1} << 2 * tree.max_depth());
    }
    const bool nowhere = FitsNowhere(best);
    if (places.size() == 1) {
      place.verdict = fmt::format("taken: {}", WhyTaken(tree, *grant, best));
      continue;
    }
    if (nowhere) {
      place.verdict = kNoRoom;
      continue;
    }
    const PoolRule rule = Compare(best, candidate).rule;
    place.verdict =
        fmt::format("{} was better: {}{}", places.front().name, WhyBetter(rule, grant->need, best),
                    Amounts(rule, candidate[rule], best[rule]));
  }
  return places;
}

std::vector<std::string> TopologyAwarePolicy::Explain(ContainerKey key) const {
  const Grant* const grant = book_.Find(key);
  if (grant == nullptr) return {};
  std::vector<std::string> lines;
  const PoolScore* best = nullptr;
  for (const PoolScore& candidate : grant->candidates) {
    const std::string& name = book_.tree().at(candidate.pool).name;
    if (best == nullptr) {
      best = &candidate;
      lines.push_back(fmt::format("{}: {}", name, WhyTaken(book_.tree(), *grant, *best)));
      continue;
    }
    if (FitsNowhere(*best)) {
      lines.push_back(fmt::format("{}: {}", name, kNoRoom));
      continue;
    }
    const PoolRule rule = Compare(*best, candidate).rule;
    lines.push_back(fmt::format("{}: behind {} by: {}{}", name, book_.tree().at(best->pool).name,
                                WhyBetter(rule, grant->need, *best),
                                Amounts(rule, candidate[rule], (*best)[rule])));
  }
  return lines;
}

}  // namespace resmgr
