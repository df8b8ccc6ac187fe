// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/resources.h"

namespace resmgr {
namespace {

template <typename T>
void Override(std::optional<T>& value, const std::optional<T>& change) {
  if (change) value = change;
}

}  // namespace

void Merge(LinuxResources& base, const LinuxResources& changes) {
  Override(base.cpu_period, changes.cpu_period);
  Override(base.cpu_quota, changes.cpu_quota);
  Override(base.cpu_shares, changes.cpu_shares);
  Override(base.memory_limit, changes.memory_limit);
  Override(base.oom_score_adj, changes.oom_score_adj);
  Override(base.cpuset_cpus, changes.cpuset_cpus);
  Override(base.cpuset_mems, changes.cpuset_mems);
  for (const auto& [page_size, limit] : changes.hugepage_limits) {
    base.hugepage_limits[page_size] = limit;
  }
}

LinuxResources Merged(LinuxResources base, const LinuxResources& changes) {
  Merge(base, changes);
  return base;
}

}  // namespace resmgr
