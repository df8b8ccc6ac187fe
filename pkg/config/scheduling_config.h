// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/process_settings.h"
#include "pkg/base/status.h"
#include "pkg/config/config_section.h"

namespace resmgr {

// How the kernel schedules the processes of a container, and their I/O. A value type.
struct SchedulingClassConfig {
  std::string name{};
  SchedulerSettings scheduler{};  // kNone: unchanged
  IoPriority io_priority{};       // kNone: unchanged
  // The CPU time above its limit that a container may save up and use later, as a part of the
  // limit; never above the limit itself.
  std::optional<int64_t> burst_percent{};

  friend bool operator==(const SchedulingClassConfig&, const SchedulingClassConfig&) = default;
};

struct SchedulingConfig {
  std::vector<SchedulingClassConfig> classes{};  // with different names

  bool any() const { return !classes.empty(); }
  // nullptr: there is none of this name.
  const SchedulingClassConfig* Find(std::string_view name) const;
  friend bool operator==(const SchedulingConfig&, const SchedulingConfig&) = default;
};

// The key `scheduling` of the module `classes`: the keys of nri-plugins' schedulingClasses, but for
// times, which have units.
void DescribeScheduling(ConfigSection& classes, SchedulingConfig& config);

// "10ms", "500us", "1s", "2000ns", or a number alone, which are nanoseconds as in the kernel and
// the OCI's specification. InvalidArgument.
StatusOr<uint64_t> ParseNanoseconds(std::string_view text);

}  // namespace resmgr
