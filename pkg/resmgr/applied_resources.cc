// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/applied_resources.h"

#include "pkg/model/cpu_numbers.h"

namespace resmgr {
namespace {

const CpuNumber& First(const CpuNumber& later, const CpuNumber& placed,
                       const CpuNumber& requested) {
  return later ? later : placed ? placed : requested;
}

}  // namespace

CpuNumbers NumbersInForce(const NumbersSetLater& later, const ResourceValues& placed,
                          const LinuxResources& requested) {
  return {.shares = First(later.cpu_shares, placed.cpu_shares, requested.cpu_shares),
          .quota = First(later.cpu_quota, placed.cpu_quota, requested.cpu_quota),
          .period = First(later.cpu_period, placed.cpu_period, requested.cpu_period)};
}

AppliedResources DesiredResources(const Container& container) {
  const Placement& placement = container.placement;
  AppliedResources desired{{.cpus = placement.EnforcedCpus(), .mems = placement.mems},
                           placement.exclusive};
  ForEachCpuNumber([](CpuNumber& value, const auto&... choice) { value = First(choice...); },
                   desired, container.set_later, placement, container.requested);
  return desired;
}

bool IsDesired(const AppliedResources& resources, const Container& container) {
  const Placement& placement = container.placement;
  // Compares numbers first: these mostly differ even between containers that share CPUs.
  bool same = true;
  ForEachCpuNumber([&same](const CpuNumber& value,
                           const auto&... choice) { same = same && value == First(choice...); },
                   resources, container.set_later, placement, container.requested);
  return same && resources.cpus == placement.EnforcedCpus() && resources.mems == placement.mems &&
         resources.exclusive == placement.exclusive;
}

AppliedResources ReportedResources(const LinuxResources& resources) {
  return {ReadValues(resources), /*exclusive=*/{}};
}

AppliedResources Completed(AppliedResources reported, const Container& container) {
  const auto complete = [](CpuNumber& value, const CpuNumber& later, const CpuNumber& placed,
                           const CpuNumber& requested) {
    if (!value && !placed) value = First(later, placed, requested);
  };
  ForEachCpuNumber(complete, reported, container.set_later, container.placement,
                   container.requested);
  return reported;
}

}  // namespace resmgr
