// SPDX-License-Identifier: Apache-2.0
#include "test/bench/policy/share.h"

#include <algorithm>

namespace resmgr::test {

std::vector<CpuSet> NodesOf(const Machine& machine) {
  std::vector<CpuSet> nodes;
  for (const NumaNode& node : machine.nodes())
    nodes.push_back(node.cpus);
  return nodes;
}

void Share::Count(const std::vector<CpuSet>& groups, const CpuSet& cpus, int64_t need) {
  const bool fits =
      std::ranges::any_of(groups, [&](const CpuSet& group) { return group.size() >= need; });
  if (!fits) return;
  ++of;
  if (std::ranges::any_of(groups, [&](const CpuSet& group) { return cpus.IsSubsetOf(group); })) {
    ++within;
  }
}

CpuSet AloneOn(const Placement& placement) {
  if (!placement.pool.starts_with("dedicated[")) return placement.exclusive;
  return placement.cpus.value_or(CpuSet());
}

void ExclusiveShares::Count(const Machine& machine, const Container& container) {
  const CpuSet exclusive = AloneOn(container.placement);
  const int64_t need = (container.requirements.cpu_request.value + 999) / 1000;
  l3.Count(machine.l3_groups(), exclusive, need);
  node.Count(NodesOf(machine), exclusive, need);
  package.Count(machine.packages(), exclusive, need);
}

}  // namespace resmgr::test
