// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/usage_metrics.h"

#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

namespace resmgr {
namespace {

using testing::HasSubstr;
using testing::Not;

UsageMetrics::Sample Everything() {
  return {.pools = {{.name = "shared",
                     .cpu_used = 1.5,
                     .cpu_pressure = 0.25,
                     .memory_by_node = {{0, 4096}, {1, 8192}},
                     .remote_bytes = 8192}},
          .nodes = {{.id = 0, .cpu_used = 2.5, .memory_bytes = 1 << 20, .container_bytes = 12288}},
          .containers = {{.namespace_name = "ns",
                          .pod = "web",
                          .name = "main",
                          .cpu_used = 1.5,
                          .throttled = 0.5,
                          .cpu_pressure = 0.25,
                          .memory_bytes = 12288,
                          .remote_bytes = 8192,
                          .oom_kills = 2,
                          .memory_high = 40}},
          .monitors = {{.group = "gold", .llc_bytes = 100, .bandwidth = 5}},
          .cost_seconds = 0.25,
          .files = 7,
          .oom_kills = 1};
}

std::string Text(const UsageMetrics& metrics) {
  return prometheus::TextSerializer().Serialize(metrics.collectable()->Collect());
}

TEST(UsageMetricsTest, ShowsPoolsNodesContainersAndTheCost) {
  UsageMetrics metrics;
  metrics.Show(Everything());
  metrics.Show(Everything());
  const std::string text = Text(metrics);
  for (const char* const line : {
           "cri_resmgr_pool_cpu_used{pool=\"shared\"} 1.5\n",
           "cri_resmgr_pool_cpu_pressure_ratio{pool=\"shared\"} 0.25\n",
           "cri_resmgr_pool_memory_used_bytes{node=\"1\",pool=\"shared\"} 8192\n",
           "cri_resmgr_pool_memory_remote_bytes{pool=\"shared\"} 8192\n",
           "cri_resmgr_numa_cpu_used{node=\"0\"} 2.5\n",
           "cri_resmgr_numa_memory_container_bytes{node=\"0\"} 12288\n",
           "cri_resmgr_container_cpu_used{container=\"main\",namespace=\"ns\",pod=\"web\"} 1.5\n",
           "cri_resmgr_container_cpu_throttled_ratio{container=\"main\",namespace=\"ns\","
           "pod=\"web\"} 0.5\n",
           "# TYPE cri_resmgr_container_oom_kills_total counter\n",
           "cri_resmgr_container_oom_kills_total{container=\"main\",namespace=\"ns\","
           "pod=\"web\"} 2\n",
           "cri_resmgr_container_memory_high_total{container=\"main\",namespace=\"ns\","
           "pod=\"web\"} 40\n",
           "cri_resmgr_oom_kills_total 2\n",
           "cri_resmgr_resctrl_llc_occupancy_bytes{group=\"gold\"} 100\n",
           "cri_resmgr_usage_samples_total 2\n",
           "cri_resmgr_usage_sample_seconds_total 0.5\n",
           "cri_resmgr_usage_files_read_total 14\n",
           "cri_resmgr_usage_series_left_out_total 0\n",
       })
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(UsageMetricsTest, WhatHasGoneIsNotShownAnyMore) {
  UsageMetrics metrics;
  metrics.Show(Everything());
  metrics.Show({});
  EXPECT_THAT(Text(metrics), Not(HasSubstr("shared")));
  EXPECT_THAT(Text(metrics), Not(HasSubstr("container_cpu")));
}

TEST(UsageMetricsTest, WhatIsNotKnownAnyMoreIsClearedAndSumsStay) {
  UsageMetrics metrics;
  metrics.Show(Everything());
  metrics.Clear();
  EXPECT_THAT(Text(metrics), Not(HasSubstr("_used")));
  EXPECT_THAT(Text(metrics), HasSubstr("cri_resmgr_usage_samples_total 1\n"));
}

TEST(UsageMetricsTest, OneNameIsOneSeries) {
  UsageMetrics metrics;
  UsageMetrics::Sample sample = Everything();
  sample.containers.push_back(sample.containers[0]);
  sample.containers.back().cpu_used = 7;
  metrics.Show(sample);
  for (const auto& family : metrics.collectable()->Collect()) {
    if (!family.name.starts_with("cri_resmgr_container_")) continue;
    EXPECT_EQ(family.metric.size(), 1U) << family.name;
  }
  EXPECT_THAT(Text(metrics), HasSubstr("pod=\"web\"} 1.5\n"));
}

TEST(UsageMetricsTest, SeriesOfContainersAreBoundedAndTheRestIsCounted) {
  UsageMetrics metrics;
  UsageMetrics::Sample sample = Everything();
  for (int i = 0; i < 1499; ++i) {
    sample.containers.push_back(sample.containers[0]);
    sample.containers.back().pod = fmt::format("web-{}", i);
  }
  metrics.Show(sample);
  size_t series = 0;
  for (const auto& family : metrics.collectable()->Collect())
    if (family.name.starts_with("cri_resmgr_container_")) series += family.metric.size();
  EXPECT_LE(series, UsageMetrics::kMostContainerSeries);
  const size_t left_out = size_t{1500} * 7 - series;
  EXPECT_THAT(Text(metrics),
              HasSubstr(fmt::format("cri_resmgr_usage_series_left_out_total {}\n", left_out)));
  EXPECT_GT(series, UsageMetrics::kMostContainerSeries - 7);
}

TEST(UsageMetricsTest, EachIsDocumented) {
  std::ifstream file(RESMGR_SOURCE_DIR "/docs/metrics.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  constexpr std::string_view kPrefix = "cri_resmgr_";
  UsageMetrics metrics;
  metrics.Show(Everything());
  const auto families = metrics.collectable()->Collect();
  EXPECT_EQ(families.size(), 21U);
  for (const auto& family : families) {
    ASSERT_TRUE(family.name.starts_with(kPrefix)) << family.name;
    EXPECT_THAT(page, HasSubstr("`" + family.name.substr(kPrefix.size())));
  }
}

}  // namespace
}  // namespace resmgr
