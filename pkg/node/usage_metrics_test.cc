// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/usage_metrics.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include "pkg/topology/machine_source.h"

namespace resmgr {
namespace {

using testing::HasSubstr;
using testing::Not;

// Its CPUs 0 to 3 are those of node 0.
UsageFigures Everything() {
  return {.containers = {{.subject = {.namespace_name = "ns", .pod = "web", .container = "main"},
                          .cpu_used = 1.5,
                          .throttled_percent = 10,
                          .pod_throttled_percent = 50,
                          .cpu_pressure = Pressure{.some60 = 25},
                          .memory_bytes = 12288,
                          .remote_bytes = 8192,
                          .remote_percent = 66,
                          .oom_kills = 1,
                          .high_events = 1,
                          .events = {.high = 40, .oom_kills = 2}}},
          .cpus = {{0, {.busy_percent = 100}},
                   {1, {.busy_percent = 100}},
                   {2, {.busy_percent = 50}},
                   {4, {.busy_percent = 7}}},
          .nodes = {{0, {.used_bytes = 1 << 20, .container_bytes = 12288}}},
          .pools = {{"shared",
                     {.cpu_used = 1.5,
                      .cpu_pressure = Pressure{.some60 = 25},
                      .memory_by_node = {{0, 4096}, {1, 8192}},
                      .remote_bytes = 8192}}},
          .monitors = {{"gold", {.llc_bytes = 100, .memory_bytes_per_second = 5}}},
          .files = 7,
          .cost = std::chrono::milliseconds(250)};
}

UsageMetrics::SeriesPtr Show(UsageMetrics& metrics, const UsageFigures& figures) {
  static const Machine machine = *LoadMachine("synthetic:numa:2 core:2 pu:2");
  return metrics.Show(figures, machine, UsageMetrics::MakeSeries(figures.containers));
}

std::string Text(const UsageMetrics& metrics) {
  return prometheus::TextSerializer().Serialize(metrics.collectable()->Collect());
}

TEST(UsageMetricsTest, ShowsPoolsNodesContainersAndTheCost) {
  UsageMetrics metrics;
  Show(metrics, Everything());
  Show(metrics, Everything());
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

TEST(UsageMetricsTest, WhatIsNotKnownHasNoSeries) {
  UsageFigures figures = Everything();
  figures.containers[0].remote_percent.reset();
  figures.containers.push_back(
      {.subject = {.namespace_name = "ns", .pod = "anew", .container = "main"},
       .oom_kills = 9,
       .reset = true});
  figures.pods = {{.name = "ns/gone", .count = 1}};
  figures.nodes[7] = {};
  UsageMetrics metrics;
  Show(metrics, figures);
  const std::string text = Text(metrics);
  EXPECT_THAT(text, Not(HasSubstr("container_memory_remote"))) << "it may have memory everywhere";
  EXPECT_THAT(text, Not(HasSubstr("pod=\"anew\"")));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_oom_kills_total 2\n")) << "counters that began anew";
  EXPECT_THAT(text, HasSubstr("numa_cpu_used{node=\"7\"} 0\n")) << "not known to the machine";
  EXPECT_THAT(text, Not(HasSubstr("numa_memory_used_bytes{node=\"7\"}")));
}

TEST(UsageMetricsTest, WhatHasGoneIsNotShownAnyMore) {
  UsageMetrics metrics;
  Show(metrics, Everything());
  Show(metrics, {});
  EXPECT_THAT(Text(metrics), Not(HasSubstr("shared")));
  EXPECT_THAT(Text(metrics), Not(HasSubstr("container_cpu")));
}

TEST(UsageMetricsTest, WhatIsNotKnownAnyMoreIsClearedAndSumsStay) {
  UsageMetrics metrics;
  Show(metrics, Everything());
  metrics.Clear();
  EXPECT_THAT(Text(metrics), Not(HasSubstr("_used")));
  EXPECT_THAT(Text(metrics), HasSubstr("cri_resmgr_usage_samples_total 1\n"));
}

TEST(UsageMetricsTest, OneNameIsOneSeries) {
  UsageMetrics metrics;
  UsageFigures figures = Everything();
  figures.containers.push_back(figures.containers[0]);
  figures.containers.back().cpu_used = 7;
  Show(metrics, figures);
  for (const auto& family : metrics.collectable()->Collect()) {
    if (!family.name.starts_with("cri_resmgr_container_")) continue;
    EXPECT_EQ(family.metric.size(), 1U) << family.name;
  }
  EXPECT_THAT(Text(metrics), HasSubstr("pod=\"web\"} 1.5\n"));
}

TEST(UsageMetricsTest, SeriesOfContainersAreBoundedAndTheRestIsCounted) {
  UsageMetrics metrics;
  UsageFigures figures = Everything();
  for (int i = 0; i < 1499; ++i) {
    figures.containers.push_back(figures.containers[0]);
    figures.containers.back().subject.pod = fmt::format("web-{}", i);
  }
  Show(metrics, figures);
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
  Show(metrics, Everything());
  const auto families = metrics.collectable()->Collect();
  EXPECT_EQ(families.size(), 21U);
  for (const auto& family : families) {
    ASSERT_TRUE(family.name.starts_with(kPrefix)) << family.name;
    EXPECT_THAT(page, HasSubstr("`" + family.name.substr(kPrefix.size())));
  }
}

}  // namespace
}  // namespace resmgr
