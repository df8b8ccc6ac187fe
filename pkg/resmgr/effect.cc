// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/effect.h"

#include "pkg/base/status.h"

namespace resmgr {
namespace {

template <typename T>
std::optional<T> First(const std::optional<T>& a, const std::optional<T>& b) {
  return a ? a : b;
}

const std::optional<CpuSet>& CpusOf(const Placement& placement) {
  return placement.cpus ? placement.cpus : placement.lifted_to;
}

template <typename Set>
std::optional<Set> ReadSet(const std::optional<std::string>& list) {
  if (!list) return std::nullopt;
  const StatusOr<Set> set = Set::Parse(*list);
  // An empty list is how a runtime says that it does not restrict the container.
  if (!set.ok() || set->empty()) return std::nullopt;
  return *set;
}

template <typename T>
std::optional<T> Changed(const std::optional<T>& wanted, const std::optional<T>& present) {
  return wanted == present ? std::nullopt : wanted;
}

}  // namespace

Effect DesiredEffect(const Container& container) {
  const Placement& placement = container.placement;
  const LinuxResources& requested = container.requested;
  return Effect{
      .cpus = CpusOf(placement),
      .mems = placement.mems,
      .cpu_shares = First(placement.cpu_shares, requested.cpu_shares),
      .cpu_quota = First(placement.cpu_quota, requested.cpu_quota),
      .cpu_period = First(placement.cpu_period, requested.cpu_period),
      .exclusive = placement.exclusive,
  };
}

bool IsDesired(const Effect& effect, const Container& container) {
  const Placement& placement = container.placement;
  const LinuxResources& requested = container.requested;
  return effect.cpus == CpusOf(placement) && effect.mems == placement.mems &&
         effect.cpu_shares == First(placement.cpu_shares, requested.cpu_shares) &&
         effect.cpu_quota == First(placement.cpu_quota, requested.cpu_quota) &&
         effect.cpu_period == First(placement.cpu_period, requested.cpu_period) &&
         effect.exclusive == placement.exclusive;
}

Effect ReportedEffect(const LinuxResources& resources) {
  return Effect{
      .cpus = ReadSet<CpuSet>(resources.cpuset_cpus),
      .mems = ReadSet<NodeSet>(resources.cpuset_mems),
      .cpu_shares = resources.cpu_shares,
      .cpu_quota = resources.cpu_quota,
      .cpu_period = resources.cpu_period,
      .exclusive = {},
  };
}

Effect Completed(Effect reported, const Container& container) {
  const Placement& placement = container.placement;
  const Effect desired = DesiredEffect(container);
  const auto complete = [](auto& value, const auto& overridden, const auto& requested) {
    if (!value && !overridden) value = requested;
  };
  complete(reported.cpu_shares, placement.cpu_shares, desired.cpu_shares);
  complete(reported.cpu_quota, placement.cpu_quota, desired.cpu_quota);
  complete(reported.cpu_period, placement.cpu_period, desired.cpu_period);
  return reported;
}

ResourceValues Difference(const Effect& wanted, const Effect& present) {
  return {
      .cpus = Changed(wanted.cpus, present.cpus),
      .mems = Changed(wanted.mems, present.mems),
      .cpu_shares = Changed(wanted.cpu_shares, present.cpu_shares),
      .cpu_quota = Changed(wanted.cpu_quota, present.cpu_quota),
      .cpu_period = Changed(wanted.cpu_period, present.cpu_period),
  };
}

}  // namespace resmgr
