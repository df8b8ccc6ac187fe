// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pkg/dra/driver.h"
#include "pkg/dra/node_devices.h"

namespace resmgr {

// The request of cri_resmgr.v1.NodeClaims/ShowDevices. Names of attributes are those of
// dra-driver-cpu, in the domain of the driver; a compatible driver has its older names, too.
std::string DeviceReport(const dra::Driver& driver, const std::vector<dra::NodeDevice>& devices,
                         uint64_t beat);
// The request that says that there is to be no object.
std::string NoDeviceReport();

}  // namespace resmgr
