// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/classes/class_needs.h"
#include "pkg/classes/host_files.h"
#include "pkg/config/classes_config.h"

namespace resmgr {

// Names of classes of isolation: "10us", "isolated".
std::string LatencyName(const std::string& text);
std::string PartitionName(IsolationConfig::Partition partition);

// The classes that the isolation consists of; `source` asks for it. "0", any latency, needs
// nothing. Pure.
std::vector<AskedClass> AskedIsolation(const IsolationConfig& isolation, std::string_view source);

// The kinds of isolation for which the machine or its kernel lacks something, whichever container
// asks. May block.
AbsentKinds FindAbsentIsolation(HostFiles& files);

// Whether the kernel is older than this version; false if it does not tell. May block.
bool IsKernelOlderThan(HostFiles& files, int64_t major, int64_t minor);

}  // namespace resmgr
