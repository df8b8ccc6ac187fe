// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/config/config_section.h"

namespace resmgr {

// Classes of scheduling and I/O priority.
struct SchedulingConfig {
  bool any() const { return *this != SchedulingConfig(); }
  friend bool operator==(const SchedulingConfig&, const SchedulingConfig&) = default;
};

// The key `scheduling` of the module `classes`.
void DescribeScheduling(ConfigSection& classes, SchedulingConfig& config);

}  // namespace resmgr
