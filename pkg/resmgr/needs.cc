// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/needs.h"

#include "pkg/kube/requirements.h"

namespace resmgr {

Bytes MemoryCapacity(const Machine& machine) {
  Bytes memory;
  for (const NumaNode& node : machine.nodes())
    memory = memory + node.memory;
  return memory;
}

Requirements ReportedNeeds(const Pod& pod, const RuntimeContainer& reported,
                           Bytes memory_capacity) {
  Requirements needs = ResolveRequirements(reported.resources, pod.qos, memory_capacity,
                                           pod.annotations, reported.name)
                           .requirements;
  if (!reported.resources.cpu_shares) return needs;
  const Requirements now = EstimateRequirements(reported.resources, pod.qos, memory_capacity);
  needs.cpu_request = now.cpu_request;
  needs.cpu_limit = now.cpu_limit;
  return needs;
}

Requirements NeedsAfter(const Container& container, const LinuxResources& changes,
                        const LinuxResources& merged, QosClass qos, Bytes memory_capacity) {
  Requirements needs = container.requirements;
  const Requirements now = EstimateRequirements(merged, qos, memory_capacity);
  if (changes.cpu_shares || changes.cpu_quota || changes.cpu_period) {
    needs.cpu_request = now.cpu_request;
    needs.cpu_limit = now.cpu_limit;
  }
  if (changes.memory_limit || changes.oom_score_adj) {
    needs.memory_request = now.memory_request;
    needs.memory_limit = now.memory_limit;
  }
  return needs;
}

}  // namespace resmgr
