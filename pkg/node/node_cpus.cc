// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/node_cpus.h"

#include <fmt/ranges.h>

#include "pkg/claims/claimed_policy.h"
#include "pkg/schedview/placeable.h"

namespace resmgr {

std::vector<NumaCpus> CpusByNumaNode(const Machine& machine, const Policy& policy,
                                     const Snapshot& snapshot) {
  CpuSet exclusive = ClaimsOf(policy).Cpus();
  snapshot.ForEachContainer([&exclusive](const Pod&, const Container& container) {
    if (container.state != ContainerState::kExited) exclusive |= container.placement.exclusive;
  });
  const CpuSet allocatable = AllocatableCpus(policy, snapshot);
  std::vector<NumaCpus> all;
  for (const NumaNode& node : machine.nodes()) {
    if (node.cpus.empty()) continue;
    all.push_back({.node = node.id,
                   .allocatable = node.cpus.CountCommon(allocatable),
                   .exclusive = node.cpus.CountCommon(exclusive),
                   .free = node.cpus.CountCommon(allocatable - exclusive)});
  }
  return all;
}

std::string ToJson(const std::vector<NumaCpus>& cpus) {
  std::vector<std::string> nodes;
  for (const NumaCpus& one : cpus) {
    nodes.push_back(fmt::format(R"({{"id":{},"allocatable":{},"exclusive":{},"free":{}}})",
                                one.node, one.allocatable, one.exclusive, one.free));
  }
  return fmt::format(R"({{"version":1,"numa":[{}]}})", fmt::join(nodes, ","));
}

}  // namespace resmgr
