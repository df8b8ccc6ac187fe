// SPDX-License-Identifier: Apache-2.0
#include "agent/pod_events.h"

#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/event_series.h"
#include "agent/http.h"
#include "agent/testing/fake_transport.h"
#include "pkg/base/json.h"
#include "pkg/sys/clock.h"
#include "test/support/captured_log.h"

namespace resmgr::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kEvents[] = "/events";

PodEvent Refusal(const std::string& pod, const std::string& message) {
  PodEvent event;
  event.set_pod_namespace("team");
  event.set_pod(pod);
  event.set_uid("uid-" + pod);
  event.set_warning(true);
  event.set_reason("CPURefused");
  event.set_message(message);
  event.set_count(1);
  event.set_last_seen(1'767'323'045'000);
  return event;
}

class PodEventsTest : public testing::Test {
 protected:
  Json Body() { return ParseJson(transport_.Request(kEvents).body).value_or(Json()); }
  std::string Method() { return transport_.Request(kEvents).method; }
  bool Answer(int status = 200) { return transport_.Answer(kEvents, status, Json::object()); }
  // Sends the next request, once it is due; false if there is none.
  bool Sends() {
    timers_.Advance(4 * kSpread);
    return transport_.Has(kEvents);
  }
  bool Sends(const PodEvent& event) { return events_.Add(event) && Sends(); }
  void Make(const PodEvent& event) {
    ASSERT_TRUE(Sends(event));
    ASSERT_TRUE(Answer(201));
  }

  static constexpr milliseconds kSpread{1000};

  FakeTransport transport_;
  ManualClock timers_;
  const PodEvents::Options options_{
      .spread = kSpread,
      .most_waiting = 40,
      .most_known = 60,
      .most_pods = 50,
      .backoff = {.first = milliseconds(100), .limit = milliseconds(1000)}};
  PodEvents events_{
      transport_, timers_, "n1",
      options_,   1,       [] { return std::chrono::system_clock::from_time_t(1'767'323'045); }};
};

TEST_F(PodEventsTest, TheFirstOneIsAnEventOfThePod) {
  ASSERT_TRUE(events_.Add(Refusal("a", "no room")));
  timers_.Advance(kSpread - milliseconds(1));
  EXPECT_EQ(transport_.sent(), 0) << "its time is one to three spreads later";
  timers_.Advance(2 * kSpread + milliseconds(1));
  ASSERT_EQ(Method(), "POST");
  EXPECT_EQ(transport_.Request(kEvents).target, "/api/v1/namespaces/team/events");
  const Json event = Body();
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "CPURefused");
  EXPECT_EQ(event["message"], "no room");
  EXPECT_EQ(event["count"], 1);
  EXPECT_EQ(event["source"]["component"], "cri-resmgr");
  EXPECT_EQ(event["source"]["host"], "n1");
  EXPECT_EQ(event["firstTimestamp"], "2026-01-02T03:04:05Z");
  EXPECT_EQ(event["involvedObject"]["kind"], "Pod");
  EXPECT_EQ(event["involvedObject"]["namespace"], "team");
  EXPECT_EQ(event["involvedObject"]["name"], "a");
  EXPECT_EQ(event["involvedObject"]["uid"], "uid-a");
  EXPECT_THAT(event["metadata"]["name"].get<std::string>(), StartsWith("a."));
}

TEST_F(PodEventsTest, TheSameAgainChangesItsCount) {
  Make(Refusal("a", "no room"));
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(events_.Add(Refusal("a", "no room")));
  ASSERT_TRUE(Sends());
  EXPECT_EQ(Method(), "PATCH");
  EXPECT_THAT(transport_.Request(kEvents).target, HasSubstr("/events/a."));
  EXPECT_EQ(Body()["count"], 6);
  ASSERT_TRUE(Answer());
  EXPECT_FALSE(Sends());
}

// Pods that end with their namespace may be refused before; this has nothing to do with rights.
TEST_F(PodEventsTest, AnEventOfAnEndingNamespaceIsNoProblem) {
  const test::CapturedLog log("a pod Event is dropped");
  ASSERT_TRUE(Sends(Refusal("a", "no room")));
  ASSERT_TRUE(transport_.Answer(
      kEvents, 403,
      Json{{"message", "it is being terminated"},
           {"details", {{"causes", Json::array({{{"reason", "NamespaceTerminating"}}})}}}}));
  EXPECT_EQ(log.lines.size(), 0u) << log.Text();
  ASSERT_TRUE(Sends(Refusal("b", "no room")));
  ASSERT_TRUE(transport_.Answer(kEvents, 422, Json{{"message", "no"}}));
  EXPECT_THAT(log.Text(), testing::Not(HasSubstr("the right")));
  Make(Refusal("c", "no room"));
}

// An API server that has just started forbids everything.
TEST_F(PodEventsTest, OneThatIsForbiddenIsTriedAgainForAMinuteWhileOthersGoOn) {
  const test::CapturedLog log("a pod Event is dropped");
  ASSERT_TRUE(Sends(Refusal("a", "no room")));
  ASSERT_TRUE(Answer(403));
  ASSERT_TRUE(Sends(Refusal("b", "no room")));
  EXPECT_EQ(Body()["message"], "no room");
  ASSERT_TRUE(Answer(201));
  ASSERT_TRUE(Sends()) << "the first one again";
  EXPECT_EQ(Body()["involvedObject"]["name"], "a");
  ASSERT_TRUE(Answer(201));
  EXPECT_FALSE(Sends());

  ASSERT_TRUE(Sends(Refusal("c", "no room")));
  const auto begin = timers_.Steady();
  for (int tries = 1; tries < 5; ++tries) {
    ASSERT_TRUE(transport_.Answer(kEvents, 403, Json{{"message", "forbidden"}}));
    EXPECT_EQ(log.lines.size(), 0u) << log.Text();
    timers_.Advance(seconds(60));
    ASSERT_TRUE(transport_.Has(kEvents)) << tries;
  }
  EXPECT_GE(timers_.Steady() - begin, minutes(1));
  ASSERT_TRUE(transport_.Answer(kEvents, 403, Json{{"message", "forbidden"}}));
  EXPECT_THAT(log.Text(), HasSubstr("the agent needs the right"));
  timers_.Advance(minutes(10));
  EXPECT_FALSE(transport_.Has(kEvents));
}

TEST_F(PodEventsTest, AChangeThatIsForbiddenIsTriedAgainWithItsCount) {
  Make(Refusal("a", "no room"));
  ASSERT_TRUE(Sends(Refusal("a", "no room")));
  ASSERT_TRUE(Answer(403));
  ASSERT_TRUE(events_.Add(Refusal("a", "no room")));
  timers_.Advance(seconds(4));
  EXPECT_EQ(Method(), "PATCH");
  EXPECT_EQ(Body()["count"], 3);
  ASSERT_TRUE(Answer());
  timers_.Advance(minutes(1));
  EXPECT_FALSE(transport_.Has(kEvents)) << "it was one change";
}

TEST_F(PodEventsTest, OthersAreEventsOfTheirOwn) {
  std::set<std::string> names;
  PodEvent normal = Refusal("a", "no room");
  normal.set_warning(false);
  PodEvent another_incarnation = Refusal("a", "no room");
  another_incarnation.set_uid("uid-2");
  for (const PodEvent& event : {Refusal("a", "no room"), Refusal("a", "never"),
                                Refusal("b", "no room"), normal, another_incarnation}) {
    ASSERT_TRUE(Sends(event));
    EXPECT_EQ(Method(), "POST");
    names.insert(Body()["metadata"]["name"]);
    ASSERT_TRUE(Answer(201));
  }
  EXPECT_EQ(names.size(), 5u) << "though the clock stands still";
}

TEST_F(PodEventsTest, MoreThanTenMessagesOfOneKindBecomeOneEvent) {
  for (int i = 0; i < 10; ++i)
    Make(Refusal("a", fmt::format("{} CPUs are free", i)));
  Make(Refusal("a", "10 CPUs are free"));
  ASSERT_TRUE(Sends(Refusal("a", "11 CPUs are free")));
  EXPECT_EQ(Method(), "PATCH");
  EXPECT_EQ(Body()["message"], "(combined from similar events): 11 CPUs are free");
  EXPECT_EQ(Body()["count"], 2);
  ASSERT_TRUE(Answer());
  // The ten former messages still have Events of their own, and after ten quiet minutes there is
  // room.
  ASSERT_TRUE(Sends(Refusal("a", "3 CPUs are free")));
  EXPECT_EQ(Body()["message"], "3 CPUs are free");
  ASSERT_TRUE(Answer());
  timers_.Advance(minutes(11));
  ASSERT_TRUE(Sends(Refusal("a", "12 CPUs are free")));
  EXPECT_EQ(Method(), "POST");
  EXPECT_EQ(Body()["message"], "12 CPUs are free");
}

TEST_F(PodEventsTest, APodHasTwentyFiveThenOneInFiveMinutes) {
  const auto start = timers_.Steady();
  int written = 0;
  for (int i = 0; i < 100; ++i) {
    if (!events_.Add(Refusal("a", "no room"))) break;
    ASSERT_TRUE(Sends());
    ASSERT_TRUE(Answer(written++ == 0 ? 201 : 200));
  }
  const auto refilled = (timers_.Steady() - start) / minutes(5);
  EXPECT_EQ(written, 25 + refilled);
  ASSERT_TRUE(Sends(Refusal("b", "no room"))) << "another one has its own";
  ASSERT_TRUE(Answer(201));
  timers_.Advance(minutes(5));
  ASSERT_TRUE(Sends(Refusal("a", "no room")));
  EXPECT_EQ(Body()["count"], written + 2) << "what was not written is counted";
}

// Therefore n nodes make n / (2 * spread) requests a second, however many refusals there are.
TEST_F(PodEventsTest, RequestsAreSpread) {
  const auto start = timers_.Steady();
  for (int i = 0; i < 40; ++i)
    ASSERT_TRUE(events_.Add(Refusal(fmt::format("p{}", i), "no room")));
  std::vector<Clock::SteadyTime> times;
  while (times.size() < 40) {
    timers_.RunNext();
    if (!Answer(201)) continue;
    times.push_back(timers_.Steady());
  }
  EXPECT_GE(times[0] - start, kSpread);
  EXPECT_LE(times[0] - start, 3 * kSpread);
  for (size_t i = 1; i < times.size(); ++i) {
    EXPECT_GE(times[i] - times[i - 1], kSpread);
    EXPECT_LE(times[i] - times[i - 1], 3 * kSpread);
  }
  EXPECT_GE(times.back() - times.front(), 39 * 3 * kSpread / 2);
}

TEST_F(PodEventsTest, WhatWaitsIsBounded) {
  int taken = 0;
  for (int i = 0; i < 1000; ++i)
    taken += events_.Add(Refusal(fmt::format("p{}", i), "no room")) ? 1 : 0;
  EXPECT_EQ(taken, 40);
  EXPECT_TRUE(events_.Add(Refusal("p3", "no room"))) << "it waits already";
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(Sends());
    if (Body()["involvedObject"]["name"] == "p3") {
      EXPECT_EQ(Body()["count"], 2);
    }
    ASSERT_TRUE(Answer(201));
  }
  EXPECT_FALSE(Sends());
}

// A forgotten event is created anew.
TEST_F(PodEventsTest, WhatIsKnownIsBounded) {
  for (int i = 0; i < 200; ++i)
    Make(Refusal(fmt::format("p{}", i), "no room"));
  ASSERT_TRUE(Sends(Refusal("p199", "no room")));
  EXPECT_EQ(Method(), "PATCH");
  ASSERT_TRUE(Answer());
  ASSERT_TRUE(Sends(Refusal("p0", "no room")));
  EXPECT_EQ(Method(), "POST");
  EXPECT_EQ(Body()["count"], 1);
}

TEST_F(PodEventsTest, OneThatTheServerForgotIsMadeAnew) {
  Make(Refusal("a", "no room"));
  ASSERT_TRUE(Sends(Refusal("a", "no room")));
  ASSERT_TRUE(Answer(404));
  ASSERT_TRUE(Sends());
  EXPECT_EQ(Method(), "POST");
  EXPECT_EQ(Body()["count"], 1);
}

TEST_F(PodEventsTest, ACreationThatHappenedAlreadyIsOne) {
  ASSERT_TRUE(Sends(Refusal("a", "no room")));
  ASSERT_TRUE(transport_.Answer(kEvents, Unavailable("the reply is lost")));
  ASSERT_TRUE(Sends());
  ASSERT_TRUE(Answer(409));
  EXPECT_FALSE(Sends());
  ASSERT_TRUE(Sends(Refusal("a", "no room")));
  EXPECT_EQ(Method(), "PATCH");
}

TEST_F(PodEventsTest, WhatIsRefusedIsDroppedAndTheNextOneGoesOn) {
  for (const int status : {400, 413, 422, 404}) {
    ASSERT_TRUE(events_.Add(Refusal("a", fmt::format("answered by {}", status))));
    ASSERT_TRUE(Sends(Refusal("b", fmt::format("after {}", status))));
    ASSERT_TRUE(Answer(status));
    ASSERT_TRUE(Sends());
    EXPECT_EQ(Body()["message"], fmt::format("after {}", status));
    ASSERT_TRUE(Answer(201));
    EXPECT_FALSE(Sends()) << status;
  }
}

TEST_F(PodEventsTest, WaitsAsLongAsTheServerAsksFor) {
  ASSERT_TRUE(Sends(Refusal("a", "no room")));
  ASSERT_TRUE(
      transport_.Answer(kEvents, HttpReply{.status = 429, .body = "", .retry_after = seconds(30)}));
  timers_.Advance(seconds(29));
  EXPECT_FALSE(transport_.Has(kEvents));
  timers_.Advance(seconds(3));
  EXPECT_TRUE(transport_.Has(kEvents));
}

// A long outage loses the event under way, but no waiting event.
TEST_F(PodEventsTest, AnOutageEndsNothing) {
  ASSERT_TRUE(events_.Add(Refusal("a", "no room")));
  ASSERT_TRUE(events_.Add(Refusal("b", "no room")));
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(Sends()) << i;
    ASSERT_TRUE(transport_.Answer(kEvents, Unavailable("away")));
  }
  ASSERT_TRUE(Sends());
  EXPECT_EQ(Body()["involvedObject"]["name"], "b");
}

TEST_F(PodEventsTest, NamesOfEventsFitWhateverThePodsNameIs) {
  const std::string name = std::string(199, 'a') + "." + std::string(53, 'b');
  ASSERT_TRUE(Sends(Refusal(name, "no room")));
  const std::string event = Body()["metadata"]["name"];
  EXPECT_LE(event.size(), 253U);
  EXPECT_THAT(event, StartsWith(std::string(199, 'a') + "."));
  EXPECT_THAT(event, testing::Not(HasSubstr("..")));
}

// A problem of the node.
TEST_F(PodEventsTest, WithoutAPodIsAnEventOfTheNode) {
  PodEvent event = Refusal("a", "a has drifted");
  event.clear_pod_namespace();
  event.clear_pod();
  event.clear_uid();
  EXPECT_EQ(CheckPodEvent(event), OkStatus());
  ASSERT_TRUE(Sends(event));
  EXPECT_EQ(transport_.Request(kEvents).target, "/api/v1/namespaces/default/events");
  EXPECT_EQ(Body()["involvedObject"],
            Json({{"apiVersion", "v1"}, {"kind", "Node"}, {"name", "n1"}, {"uid", "n1"}}));
  EXPECT_THAT(Body()["metadata"]["name"].get<std::string>(), StartsWith("n1."));
}

TEST(CheckPodEventTest, TakesWhatTheApiServerTakes) {
  EXPECT_EQ(CheckPodEvent(Refusal("a", "no room")), OkStatus());
  EXPECT_EQ(CheckPodEvent(Refusal("a", std::string(1024, 'x'))), OkStatus());
  const auto refused = [](const auto& change) {
    PodEvent wrong = Refusal("a", "x");
    change(wrong);
    return CheckPodEvent(wrong).code() == StatusCode::kInvalidArgument;
  };
  for (const char* const name : {"", "A", "a/b", "..", "a%2f"}) {
    EXPECT_TRUE(refused([&](PodEvent& event) { event.set_pod_namespace(name); })) << name;
    EXPECT_TRUE(refused([&](PodEvent& event) { event.set_pod(name); })) << name;
  }
  for (const std::string& uid : {std::string(), std::string("a/b"), std::string(129, 'a')})
    EXPECT_TRUE(refused([&](PodEvent& event) { event.set_uid(uid); })) << uid;
  for (const std::string& reason :
       {std::string(), std::string("lower"), std::string("Two Words"), std::string(65, 'A')})
    EXPECT_TRUE(refused([&](PodEvent& event) { event.set_reason(reason); })) << reason;
  for (const std::string& text : {std::string(), std::string(1025, 'x'), std::string("a\nb"),
                                  std::string("\x1b[2J"), std::string("\xff")})
    EXPECT_TRUE(refused([&](PodEvent& event) { event.set_message(text); })) << text;
  EXPECT_TRUE(refused([&](PodEvent& event) { event.set_count(0); }));
}

class EventSeriesTest : public testing::Test {
 protected:
  static constexpr char kEvents[] = "/api/v1/namespaces/default/events";

  Json Body() { return ParseJson(transport_.Request(kEvents).body).value_or(Json()); }
  std::string Method() { return transport_.Has(kEvents) ? transport_.Request(kEvents).method : ""; }
  void Make() {
    series_.Add("one", 1);
    ASSERT_TRUE(transport_.Answer(kEvents, 201, Json::object()));
  }
  void RefuseUntilItGivesUp() {
    for (int i = 0; i < 12; ++i) {
      ASSERT_TRUE(transport_.Answer(kEvents, 403, Json::object())) << i;
      timers_.Advance(std::chrono::seconds(5));
    }
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

TEST_F(EventSeriesTest, AChangeThatTheServerRefusesLeavesTheEventWithItsCount) {
  Make();
  series_.Add("two", 1);
  RefuseUntilItGivesUp();
  EXPECT_FALSE(transport_.Has(kEvents));
  series_.Add("three", 1);
  EXPECT_EQ(Method(), "PATCH");
  EXPECT_EQ(Body()["count"], 3);
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
  RefuseUntilItGivesUp();
  EXPECT_FALSE(transport_.Has(kEvents));
}

TEST_F(EventSeriesTest, ShortensItsMessage) {
  series_.Add(std::string(1 << 20, 'x'), 1);
  EXPECT_LE(Body()["message"].get<std::string>().size(), 1024U);
}

}  // namespace
}  // namespace resmgr::agent
