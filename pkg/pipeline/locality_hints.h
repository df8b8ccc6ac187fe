// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "pkg/model/container.h"
#include "pkg/model/container_details.h"
#include "pkg/topology/device_locality.h"

namespace resmgr {

// A path of the host that may show where a container's data are.
struct HintPath {
  bool device = false;  // a device node; else a directory or file of a volume
  std::string source;   // "device /dev/nvme0n1", "mount /data" (the path in the container)
  std::string path;     // of the host
};

// The devices and the data volumes of a container, at most kMaxHints of each kind. Accesses no
// file.
inline constexpr size_t kMaxHints = 64;
std::vector<HintPath> HintPaths(const ContainerDetails& details);

// The location of each path, as far as sysfs has it; at most kMaxHints. Reads files, so it may
// block.
std::vector<LocalityHint> FindHints(const DeviceLocality& locality,
                                    const std::vector<HintPath>& paths);

}  // namespace resmgr
