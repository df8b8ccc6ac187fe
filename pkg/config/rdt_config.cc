// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/rdt_config.h"

namespace resmgr {

void DescribeRdt(ConfigSection& /*classes*/, RdtConfig& /*config*/) {}

}  // namespace resmgr
