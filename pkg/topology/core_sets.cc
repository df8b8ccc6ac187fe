// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/core_sets.h"

namespace resmgr {

CpuSet WholeCores(const Machine& machine, const CpuSet& cpus, int threads) {
  CpuSet whole;
  for (const CpuSet& core : machine.cores())
    if (core.size() >= threads && core.IsSubsetOf(cpus)) whole |= core;
  return whole;
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
