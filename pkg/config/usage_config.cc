// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/usage_config.h"

namespace resmgr {

void DescribeUsage(ConfigSection& root, UsageConfig& config) {
  root.Map("usage", [&config](ConfigSection& usage) {
    usage.Duration("Interval", std::chrono::seconds(1), std::chrono::minutes(5), config.interval,
                   "how often the daemon samples what containers use, from `1s` to `5m`; only "
                   "while metrics are served or a client looks");
    usage.Bool("PerContainerMetrics", config.per_container_metrics,
               "`true`: the metrics also have series of single containers, of the first 1,000 of "
               "them");
  });
}

}  // namespace resmgr
