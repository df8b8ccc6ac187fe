// SPDX-License-Identifier: Apache-2.0
#include "agent/cpus_annotation.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/testing/fake_transport.h"
#include "pkg/base/json.h"
#include "pkg/sys/manual_clock.h"

namespace resmgr::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kNode[] = "/api/v1/nodes/n1";

class CpusAnnotationTest : public testing::Test {
 protected:
  void See(const Json& annotations) {
    const Json node = {{"metadata", {{"name", "n1"}, {"annotations", annotations}}}};
    reporter_.NodeSeen(node);
    cpus_.NodeSeen(node);
  }
  void SeeValue(const std::string& value) { See({{kCpusAnnotation, value}}); }
  // The annotations that the next request would write, once it is due.
  Json Written() {
    timers_.Advance(kSpread);
    if (!transport_.Has(kNode)) return "no request";
    const Json body = ParseJson(transport_.Request(kNode).body).value_or(Json());
    return body["metadata"]["annotations"][std::string(kCpusAnnotation)];
  }
  bool Answer(int status = 200) { return transport_.Answer(kNode, status, Json::object()); }

  static constexpr milliseconds kSpread{5000};

  FakeTransport transport_;
  ManualClock timers_;
  StatusReporter reporter_{transport_, timers_, "n1", "m.node.n1", {.spread = kSpread}, 1};
  CpusAnnotation cpus_{reporter_};
};

TEST_F(CpusAnnotationTest, IsOnePatchWhoseTimeIsWithinTheSpread) {
  See(Json::object());
  EXPECT_EQ(cpus_.Show("one"), OkStatus());
  EXPECT_EQ(cpus_.Show("two"), OkStatus());
  EXPECT_EQ(transport_.sent(), 0);
  EXPECT_EQ(Written(), "two");
  EXPECT_EQ(transport_.Request(kNode).method, "PATCH");
  EXPECT_EQ(transport_.sent(), 1);
}

TEST_F(CpusAnnotationTest, WaitsUntilTheNodeIsSeen) {
  EXPECT_EQ(cpus_.Show("one"), OkStatus());
  EXPECT_EQ(Written(), "no request");
  See(Json::object());
  EXPECT_EQ(Written(), "one");
}

TEST_F(CpusAnnotationTest, WhatTheNodeShowsIsNotWritten) {
  SeeValue("one");
  EXPECT_EQ(cpus_.Show("one"), OkStatus());
  EXPECT_EQ(Written(), "no request");
}

TEST_F(CpusAnnotationTest, NothingIsNoAnnotation) {
  See(Json::object());
  EXPECT_EQ(cpus_.Show(""), OkStatus());
  EXPECT_EQ(Written(), "no request");
  SeeValue("one");
  EXPECT_EQ(Written(), nullptr);
}

TEST_F(CpusAnnotationTest, BackBeforeItIsWrittenIsWrittenAllTheSame) {
  SeeValue("one");
  EXPECT_EQ(cpus_.Show("two"), OkStatus());
  EXPECT_EQ(Written(), "two");
  EXPECT_EQ(cpus_.Show("one"), OkStatus()) << "the former value is on its way";
  ASSERT_TRUE(Answer());
  EXPECT_EQ(Written(), "one");
}

TEST_F(CpusAnnotationTest, ANodeThatWasMadeAnewGetsItAgain) {
  See(Json::object());
  EXPECT_EQ(cpus_.Show("one"), OkStatus());
  EXPECT_EQ(Written(), "one");
  ASSERT_TRUE(Answer());
  SeeValue("one");
  EXPECT_EQ(Written(), "no request");
  See(Json::object());
  EXPECT_EQ(Written(), "one");
}

// A missing right does not make it ask for ever.
TEST_F(CpusAnnotationTest, ARefusalIsTriedAgainWhenTheNodeChanges) {
  See(Json::object());
  EXPECT_EQ(cpus_.Show("one"), OkStatus());
  EXPECT_EQ(Written(), "one");
  ASSERT_TRUE(Answer(403));
  timers_.Advance(seconds(3600));
  EXPECT_FALSE(transport_.Has(kNode));
  See({{"another", "x"}});
  EXPECT_EQ(Written(), "one");
}

TEST_F(CpusAnnotationTest, AnOutageIsLivedThrough) {
  See(Json::object());
  EXPECT_EQ(cpus_.Show("one"), OkStatus());
  EXPECT_EQ(Written(), "one");
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(transport_.Answer(kNode, Unavailable("away")));
    timers_.Advance(seconds(300));
  }
  EXPECT_EQ(Written(), "one");
}

TEST_F(CpusAnnotationTest, TooLongIsRefusedAndTheLastOneStays) {
  See(Json::object());
  EXPECT_EQ(cpus_.Show("one"), OkStatus());
  EXPECT_EQ(cpus_.Show(std::string(8193, 'x')).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Written(), "one");
}

}  // namespace
}  // namespace resmgr::agent
