// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/nri_hosting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::ElementsAre;

TEST(NriPluginViewTest, TellsAllThatTheHostKnows) {
  nri::PluginStatus status;
  status.index = "10";
  status.name = "logger";
  status.state = nri::PluginState::kReady;
  status.events = {"CreateContainer"};
  status.calls = 3;
  status.failures = 1;
  status.last_error = "late";
  status.p50_micros = 90;
  nri::PluginStatus away;
  away.state = nri::PluginState::kDisconnected;
  nri::PluginStatus failed;
  failed.state = nri::PluginState::kFailed;
  const std::vector<PluginView> views = ViewsOf({status, away, failed});
  ASSERT_EQ(views.size(), 3U);
  EXPECT_EQ(views[0].kind, "nri");
  EXPECT_EQ(views[0].index, "10");
  EXPECT_EQ(views[0].name, "logger");
  EXPECT_EQ(views[0].state, PluginView::State::kReady);
  EXPECT_THAT(views[0].events, ElementsAre("CreateContainer"));
  EXPECT_EQ(views[0].calls, 3U);
  EXPECT_EQ(views[0].failures, 1U);
  EXPECT_EQ(views[0].last_error, "late");
  EXPECT_EQ(views[0].p50_micros, 90U);
  EXPECT_EQ(views[1].state, PluginView::State::kDisconnected);
  EXPECT_EQ(views[2].state, PluginView::State::kFailed);
}

}  // namespace
}  // namespace resmgr
