// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/adjustment.h"

namespace resmgr {

Adjustment ToAdjustment(const Placement& placement) {
  Adjustment adjustment;
  if (placement.cpus) adjustment.cpuset_cpus = placement.cpus->ToString();
  if (placement.mems) adjustment.cpuset_mems = placement.mems->ToString();
  adjustment.cpu_shares = placement.cpu_shares;
  adjustment.cpu_quota = placement.cpu_quota;
  adjustment.cpu_period = placement.cpu_period;
  return adjustment;
}

}  // namespace resmgr
