// SPDX-License-Identifier: Apache-2.0
// The dashboard and the alerts of sample-configs/monitoring, and the runbook that they lead to.
#include <cctype>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace resmgr::test {
namespace {

using nlohmann::json;

std::string TextOfSource(const std::string& path) {
  std::ifstream file(std::string(RESMGR_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// The headings of the runbook, as they are in addresses.
std::set<std::string> Runbooks() {
  const std::string page = TextOfSource("docs/troubleshooting.md");
  const std::regex heading("\n##+ ([^\n]*)");
  std::set<std::string> anchors;
  for (std::sregex_iterator at(page.begin(), page.end(), heading); at != std::sregex_iterator();
       ++at) {
    std::string anchor;
    for (const char c : (*at)[1].str()) {
      if (c == ' ' || c == '-') anchor += '-';
      if (std::isalnum(static_cast<unsigned char>(c)) != 0)
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    anchors.insert(anchor);
  }
  return anchors;
}

TEST(MonitoringTest, EachAlertHasASectionOfTheRunbook) {
  const std::string alerts = TextOfSource("sample-configs/monitoring/alerts.yaml");
  const std::set<std::string> runbooks = Runbooks();
  const std::regex alert(
      "- alert: (\\w+)\n(?:    [^\n]*\n)*?      runbook: docs/troubleshooting.md#([\\w-]+)\n");
  int found = 0;
  for (std::sregex_iterator at(alerts.begin(), alerts.end(), alert); at != std::sregex_iterator();
       ++at) {
    ++found;
    EXPECT_TRUE(runbooks.contains((*at)[2])) << (*at)[1];
  }
  const std::regex any("- alert: ");
  EXPECT_EQ(found, std::distance(std::sregex_iterator(alerts.begin(), alerts.end(), any),
                                 std::sregex_iterator()));
  EXPECT_GE(found, 13);
}

TEST(MonitoringTest, PanelsOfTheDashboardAreDescribedAndLeadToTheRunbook) {
  const json dashboard = json::parse(TextOfSource("sample-configs/monitoring/dashboard.json"));
  const std::set<std::string> runbooks = Runbooks();
  std::set<std::string> types;
  std::set<int> ids;
  int links = 0;
  for (const json& panel : dashboard.at("panels")) {
    const std::string title = panel.at("title");
    types.insert(panel.at("type"));
    EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second) << title;
    if (panel.at("type") == "row") continue;
    EXPECT_GE(panel.at("description").get<std::string>().size(), 15U) << title;
    for (const json& target : panel.at("targets")) {
      const bool percentile =
          target.at("expr").get<std::string>().find("histogram_quantile(0.99") != std::string::npos;
      EXPECT_EQ(percentile, title.find("p99") != std::string::npos) << title;
    }
    for (const json& link : panel.value("links", json::array())) {
      ++links;
      const std::string url = link.at("url");
      ASSERT_EQ(url.rfind("${runbook}#", 0), 0U) << url;
      EXPECT_TRUE(runbooks.contains(url.substr(url.find('#') + 1))) << url;
    }
  }
  EXPECT_THAT(types, testing::IsSupersetOf({"row", "stat", "table", "timeseries"}));
  EXPECT_GE(links, 15);
}

// Panels of a row of the grid do not cover each other.
TEST(MonitoringTest, PanelsOfTheDashboardDoNotOverlap) {
  const json dashboard = json::parse(TextOfSource("sample-configs/monitoring/dashboard.json"));
  std::set<std::pair<int, int>> taken;
  for (const json& panel : dashboard.at("panels")) {
    const json& at = panel.at("gridPos");
    ASSERT_LE(at.at("x").get<int>() + at.at("w").get<int>(), 24);
    for (int x = at.at("x"); x < at.at("x").get<int>() + at.at("w").get<int>(); ++x) {
      for (int y = at.at("y"); y < at.at("y").get<int>() + at.at("h").get<int>(); ++y)
        ASSERT_TRUE(taken.emplace(x, y).second) << panel.at("title");
    }
  }
}

}  // namespace
}  // namespace resmgr::test
