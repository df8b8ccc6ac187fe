// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/usage_config.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "pkg/config/config.h"

namespace resmgr {
namespace {

StatusOr<UsageConfig> ReadUsageText(std::string_view text) {
  RESMGR_ASSIGN_OR_RETURN(const Config config, ParseConfig(text, "f", {}));
  return config.usage;
}

TEST(UsageConfigTest, ReadsEveryKey) {
  const UsageConfig expected{.interval = std::chrono::seconds(30),
                             .per_container_metrics = true,
                             .rebalance_every = std::chrono::minutes(10),
                             .rebalance_moves = 2};
  EXPECT_EQ(ReadUsageText("usage: {Interval: 30s, PerContainerMetrics: true, RebalanceInterval: "
                          "10m, RebalanceMoves: 2}")
                .value(),
            expected);
  for (const std::string_view text : {"", "usage:", "usage: {}"})
    EXPECT_EQ(ReadUsageText(text).value(), UsageConfig()) << text;
  EXPECT_EQ(UsageConfig().interval, std::chrono::seconds(10));
}

TEST(UsageConfigTest, NothingMovesByItselfUnlessItIsSaid) {
  EXPECT_EQ(UsageConfig().rebalance_every.count(), 0);
  EXPECT_EQ(ReadUsageText("usage: {RebalanceInterval: disabled}").value(), UsageConfig());
  for (const char* const wrong :
       {"RebalanceInterval: 59s", "RebalanceMoves: 0", "RebalanceMoves: 101"})
    EXPECT_FALSE(ReadUsageText(fmt::format("usage: {{{}}}", wrong)).ok()) << wrong;
}

TEST(UsageConfigTest, MistakesHaveTheirPlace) {
  for (const char* const wrong : {"0s", "500ms", "6m", "10", "disabled"}) {
    EXPECT_EQ(
        Message(ReadUsageText(fmt::format("usage: {{Interval: {}}}", wrong)).status()),
        fmt::format("f:1: usage.Interval: \"{}\" is not a time from 1s to 5m, as in 1m30s", wrong));
  }
}

}  // namespace
}  // namespace resmgr
