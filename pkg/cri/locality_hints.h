// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "pkg/model/container.h"
#include "pkg/topology/device_locality.h"

namespace resmgr {

// Where the devices and the data volumes of a ContainerConfig are, as far as sysfs tells: "device
// /dev/nvme0n1", "mount /data" (the path in the container). At most kMaxHints of them; reads files.
inline constexpr size_t kMaxHints = 64;
std::vector<LocalityHint> FindHints(const DeviceLocality& locality, std::string_view config);

}  // namespace resmgr
