// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/scheduling_config.h"

namespace resmgr {

void DescribeScheduling(ConfigSection& /*classes*/, SchedulingConfig& /*config*/) {}

}  // namespace resmgr
