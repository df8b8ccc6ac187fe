// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/base/status.h"
#include "pkg/docker/host_config_lists.h"

namespace resmgr::docker {

// Whether fields of HostConfig can say this file of cgroup v2: io.max or io.weight.
bool IsBlockioFile(std::string_view file);

// Adds BlkioWeight, BlkioWeightDevice and BlkioDevice{Read,Write}{Bps,IOps} with the meaning of the
// file. dockerd gets devices by their paths: udev has a link for each in /dev/block. Without a
// limit for any device the lists are empty. InvalidArgument: a malformed value. Pure.
Status AddBlockio(std::string_view file, std::string_view value, NewMembers& members);

}  // namespace resmgr::docker
