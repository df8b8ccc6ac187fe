// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "pkg/claims/held_claims.h"
#include "pkg/config/dra_config.h"
#include "pkg/dra/driver.h"
#include "pkg/model/problem.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Problems of the driver for claims that are no failures of its sockets. Pure.

// So many claims hold CPUs, and the driver is off: the kubelet cannot tell of the ends of their
// pods.
Problem HeldWithoutDriver(size_t claims);

// Claims of another driver than the one that is served: the kubelet asks each driver for the
// release of its own claims. nullopt: there are none.
std::optional<Problem> HeldOfFormerDriver(const HeldClaims& held, const dra::Driver& now);

// Places of the machine that a pool has no room for. nullopt: each place is a device.
std::optional<Problem> NoRoomForDevices(const Machine& machine, DraDevices devices);

}  // namespace resmgr
