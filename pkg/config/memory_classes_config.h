// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pkg/config/config_section.h"
#include "pkg/config/memory_policy_config.h"

namespace resmgr {

// How the kernel treats the memory of a container before it reaches its limit (cgroup v2). The
// values are texts of the files memory.high and so on, in bytes or "max"; "" leaves the file
// unchanged.
struct MemoryClassConfig {
  std::string name{};
  // The part of the limit that is to be in swap: memory.high is the rest, and swap is not limited.
  std::optional<double> swap_limit_ratio{};
  std::string high{};
  std::string low{};
  std::string min{};
  std::string swap_max{};
  // The policy by which the container's memory is allocated; a class may have nothing else.
  std::optional<MemoryPolicyConfig> policy{};

  friend bool operator==(const MemoryClassConfig&, const MemoryClassConfig&) = default;
};

// The key `memory` of the module `classes`.
void DescribeMemoryClasses(ConfigSection& classes, std::vector<MemoryClassConfig>& memory);

}  // namespace resmgr
