// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/cpus_watch.h"

#include <fmt/ranges.h>

#include "pkg/schedview/placeable.h"

namespace resmgr {

void CpusWatch::Note() {
  if (timer_ != nullptr || host_ == nullptr) return;
  timer_ = loop_.After(period_, [this] { Look(); });
}

void CpusWatch::Look() {
  timer_.reset();
  if (host_ == nullptr) return;
  const ResourceManager* const manager = host_->manager();
  if (manager == nullptr) return tell_("");
  if (!manager->synchronizer().ready()) return Note();
  tell_(ToJson(CpusByNumaNode(machine_, manager->policy(), manager->snapshot())));
}

std::vector<NumaCpus> CpusByNumaNode(const Machine& machine, const Policy& policy,
                                     const Snapshot& snapshot) {
  const CpuSet exclusive = ExclusiveCpus(policy, snapshot);
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
  nodes.reserve(cpus.size());
  for (const NumaCpus& one : cpus) {
    nodes.push_back(fmt::format(R"({{"id":{},"allocatable":{},"exclusive":{},"free":{}}})",
                                one.node, one.allocatable, one.exclusive, one.free));
  }
  return fmt::format(R"({{"version":1,"numa":[{}]}})", fmt::join(nodes, ","));
}

}  // namespace resmgr
