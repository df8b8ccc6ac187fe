// SPDX-License-Identifier: Apache-2.0
// The metrics in sample-configs/monitoring are served. scripts/test-monitoring asks a real
// Prometheus.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>
#include <prometheus/text_serializer.h>

#include "pkg/metrics/metrics.h"
#include "pkg/metrics/node_metrics.h"
#include "pkg/node/usage_metrics.h"
#include "pkg/topology/machine_source.h"

namespace resmgr {
namespace {

using testing::IsEmpty;

constexpr std::string_view kCommonPrefix = "cri_resmgr_";

std::set<std::string> Names(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), regex); at != std::sregex_iterator(); ++at)
    names.insert((*at)[1]);
  return names;
}

std::set<std::string> Without(const std::set<std::string>& names,
                              const std::set<std::string>& others) {
  std::set<std::string> rest;
  std::ranges::set_difference(names, others, std::inserter(rest, rest.end()));
  return rest;
}

// All families of a daemon in which each event has happened once.
std::vector<prometheus::MetricFamily> Families() {
  Metrics metrics("1.2.3", {"/runtime.v1.RuntimeService/Version"});
  metrics.Calls("/runtime.v1.RuntimeService/Version", Metrics::CallKind::kPassthrough).Count(0);
  metrics.Calls("/runtime.v1.RuntimeService/Version", Metrics::CallKind::kPassthrough)
      .Took(std::chrono::seconds(1), std::chrono::seconds(1));
  metrics.CountDroppedPlacement("nri");
  metrics.CountDroppedKeys("hooks");
  metrics.CountIgnoredFailure("nri");
  metrics.CountStageRefusal("nri");
  metrics.Plugin("nri", "10-logger").Failed();
  metrics.WaitedForStage("nri", std::chrono::milliseconds(1));
  metrics.SetReadyPlugins("nri", 1);
  metrics.ShowRuntime("kata", {.connected = true});
  metrics.SetConnections(Metrics::Peer::kClient, 1);
  metrics.Bytes(Metrics::Peer::kClient);
  NodeMetrics node;
  node.Decided(NodeMetrics::Operation::kAllocate, std::chrono::milliseconds(1));
  node.Refused("RESOURCE_EXHAUSTED");
  node.Audited({.drifted = 1});
  node.Configured(true);
  node.PodEvents(1, 1);
  node.SchedulerViewMade(std::chrono::milliseconds(1));
  node.ClaimsAnswered({.prepare = true, .ok = 1});
  node.Lagged(std::chrono::milliseconds(1));
  const NodeMetrics::Pool pool{.name = "shared", .type = "batch"};
  node.ShowPools({&pool, 1});
  node.ShowProblems("drift", 1);
  node.ShowClaims(1, {{0, 2}});
  node.Show({});
  UsageMetrics usage;
  const UsageFigures figures{
      .containers = {{.subject = {.namespace_name = "ns", .pod = "web", .container = "main"},
                      .cpu_used = 1,
                      .throttled_percent = 50,
                      .cpu_pressure = Pressure{.some60 = 50},
                      .memory_bytes = 1,
                      .remote_bytes = 1,
                      .remote_percent = 100,
                      .events = {.high = 1, .oom_kills = 1}}},
      .nodes = {{0, {.used_bytes = 4096}}},
      .pools = {{"shared",
                 {.cpu_pressure = Pressure{.some60 = 50}, .memory_by_node = {{0, 4096}}}}},
      .monitors = {{"gold", {.llc_bytes = 100, .memory_bytes_per_second = 5}}}};
  usage.Show(figures, *LoadMachine("synthetic:core:1 pu:1"),
             UsageMetrics::MakeSeries(figures.containers));
  std::vector<prometheus::MetricFamily> families;
  for (const auto& collectable : {metrics.collectable(), node.collectable(), usage.collectable()})
    std::ranges::move(collectable->Collect(), std::back_inserter(families));
  return families;
}

// The names of all series.
std::set<std::string> Served() {
  return Names(prometheus::TextSerializer().Serialize(Families()), "\n(cri_resmgr_[a-z_]+)");
}

std::string Read(const std::string& file) {
  std::ifstream stream(RESMGR_SOURCE_DIR "/" + file);
  EXPECT_TRUE(stream.good()) << file;
  return {(std::istreambuf_iterator<char>(stream)), {}};
}

TEST(MonitoringTest, DashboardAndAlertsNameWhatIsServed) {
  const std::set<std::string> served = Served();
  for (const char* const file : {"alerts.yaml", "dashboard.json"}) {
    const std::set<std::string> named =
        Names(Read(std::string("sample-configs/monitoring/") + file), "(cri_resmgr_[a-z_]+)");
    EXPECT_GE(named.size(), 8U) << file;
    EXPECT_THAT(Without(named, served), IsEmpty()) << file;
  }
}

TEST(MonitoringTest, ThePageHasEachMetricThatIsServedAndNoOther) {
  std::set<std::string> served;
  for (const prometheus::MetricFamily& family : Families()) {
    ASSERT_TRUE(family.name.starts_with(kCommonPrefix)) << family.name;
    served.insert(family.name.substr(kCommonPrefix.size()));
  }
  std::set<std::string> documented;
  std::istringstream lines(Read("docs/metrics.md"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    documented.merge(Names(line.substr(0, line.find('|', 1)), "`([a-z_]+)[`{]"));
  }
  EXPECT_THAT(Without(served, documented), IsEmpty()) << "they are not in the page";
  EXPECT_THAT(Without(documented, served), IsEmpty()) << "they are not served";
}

TEST(MonitoringTest, NamesTellTheKindAndTheUnitOfAMetric) {
  using prometheus::MetricType;
  const std::regex other_unit("_(ms|us|ns|millis|micros|percent|kb|mb|kib|mib)(_|$)");
  for (const prometheus::MetricFamily& family : Families()) {
    SCOPED_TRACE(family.name);
    EXPECT_EQ(family.name.ends_with("_total"), family.type == MetricType::Counter);
    const bool histogram = family.type == MetricType::Histogram;
    EXPECT_TRUE(!histogram || family.name.ends_with("_seconds"));
    EXPECT_FALSE(std::regex_search(family.name, other_unit));
    EXPECT_NE(family.help, "");
  }
}

// Each alert leads to a section of the page.
TEST(MonitoringTest, TheRunbookHasASectionForEachAlert) {
  const std::string page = Read("docs/troubleshooting.md");
  const std::set<std::string> alerts =
      Names(Read("sample-configs/monitoring/alerts.yaml"), "- alert: ([A-Za-z]+)");
  EXPECT_GE(alerts.size(), 13U);
  for (const std::string& alert : alerts)
    EXPECT_THAT(page, testing::HasSubstr("\n### " + alert + "\n"));
}

}  // namespace
}  // namespace resmgr
