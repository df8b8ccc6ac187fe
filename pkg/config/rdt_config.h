// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/config/config_section.h"

namespace resmgr {

// Classes of caches and memory bandwidth.
struct RdtConfig {
  bool any() const { return *this != RdtConfig(); }
  friend bool operator==(const RdtConfig&, const RdtConfig&) = default;
};

// The key `rdt` of the module `classes`.
void DescribeRdt(ConfigSection& classes, RdtConfig& config);

}  // namespace resmgr
