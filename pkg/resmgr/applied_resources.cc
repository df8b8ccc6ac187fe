// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/applied_resources.h"

#include <optional>

namespace resmgr {
namespace {

using Number = std::optional<int64_t>;

const Number& First(const Number& later, const Number& placed, const Number& requested) {
  return later ? later : placed ? placed : requested;
}

const Number& SharesOf(const Container& container) {
  return First(container.set_later.cpu_shares, container.placement.cpu_shares,
               container.requested.cpu_shares);
}

const Number& QuotaOf(const Container& container) {
  return First(container.set_later.cpu_quota, container.placement.cpu_quota,
               container.requested.cpu_quota);
}

const Number& PeriodOf(const Container& container) {
  return First(container.set_later.cpu_period, container.placement.cpu_period,
               container.requested.cpu_period);
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
  return {{.cpus = placement.EnforcedCpus(),
           .mems = placement.mems,
           .cpu_shares = SharesOf(container),
           .cpu_quota = QuotaOf(container),
           .cpu_period = PeriodOf(container)},
          placement.exclusive};
}

bool IsDesired(const AppliedResources& resources, const Container& container) {
  const Placement& placement = container.placement;
  // Compares numbers first: these mostly differ even between containers that share CPUs.
  return resources.cpu_shares == SharesOf(container) && resources.cpu_quota == QuotaOf(container) &&
         resources.cpu_period == PeriodOf(container) &&
         resources.cpus == placement.EnforcedCpus() && resources.mems == placement.mems &&
         resources.exclusive == placement.exclusive;
}

AppliedResources ReportedResources(const LinuxResources& resources) {
  return {ReadValues(resources), /*exclusive=*/{}};
}

AppliedResources Completed(AppliedResources reported, const Container& container) {
  const Placement& placement = container.placement;
  const auto complete = [](Number& value, const Number& overridden, const Number& desired) {
    if (!value && !overridden) value = desired;
  };
  complete(reported.cpu_shares, placement.cpu_shares, SharesOf(container));
  complete(reported.cpu_quota, placement.cpu_quota, QuotaOf(container));
  complete(reported.cpu_period, placement.cpu_period, PeriodOf(container));
  return reported;
}

}  // namespace resmgr
