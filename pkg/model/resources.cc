// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/resources.h"

#include "pkg/model/resource_fields.h"

namespace resmgr {
namespace {

template <typename T>
void Override(std::optional<T>& value, const std::optional<T>& change) {
  if (change) value = change;
}

}  // namespace

void Merge(LinuxResources& base, const LinuxResources& changes) {
  for (const NumberField& number : kNumberFields)
    if (number.requested != nullptr) Override(base.*number.requested, changes.*number.requested);
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
