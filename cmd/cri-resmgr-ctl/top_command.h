// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "cmd/cri-resmgr-ctl/daemon_command.h"

namespace resmgr {

// The list of containers in the order of a key ("cpu", "throttled", "pressure", "memory", "remote":
// the largest first, what is not known last; "name").
Reply SortedUsage(Reply containers, std::string_view key);
// The outputs for people.
std::string ContainersUsageText(const Reply& containers, const TableStyle& style = {},
                                bool wide = false);
std::string NodesUsageText(const Reply& nodes, const TableStyle& style = {});
std::string CpusText(const Reply& cpus, const TableStyle& style = {}, bool wide = false);

}  // namespace resmgr
