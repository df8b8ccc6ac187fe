// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/config/config_section.h"

namespace resmgr {

// Classes of block I/O.
struct BlockioConfig {
  bool any() const { return *this != BlockioConfig(); }
  friend bool operator==(const BlockioConfig&, const BlockioConfig&) = default;
};

// The key `blockio` of the module `classes`.
void DescribeBlockio(ConfigSection& classes, BlockioConfig& config);

}  // namespace resmgr
