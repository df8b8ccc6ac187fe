// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/claims/held_claims.h"
#include "pkg/config/module_configs.h"
#include "pkg/dra/driver.h"
#include "pkg/model/problem.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The request of cri_resmgr.v1.NodeClaims/ShowDevices. Attributes are named as in dra-driver-cpu,
// but in the driver's own domain; a compatible driver has the older names, too.
std::string DeviceReport(const dra::Driver& driver, const std::vector<dra::NodeDevice>& devices,
                         uint64_t beat);
// The request for removing the object with the node's devices.
std::string NoDeviceReport();

// Problems of the driver with claims, other than failures of its sockets. Pure.

// Reports that `claims` claims hold CPUs while the driver is off, so the kubelet cannot report the
// end of their pods.
Problem HeldWithoutDriver(size_t claims);

// Reports claims of another driver than the served one: the kubelet asks each driver only for the
// release of its own claims. nullopt if there are none.
std::optional<Problem> HeldOfFormerDriver(const HeldClaims& held, const dra::Driver& now);

// Reports that no agent takes the devices, so that no ResourceSlice is written. OK: the agent has
// not answered.
Problem DevicesUntaken(const Status& why);

// Reports places of the machine for which a pool has no room. nullopt if each place is a device.
std::optional<Problem> NoRoomForDevices(const Machine& machine, DraDevices devices);

}  // namespace resmgr
