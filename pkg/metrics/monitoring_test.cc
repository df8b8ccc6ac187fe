// SPDX-License-Identifier: Apache-2.0
// The metrics in sample-configs/monitoring are served. scripts/test-monitoring asks a real
// Prometheus.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include "pkg/metrics/metrics.h"
#include "pkg/metrics/node_metrics.h"
#include "pkg/metrics/usage_metrics.h"

namespace resmgr {
namespace {

using testing::IsEmpty;

std::set<std::string> Names(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), regex); at != std::sregex_iterator(); ++at)
    names.insert((*at)[1]);
  return names;
}

// All series of a daemon in which each event has happened once.
std::set<std::string> Served() {
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
  NodeMetrics node;
  node.Refused("RESOURCE_EXHAUSTED");
  const NodeMetrics::Pool pool{.name = "shared"};
  node.ShowPools({&pool, 1});
  node.ShowProblems("drift", 1);
  node.ShowClaims(1, {{0, 2}});
  node.Show({});
  UsageMetrics usage;
  usage.Show({.pools = {{.name = "shared", .cpu_pressure = 0.5, .memory_by_node = {{0, 4096}}}},
              .nodes = {{.id = 0, .memory_bytes = 4096}}});
  std::string text;
  for (const auto& collectable : {metrics.collectable(), node.collectable(), usage.collectable()})
    text += prometheus::TextSerializer().Serialize(collectable->Collect());
  return Names(text, "\n(cri_resmgr_[a-z_]+)");
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
    std::set<std::string> missing;
    std::set_difference(named.begin(), named.end(), served.begin(), served.end(),
                        std::inserter(missing, missing.end()));
    EXPECT_THAT(missing, IsEmpty()) << file;
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
