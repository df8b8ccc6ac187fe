// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/usage_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/topology/machine_source.h"

namespace resmgr {
namespace {

using testing::IsEmpty;
using testing::Optional;
using testing::SizeIs;

TEST(UsageWatchTest, FiguresBecomeMetrics) {
  const auto machine = LoadMachine("synthetic:numa:2 core:2 pu:1");
  ASSERT_TRUE(machine.ok()) << machine.status();
  const UsageFigures figures{
      .containers = {{.subject = {.namespace_name = "ns", .pod = "web", .container = "main"},
                      .cpu_used = 0.5,
                      .throttled_percent = 10,
                      .pod_throttled_percent = 50,
                      .remote_bytes = 7,
                      .oom_kills = 2,
                      .high_events = 1,
                      .events = {.high = 40, .oom_kills = 3}},
                     {.subject = {.namespace_name = "ns", .pod = "anew", .container = "main"},
                      .oom_kills = 9,
                      .reset = true}},
      .pods = {{.name = "ns/gone", .count = 1}},
      .cpus = {{0, {.busy_percent = 50}}, {1, {.busy_percent = 100}}, {2, {.busy_percent = 7}}},
      .nodes = {{0, {.used_bytes = 4096, .container_bytes = 1024}}, {7, {}}},
      .pools = {{"shared", {.cpu_used = 0.5, .cpu_pressure = Pressure{.some60 = 20}}}},
      .files = 9,
      .cost = std::chrono::milliseconds(500)};
  const UsageMetrics::Sample sample = UsageMetricsOf(figures, *machine, true);
  ASSERT_THAT(sample.nodes, SizeIs(2));
  EXPECT_DOUBLE_EQ(sample.nodes[0].cpu_used, 1.5);
  EXPECT_THAT(sample.nodes[0].memory_bytes, Optional(4096));
  EXPECT_DOUBLE_EQ(sample.nodes[1].cpu_used, 0) << "not known to the machine";
  ASSERT_THAT(sample.pools, SizeIs(1));
  EXPECT_THAT(sample.pools[0].cpu_pressure, Optional(0.2));
  ASSERT_THAT(sample.containers, SizeIs(2));
  EXPECT_THAT(sample.containers[0].throttled, Optional(0.5));
  EXPECT_FALSE(sample.containers[0].remote_bytes) << "it may have memory everywhere";
  EXPECT_THAT(sample.containers[0].oom_kills, Optional(3)) << "since its start";
  EXPECT_THAT(sample.containers[0].memory_high, Optional(40));
  EXPECT_FALSE(sample.containers[1].oom_kills);
  EXPECT_EQ(sample.oom_kills, 3U) << "without counters that began anew";
  EXPECT_DOUBLE_EQ(sample.cost_seconds, 0.5);
  EXPECT_EQ(sample.files, 9U);
  EXPECT_THAT(UsageMetricsOf(figures, *machine, false).containers, IsEmpty());
}

}  // namespace
}  // namespace resmgr
