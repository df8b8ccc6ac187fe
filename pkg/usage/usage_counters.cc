// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/usage_counters.h"

#include <algorithm>

#include <fmt/format.h>

namespace resmgr {

std::string UsageSubject::FullName() const {
  return fmt::format("{}/{}/{}", namespace_name, pod, container);
}

std::vector<UsageSubject> UsageSubjects(const ResourceManager* manager) {
  std::vector<UsageSubject> subjects;
  if (manager == nullptr) return subjects;
  manager->snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
    if (container.state != ContainerState::kRunning) return;
    const Placement& placement = container.placement;
    const double request = static_cast<double>(container.requirements.cpu_request.value) / 1000;
    subjects.push_back(
        {.id = std::string(container.id.value()),
         .namespace_name = pod.namespace_name,
         .pod = pod.name,
         .container = container.name,
         .cgroup_parent = pod.cgroup_parent,
         .cpus = placement.EnforcedCpus().value_or(CpuSet()),
         .exclusive = placement.exclusive,
         .mems = placement.mems.value_or(NodeSet()),
         .pool = placement.pool,
         .granted = std::max<double>(placement.exclusive.size(), request),
         .limit = static_cast<double>(container.requirements.cpu_limit.value) / 1000});
  });
  return subjects;
}

}  // namespace resmgr
