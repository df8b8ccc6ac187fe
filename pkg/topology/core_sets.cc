// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/core_sets.h"

#include <algorithm>

namespace resmgr {
namespace {

CpuSet WholeOf(const std::vector<CpuSet>& cores, const CpuSet& cpus, int threads) {
  CpuSet whole;
  for (const CpuSet& core : cores)
    if (core.size() >= threads && core.IsSubsetOf(cpus)) whole |= core;
  return whole;
}

}  // namespace

CpuSet WholeCores(const Machine& machine, const CpuSet& cpus) {
  return WholeOf(machine.cores(), cpus, 1);
}

OnlineCores::OnlineCores(const Machine& machine, const CpuSet& offline) {
  for (const CpuSet& core : machine.cores()) {
    const CpuSet online = core - offline;
    if (!online.empty()) cores_.push_back(online);
  }
  for (const CpuSet& core : cores_)
    threads_ = std::max(threads_, core.size());
  uniform_ =
      std::ranges::all_of(cores_, [this](const CpuSet& core) { return core.size() == threads_; });
}

CpuSet OnlineCores::Whole(const CpuSet& cpus, int threads) const {
  return WholeOf(cores_, cpus, threads);
}

CpuSet OnlineCores::WithSiblings(const CpuSet& cpus) const {
  CpuSet siblings;
  for (const CpuSet& core : cores_)
    if (core.Intersects(cpus)) siblings |= core;
  return siblings;
}

CpuSet OneThreadPerCore(const Machine& machine, const CpuSet& cpus) {
  CpuSet first;
  CpuSet seen;
  for (const int cpu : cpus) {
    if (seen.Contains(cpu)) continue;
    first.Add(cpu);
    seen |= machine.WithSiblings({cpu});
  }
  return first;
}

}  // namespace resmgr
