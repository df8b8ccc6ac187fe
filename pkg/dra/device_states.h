// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "pkg/claims/claim.h"
#include "pkg/claims/held_claims.h"
#include "pkg/dra/device_health.h"
#include "pkg/dra/driver.h"
#include "pkg/topology/machine.h"

namespace resmgr::dra {

// How well the driver's devices at these places are, also where they have no room for claims, and
// after them those that only claims of this driver have: devices of a former configuration, or of
// CPUs that were offline when the daemon started. A kubelet takes a device that is not told for
// unknown. A device is unhealthy while all of its CPUs are `offline`. Pure.
std::vector<DeviceState> DeviceStates(const Driver& driver, std::span<const ClaimPart> places,
                                      const HeldClaims& held, const Machine& machine,
                                      const CpuSet& offline);

}  // namespace resmgr::dra
