// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace resmgr {

// The numbers of a container's CPU in a runtime's report. An empty value is one that is not
// reported; runtimes also report 0 for that.
struct CpuNumbers {
  std::optional<int64_t> shares{};
  std::optional<int64_t> quota{};   // microseconds per period; -1 is no limit
  std::optional<int64_t> period{};  // microseconds
  // The report has a cgroup v2 file with the meaning of `shares` (unified_files.h).
  bool shares_in_file = false;

  friend bool operator==(const CpuNumbers&, const CpuNumbers&) = default;
};

}  // namespace resmgr
