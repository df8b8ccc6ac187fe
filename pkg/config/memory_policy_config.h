// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/base/process_settings.h"
#include "pkg/config/config_section.h"

namespace resmgr {

// The nodes from which the kernel gives a container memory, in the users' form. A value.
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

}  // namespace resmgr
