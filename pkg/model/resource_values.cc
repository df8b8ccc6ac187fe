// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/resource_values.h"

namespace resmgr {

ResourceValues ToResourceValues(const Placement& placement) {
  return {
      .cpus = placement.cpus,
      .mems = placement.mems,
      .cpu_shares = placement.cpu_shares,
      .cpu_quota = placement.cpu_quota,
      .cpu_period = placement.cpu_period,
  };
}

LinuxResources AsResources(const ResourceValues& adjustment) {
  LinuxResources resources;
  resources.cpu_period = adjustment.cpu_period;
  resources.cpu_quota = adjustment.cpu_quota;
  resources.cpu_shares = adjustment.cpu_shares;
  if (adjustment.cpus) resources.cpuset_cpus = adjustment.cpus->ToString();
  if (adjustment.mems) resources.cpuset_mems = adjustment.mems->ToString();
  return resources;
}

}  // namespace resmgr
