// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "policies/topology-aware/topology_aware_policy.h"

namespace resmgr {
namespace {

// For rules that count CPUs, how many there are here and in the best pool; the numbers of other
// rules mean nothing to a reader.
std::string Amounts(PoolRule rule, int64_t here, int64_t best) {
  if (rule != PoolRule::kCpuLimit && rule != PoolRule::kSharedRoom) return "";
  return fmt::format(" ({:g} CPUs against {:g})", static_cast<double>(here) / 1000,
                     static_cast<double>(best) / 1000);
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

std::vector<Zone> TopologyAwarePolicy::Zones(const Snapshot& snapshot) const {
  std::vector<Zone> zones;
  const PoolTree& tree = book_.tree();
  const Overhead overhead = snapshot.Overheads().shown;
  const MilliCpu left = MilliCpu{book_.cpus().Room(tree.root())} - overhead.cpu;
  // For a reader: parents first, and brothers in their order.
  std::vector<int> open = {tree.root()};
  while (!open.empty()) {
    const Pool& pool = tree.at(open.back());
    open.pop_back();
    zones.push_back(ZoneOf(pool));
    zones.back().free = std::min(*zones.back().free, left);
    open.insert(open.end(), pool.children.rbegin(), pool.children.rend());
  }
  zones.front().overhead = overhead;
  if (book_.reserved().empty()) return zones;
  const Pool& around = tree.at(book_.reserved_pool());
  zones.push_back({.name = std::string(kReservedPool),
                   .parent = around.name,
                   .cpus = book_.reserved(),
                   .shared = book_.reserved(),
                   .mems = tree.at(around.memory_pool).nodes[kAllMemoryTypes],
                   .shared_request = MilliCpu{book_.reserved_used()},
                   .free = MilliCpu{book_.ReservedRoom()},
                   .containers = book_.reserved_members()});
  return zones;
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
      lines.push_back(fmt::format("{}: the best", name));
      continue;
    }
    const PoolRule rule = Compare(*best, candidate).rule;
    lines.push_back(fmt::format("{}: behind {} by: {}{}", name, book_.tree().at(best->pool).name,
                                ToString(rule), Amounts(rule, candidate[rule], (*best)[rule])));
  }
  return lines;
}

}  // namespace resmgr
