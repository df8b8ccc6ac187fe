// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pkg/claims/held_claims.h"
#include "pkg/config/module_configs.h"
#include "pkg/dra/driver.h"
#include "pkg/model/problem.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The request of cri_resmgr.v1.NodeClaims/ShowDevices. Names of attributes are those of
// dra-driver-cpu, in the domain of the driver; a compatible driver has its older names, too.
std::string DeviceReport(const dra::Driver& driver, const std::vector<dra::NodeDevice>& devices,
                         uint64_t beat);
// The request that says that there is to be no object.
std::string NoDeviceReport();

// Problems of the driver for claims that are no failures of its sockets. Pure.

// This number of claims holds CPUs while the driver is off: the kubelet cannot report the end of
// their pods.
Problem HeldWithoutDriver(size_t claims);

// Claims of another driver than the one that is served: the kubelet asks each driver for the
// release of its own claims. nullopt: there are none.
std::optional<Problem> HeldOfFormerDriver(const HeldClaims& held, const dra::Driver& now);

// Places of the machine that a pool has no room for. nullopt: each place is a device.
std::optional<Problem> NoRoomForDevices(const Machine& machine, DraDevices devices);

}  // namespace resmgr
