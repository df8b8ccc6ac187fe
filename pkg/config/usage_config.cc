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
    usage.Duration("RebalanceInterval", std::chrono::minutes(1), std::chrono::hours(24),
                   config.rebalance_every,
                   "how often containers are moved between shared pools by what they use, as by "
                   "`cri-resmgr-ctl rebalance -by use -apply`; samples are then always taken",
                   "disabled");
    usage.Int("RebalanceMoves", 1, 100, config.rebalance_moves,
              "how many containers each of these rebalances moves at most");
  });
}

}  // namespace resmgr
