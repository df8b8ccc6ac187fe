// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/applied_resources.h"

#include <optional>

namespace resmgr {
namespace {

template <typename T>
const std::optional<T>& First(const std::optional<T>& a, const std::optional<T>& b) {
  return a ? a : b;
}

}  // namespace

AppliedResources DesiredResources(const Container& container) {
  const Placement& placement = container.placement;
  const LinuxResources& requested = container.requested;
  return {{.cpus = placement.EnforcedCpus(),
           .mems = placement.mems,
           .cpu_shares = First(placement.cpu_shares, requested.cpu_shares),
           .cpu_quota = First(placement.cpu_quota, requested.cpu_quota),
           .cpu_period = First(placement.cpu_period, requested.cpu_period)},
          placement.exclusive};
}

bool IsDesired(const AppliedResources& resources, const Container& container) {
  const Placement& placement = container.placement;
  const LinuxResources& requested = container.requested;
  // Numbers first: containers that share CPUs mostly differ in these.
  return resources.cpu_shares == First(placement.cpu_shares, requested.cpu_shares) &&
         resources.cpu_quota == First(placement.cpu_quota, requested.cpu_quota) &&
         resources.cpu_period == First(placement.cpu_period, requested.cpu_period) &&
         resources.cpus == placement.EnforcedCpus() && resources.mems == placement.mems &&
         resources.exclusive == placement.exclusive;
}

AppliedResources ReportedResources(const LinuxResources& resources) {
  return {ReadValues(resources), /*exclusive=*/{}};
}

AppliedResources Completed(AppliedResources reported, const Container& container) {
  const Placement& placement = container.placement;
  const LinuxResources& requested = container.requested;
  const auto complete = [](auto& value, const auto& overridden, const auto& request) {
    if (!value && !overridden) value = request;
  };
  complete(reported.cpu_shares, placement.cpu_shares, requested.cpu_shares);
  complete(reported.cpu_quota, placement.cpu_quota, requested.cpu_quota);
  complete(reported.cpu_period, placement.cpu_period, requested.cpu_period);
  return reported;
}

}  // namespace resmgr
