// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/cpu_classes_config.h"

namespace resmgr {

void DescribeCpuClasses(ConfigSection& /*classes*/, CpuClassesConfig& /*config*/) {}

}  // namespace resmgr
