// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/config/config_section.h"

namespace resmgr {

// Classes of CPUs: clocks, idle states.
struct CpuClassesConfig {
  bool any() const { return *this != CpuClassesConfig(); }
  friend bool operator==(const CpuClassesConfig&, const CpuClassesConfig&) = default;
};

// The key `cpu` of the module `classes`.
void DescribeCpuClasses(ConfigSection& classes, CpuClassesConfig& config);

}  // namespace resmgr
