// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "pkg/config/config_section.h"

namespace resmgr {

// Configures the samples of what containers use (pkg/usage).
struct UsageConfig {
  std::chrono::milliseconds interval = std::chrono::seconds(10);
  bool per_container_metrics = false;
  // How often containers are moved by use without being asked for; 0: never.
  std::chrono::milliseconds rebalance_every{0};
  int64_t rebalance_moves = 5;  // at most, each time

  friend bool operator==(const UsageConfig&, const UsageConfig&) = default;
};

// The module `usage`.
void DescribeUsage(ConfigSection& root, UsageConfig& config);

}  // namespace resmgr
