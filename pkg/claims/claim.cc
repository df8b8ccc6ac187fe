// SPDX-License-Identifier: Apache-2.0
#include "pkg/claims/claim.h"

namespace resmgr {

CpuSet ClaimGrant::All() const {
  CpuSet all;
  for (const CpuSet& part : cpus)
    all |= part;
  return all;
}

}  // namespace resmgr
