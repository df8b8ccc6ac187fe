// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pkg/base/process_settings.h"
#include "pkg/config/config_section.h"

namespace resmgr {

// The nodes on which the kernel allocates a container's memory, in the users' form. A value type.
struct MemoryPolicyConfig {
  MemoryPolicySettings::Mode mode = MemoryPolicySettings::Mode::kDefault;
  // "all", "allowed-mems", "cpu-nodes", "cpu-packages", "max-dist:N", or a list of nodes ("0-1,3");
  // empty: none, for the modes that need none.
  std::string nodes{};
  std::vector<MemoryPolicySettings::Flag> flags{};

  friend bool operator==(const MemoryPolicyConfig&, const MemoryPolicyConfig&) = default;
};

// The keys of a memory policy: of a class, and of a pod's annotation.
void DescribeMemoryPolicy(ConfigSection& section, MemoryPolicyConfig& config);

// "interleave", ...
std::string_view ToString(MemoryPolicySettings::Mode mode);
std::string_view ToString(MemoryPolicySettings::Flag flag);

// How the kernel treats the memory of a container before it reaches its limit (cgroup v2). The
// values are texts of the files memory.high and so on, in bytes or "max"; "" leaves the file
// unchanged.
struct MemoryClassConfig {
  std::string name{};
  // The part of the memory limit that may be in swap: memory.high is the rest, and swap is not
  // limited.
  std::optional<double> swap_limit_ratio{};
  std::string high{};
  std::string low{};
  std::string min{};
  std::string swap_max{};
  // The policy by which the container's memory is allocated. A class may consist of a policy alone.
  std::optional<MemoryPolicyConfig> policy{};

  friend bool operator==(const MemoryClassConfig&, const MemoryClassConfig&) = default;
};

// The key `memory` of the module `classes`.
void DescribeMemoryClasses(ConfigSection& classes, std::vector<MemoryClassConfig>& memory);

}  // namespace resmgr
