// SPDX-License-Identifier: Apache-2.0
#include "agent/event_series.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/json_path.h"
#include "agent/testing/fake_transport.h"
#include "pkg/base/json.h"
#include "pkg/sys/manual_clock.h"

namespace resmgr::agent {
namespace {

using std::chrono::milliseconds;
using testing::StartsWith;

class EventSeriesTest : public testing::Test {
 protected:
  static constexpr char kEvents[] = "/api/v1/namespaces/default/events";

  Json Body() { return ParseJson(transport_.Request(kEvents).body).value_or(Json()); }
  std::string Method() { return transport_.Has(kEvents) ? transport_.Request(kEvents).method : ""; }
  void Make() {
    series_.Add("one", 1);
    ASSERT_TRUE(transport_.Answer(kEvents, 201, Json::object()));
  }

  FakeTransport transport_;
  ManualClock timers_;
  EventSeries series_{transport_,
                      timers_,
                      "n1",
                      "Bad",
                      {.first = milliseconds(100), .limit = milliseconds(1000)},
                      1,
                      [] { return std::chrono::system_clock::from_time_t(1'767'323'045); }};
};

TEST_F(EventSeriesTest, TheFirstOneIsAnEventOfTheNode) {
  series_.Add("it is bad", 1);
  EXPECT_EQ(Method(), "POST");
  const Json event = Body();
  EXPECT_EQ(event["reason"], "Bad");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["message"], "it is bad");
  EXPECT_EQ(event["involvedObject"]["name"], "n1");
  EXPECT_EQ(event["firstTimestamp"], "2026-01-02T03:04:05Z");
  EXPECT_EQ(event["count"], 1);
  EXPECT_THAT(event["metadata"]["name"].get<std::string>(), StartsWith("n1."));
}

TEST_F(EventSeriesTest, LaterOnesChangeIt) {
  Make();
  series_.Add("two", 3);
  EXPECT_EQ(Method(), "PATCH");
  EXPECT_THAT(transport_.Request(kEvents).target, StartsWith(std::string(kEvents) + "/n1."));
  EXPECT_EQ(Body()["count"], 4);
  EXPECT_EQ(Body()["message"], "two");
  EXPECT_EQ(Body()["lastTimestamp"], "2026-01-02T03:04:05Z");
}

TEST_F(EventSeriesTest, WhatComesMeanwhileIsOneChange) {
  series_.Add("one", 1);
  for (int i = 0; i < 10; ++i)
    series_.Add("more", 1);
  EXPECT_EQ(transport_.sent(), 1);
  transport_.Answer(kEvents, 201, Json::object());
  EXPECT_EQ(Method(), "PATCH");
  EXPECT_EQ(Body()["count"], 11);
  transport_.Answer(kEvents, 200, Json::object());
  EXPECT_EQ(transport_.sent(), 2);
}

TEST_F(EventSeriesTest, OneThatTheServerForgotIsMadeAnew) {
  Make();
  series_.Add("two", 1);
  transport_.Answer(kEvents, 404, Json::object());
  EXPECT_EQ(Method(), "POST");
  EXPECT_EQ(Body()["count"], 1);
  EXPECT_EQ(Body()["message"], "two");
}

TEST_F(EventSeriesTest, ACreationThatHappenedAlreadyIsOne) {
  series_.Add("one", 1);
  transport_.Answer(kEvents, Unavailable("the reply is lost"));
  timers_.RunNext();
  transport_.Answer(kEvents, 409, Json::object());
  EXPECT_EQ(Method(), "");
  series_.Add("two", 1);
  EXPECT_EQ(Method(), "PATCH");
}

TEST_F(EventSeriesTest, GivesUpWhatNobodyWants) {
  series_.Add("one", 1);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(transport_.Answer(kEvents, 403, Json::object()));
    timers_.Advance(std::chrono::seconds(5));
  }
  EXPECT_FALSE(transport_.Has(kEvents));
}

TEST_F(EventSeriesTest, ShortensItsMessage) {
  series_.Add(std::string(1 << 20, 'x'), 1);
  EXPECT_LE(Body()["message"].get<std::string>().size(), 1024U);
}

}  // namespace
}  // namespace resmgr::agent
