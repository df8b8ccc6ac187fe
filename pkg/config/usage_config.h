// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "pkg/config/config_node.h"
#include "pkg/config/map_reader.h"

namespace resmgr {

// Configures the samples of what containers use (pkg/usage).
struct UsageConfig {
  std::chrono::milliseconds interval = std::chrono::seconds(10);
  bool per_container_metrics = false;

  friend bool operator==(const UsageConfig&, const UsageConfig&) = default;
};

// Reads the module `usage`.
void ReadUsage(MapReader& usage, UsageConfig& config);
// The configuration for printing, with every option.
ConfigNode UsageNode(const UsageConfig& config);

}  // namespace resmgr
