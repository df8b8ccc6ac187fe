// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/plugin_registry.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

namespace resmgr::nri {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

TEST(PluginRegistryTest, OfThoseThatAreGoneTheLastAreKnown) {
  PluginRegistry registry;
  registry.Add("00", "stays");
  registry.SetReady("00-stays", 0);
  for (size_t i = 0; i < PluginRegistry::kMostKnown; ++i) {
    const std::string name = "n" + std::to_string(i);
    registry.Add("10", name);
    registry.Remove("10-" + name, false, PluginState::kFailed, Internal("it broke"));
  }
  const std::vector<PluginStatus> plugins = registry.List();
  ASSERT_THAT(plugins, SizeIs(PluginRegistry::kMostKnown));
  EXPECT_EQ(plugins[0].name, "stays");
  EXPECT_EQ(plugins[0].state, PluginState::kReady);
  EXPECT_EQ(plugins[1].name, "n1");
  EXPECT_EQ(plugins[1].state, PluginState::kFailed);
  EXPECT_EQ(plugins[1].last_error, "it broke");
}

TEST(PluginRegistryTest, WordsOfPluginsAreCut) {
  PluginRegistry registry;
  registry.Add("10", "a").NoteFailure(Internal("{}", std::string(1 << 20, 'x') + "\x1b"));
  EXPECT_LT(registry.List()[0].last_error.size(), 600U);
  registry.Remove("10-a", false, PluginState::kFailed,
                  Internal("\x1b{}", std::string(1 << 20, 'x')));
  EXPECT_LT(registry.List()[0].last_error.size(), 600U);
  EXPECT_EQ(registry.List()[0].last_error.find('\x1b'), std::string::npos);
}

TEST(PluginRegistryTest, CountsForTheMetrics) {
  Metrics metrics("1", {});
  PluginRegistry registry(&metrics);
  const auto text = [&metrics] {
    return prometheus::TextSerializer().Serialize(metrics.collectable()->Collect());
  };
  PluginStats& stats = registry.Add("10", "a");
  registry.SetReady("10-a", 0x8);
  stats.NoteAnswer(std::chrono::milliseconds(1), OkStatus());
  stats.NoteAnswer(std::chrono::milliseconds(1), Internal("refused"));
  stats.NoteFailure(DeadlineExceeded("late"));
  const std::string labels = R"({kind="nri",plugin="10-a"} 2)";
  EXPECT_THAT(text(), HasSubstr("cri_resmgr_plugin_call_seconds_count" + labels));
  EXPECT_THAT(text(), HasSubstr("cri_resmgr_plugin_failures_total" + labels));
  EXPECT_THAT(text(), HasSubstr(R"(cri_resmgr_plugins_ready{kind="nri"} 1)"));
  registry.Remove("10-a", true, PluginState::kDisconnected, Unavailable("gone"));
  EXPECT_THAT(text(), HasSubstr(R"(cri_resmgr_plugins_ready{kind="nri"} 0)"));
}

TEST(PluginRegistryTest, APluginIsReadyAsLongAsOneSessionIs) {
  PluginRegistry registry;
  PluginStats& first = registry.Add("10", "a");
  registry.SetReady("10-a", 0x8);
  PluginStats& second = registry.Add("10", "a");
  EXPECT_EQ(&first, &second);
  registry.SetReady("10-a", 0x408);
  registry.Remove("10-a", true, PluginState::kDisconnected, Unavailable("replaced"));
  EXPECT_EQ(registry.List()[0].state, PluginState::kReady);
  EXPECT_THAT(registry.List()[0].events, ElementsAre("CreateContainer", "RemoveContainer"));
  registry.Remove("10-a", true, PluginState::kDisconnected, Unavailable("gone"));
  EXPECT_THAT(registry.List(),
              ElementsAre(testing::Field(&PluginStatus::state, PluginState::kDisconnected)));
}

TEST(PluginStatsTest, TheMedianIsOfTheLastAnswers) {
  PluginStats stats;
  EXPECT_EQ(stats.MedianMicros(), 0U);
  for (int i = 0; i < 1000; ++i)
    stats.NoteAnswer(std::chrono::seconds(1), OkStatus());
  for (int i = 0; i < 100; ++i)
    stats.NoteAnswer(std::chrono::microseconds(i), OkStatus());
  EXPECT_EQ(stats.MedianMicros(), 64U);
  EXPECT_EQ(stats.calls(), 1100U);
  EXPECT_EQ(stats.failures(), 0U);
}

}  // namespace
}  // namespace resmgr::nri
