// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

namespace resmgr {

// The memory of a cgroup by memory nodes, in bytes.
struct NumaStat {
  std::map<int, int64_t> anonymous{};  // the cgroup's own memory
  std::map<int, int64_t> files{};      // pages of files that the cgroup was the first to read

  // Both together.
  std::map<int, int64_t> All() const;
};

// Reads memory.numa_stat: "anon N0=4096 N1=0" in bytes on cgroup v2, "anon=1 N0=1 N1=0" in pages on
// v1, where the lines about the cgroups below ("hierarchical_anon") count if `below`. Other lines
// are left out.
NumaStat ParseNumaStat(std::string_view text, bool unified, bool below);

}  // namespace resmgr
