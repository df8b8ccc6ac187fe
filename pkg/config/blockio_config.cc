// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/blockio_config.h"

namespace resmgr {

void DescribeBlockio(ConfigSection& /*classes*/, BlockioConfig& /*config*/) {}

}  // namespace resmgr
