// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/classes/host_keeper.h"
#include "pkg/classes/rdt_masks.h"

namespace resmgr {

// Paths of HostFiles; a group is a directory in the first one.
inline constexpr std::string_view kResctrlRoot = "sys/fs/resctrl";
inline constexpr std::string_view kResctrlSchemata = "sys/fs/resctrl/schemata";

std::string RdtGroupPath(std::string_view group);
std::string RdtGroupFile(std::string_view group, std::string_view file);

// The abilities of the machine, and the groups that there are.
struct RdtHost {
  RdtMachine machine{};
  uint32_t most_groups = 0;           // the root included
  std::vector<std::string> groups{};  // names, sorted; without the root
};

// Reads /sys/fs/resctrl. NotFound: it is not mounted, or the machine has none. May block.
StatusOr<RdtHost> ReadRdt(HostKeeper& host);

}  // namespace resmgr
