// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/resources.h"

#include <string>

#include "pkg/base/status.h"
#include "pkg/model/resource_fields.h"

namespace resmgr {
namespace {

template <typename T>
void Override(std::optional<T>& value, const std::optional<T>& change) {
  if (change) value = change;
}

template <typename Set>
std::optional<Set> ReadSet(const std::optional<std::string>& list) {
  if (!list) return std::nullopt;
  const StatusOr<Set> set = Set::Parse(*list);
  if (!set.ok() || set->empty()) return std::nullopt;
  return *set;
}

template <typename T>
std::optional<T> Changed(const std::optional<T>& wanted, const std::optional<T>& present) {
  return wanted == present ? std::nullopt : wanted;
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

LinuxResources AsResources(const ResourceValues& values) {
  LinuxResources resources;
  for (const NumberField& number : kNumberFields) {
    if (number.requested != nullptr && number.value != nullptr) {
      resources.*number.requested = values.*number.value;
    }
  }
  if (values.cpus) resources.cpuset_cpus = values.cpus->ToString();
  if (values.mems) resources.cpuset_mems = values.mems->ToString();
  return resources;
}

ResourceValues ReadValues(const LinuxResources& resources) {
  return {
      .cpus = ReadSet<CpuSet>(resources.cpuset_cpus),
      .mems = ReadSet<NodeSet>(resources.cpuset_mems),
      .cpu_shares = resources.cpu_shares,
      .cpu_quota = resources.cpu_quota,
      .cpu_period = resources.cpu_period,
  };
}

ResourceValues Difference(const ResourceValues& wanted, const ResourceValues& present) {
  return {
      .cpus = Changed(wanted.cpus, present.cpus),
      .mems = Changed(wanted.mems, present.mems),
      .cpu_shares = Changed(wanted.cpu_shares, present.cpu_shares),
      .cpu_quota = Changed(wanted.cpu_quota, present.cpu_quota),
      .cpu_period = Changed(wanted.cpu_period, present.cpu_period),
  };
}

}  // namespace resmgr
