// SPDX-License-Identifier: Apache-2.0
#include "agent/status_reporter.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/cpus_annotation.h"
#include "agent/http.h"
#include "agent/testing/fake_transport.h"
#include "pkg/base/json.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

const Verdict kAccepted{
    .state = Verdict::State::kAccepted, .map = "m.default", .version = "7", .reason = ""};
const Verdict kRejected{.state = Verdict::State::kRejected,
                        .map = "m.default",
                        .version = "8",
                        .reason = "no policy \"x\""};
constexpr char kOwnMap[] = "m.node.n1";

class StatusReporterTest : public testing::Test {
 protected:
  StatusReporterTest() { Show(Json::object()); }

  // Shows the node by the watch.
  void Show(const Json& annotations) {
    reporter_.NodeSeen({{"metadata", {{"name", "n1"}, {"annotations", annotations}}}});
  }
  void Show(const Verdict& verdict) {
    Json annotations = {{kStatusAnnotation, ToString(verdict.state)},
                        {kMapAnnotation, verdict.map},
                        {kVersionAnnotation, verdict.version}};
    if (!verdict.reason.empty()) annotations[std::string(kErrorAnnotation)] = verdict.reason;
    Show(annotations);
  }
  void ReportSoon(const Verdict& verdict) {
    reporter_.Report(verdict);
    timers_.Advance(kSoon);
  }
  Json Body(const char* target) {
    return ParseJson(transport_.Request(target).body).value_or(Json());
  }
  Json Annotations() { return Body("/api/v1/nodes/n1")["metadata"]["annotations"]; }
  bool Patched() { return transport_.Answer("/nodes/", 200, Json::object()); }
  static Verdict OfOwnMap(Verdict verdict) {
    verdict.map = kOwnMap;
    return verdict;
  }

  static constexpr milliseconds kSoon{200};

  FakeTransport transport_;
  ManualClock timers_;
  StatusReporter reporter_{transport_,
                           timers_,
                           "n1",
                           kOwnMap,
                           {.spread = seconds(60),
                            .debounce = kSoon,
                            .limit = {.burst = 5, .period = seconds(10)},
                            .backoff = {.first = milliseconds(100), .limit = milliseconds(1000)}},
                           1,
                           [] { return std::chrono::system_clock::from_time_t(1'767'323'045); }};
};

constexpr int kAgents = 600;

// The number of the kAgents, with a spread of a minute, that have reported the verdict of a shared
// map within `time`.
int AgentsThatReport(const Verdict& verdict, milliseconds time) {
  int reported = 0;
  for (uint64_t seed = 0; seed < kAgents; ++seed) {
    FakeTransport transport;
    ManualClock timers;
    StatusReporter reporter(transport, timers, "n1", kOwnMap, {.spread = seconds(60)}, seed);
    reporter.NodeSeen(
        {{"metadata",
          {{"annotations", {{kStatusAnnotation, "accepted"}, {kMapAnnotation, "m.default"}}}}}});
    reporter.Report(verdict);
    timers.Advance(time);
    if (transport.Has("/nodes/")) ++reported;
  }
  return reported;
}

TEST_F(StatusReporterTest, AnnotatesTheNode) {
  ReportSoon(kRejected);
  const HttpRequest request = transport_.Request("/nodes/");
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.content_type, "application/merge-patch+json");
  EXPECT_EQ(Annotations()[std::string(kStatusAnnotation)], "rejected");
  EXPECT_EQ(Annotations()[std::string(kMapAnnotation)], "m.default");
  EXPECT_EQ(Annotations()[std::string(kVersionAnnotation)], "8");
  EXPECT_EQ(Annotations()[std::string(kErrorAnnotation)], "no policy \"x\"");
}

TEST_F(StatusReporterTest, RemovesWhatIsNotTrueAnyMore) {
  ReportSoon(kAccepted);
  EXPECT_EQ(Annotations()[std::string(kErrorAnnotation)], nullptr);
  EXPECT_EQ(Annotations()[std::string(kStatusAnnotation)], "accepted");
}

TEST_F(StatusReporterTest, OnlyARejectionIsAnEvent) {
  ReportSoon(kAccepted);
  EXPECT_FALSE(transport_.Has("/events"));
  ASSERT_TRUE(Patched());
  ReportSoon(OfOwnMap(kRejected));
  const Json event = Body("/events");
  EXPECT_EQ(event["reason"], "ConfigRejected");
  EXPECT_THAT(event["message"].get<std::string>(),
              AllOf(HasSubstr("ConfigMap m.node.n1"), HasSubstr("no policy \"x\"")));
}

TEST_F(StatusReporterTest, WhatTheNodeShowsIsNotWrittenAgain) {
  Show(kRejected);
  ReportSoon(kRejected);
  timers_.Advance(std::chrono::hours(1));
  EXPECT_EQ(transport_.sent(), 0) << "as after a restart of the agent";
}

TEST_F(StatusReporterTest, ASharedMapIsReportedAtSomeTimeWithinTheSpread) {
  Show(kAccepted);
  Verdict later = kAccepted;
  later.version = "9";
  ReportSoon(later);
  EXPECT_FALSE(transport_.Has("/nodes/"));
  timers_.Advance(seconds(60));
  EXPECT_EQ(Annotations()[std::string(kVersionAnnotation)], "9");
}

TEST_F(StatusReporterTest, TheTimesOfAgentsAreSpreadEvenly) {
  const int early = AgentsThatReport(kAccepted, seconds(20));
  EXPECT_THAT(early, AllOf(testing::Gt(kAgents / 4), testing::Lt(kAgents * 5 / 12)));
}

TEST_F(StatusReporterTest, ARejectionOfASharedMapHasTwiceTheTimeSinceItIsAnEventToo) {
  const int early = AgentsThatReport(kRejected, seconds(60));
  EXPECT_THAT(early, AllOf(testing::Gt(kAgents * 5 / 12), testing::Lt(kAgents * 7 / 12)));
}

TEST_F(StatusReporterTest, WhatConcernsThisNodeAloneIsReportedSoon) {
  Show(kAccepted);
  ReportSoon(OfOwnMap(kAccepted));
  EXPECT_EQ(Annotations()[std::string(kMapAnnotation)], kOwnMap) << "a map of its own";
  ASSERT_TRUE(Patched());
  ReportSoon(kAccepted);
  EXPECT_EQ(Annotations()[std::string(kMapAnnotation)], "m.default") << "which is gone";
  ASSERT_TRUE(Patched());
  Verdict pending = kAccepted;
  pending.state = Verdict::State::kPending;
  pending.reason = "no socket";
  ReportSoon(pending);
  EXPECT_EQ(Annotations()[std::string(kStatusAnnotation)], "pending") << "the node's cri-resmgr";
}

TEST_F(StatusReporterTest, ChangesThatFollowEachOtherAreOneReport) {
  for (int i = 0; i < 100; ++i) {
    Verdict verdict = OfOwnMap(kAccepted);
    verdict.version = std::to_string(i);
    reporter_.Report(verdict);
  }
  timers_.Advance(kSoon);
  EXPECT_EQ(transport_.sent(), 1);
  EXPECT_EQ(Annotations()[std::string(kVersionAnnotation)], "99");
}

TEST_F(StatusReporterTest, AFlappingMapIsLimitedAndTheLastStateWins) {
  int patches = 0;
  int events = 0;
  constexpr int kMinutes = 2;
  for (int i = 0; i < kMinutes * 60; ++i) {
    Verdict verdict = OfOwnMap(i % 2 == 0 ? kRejected : kAccepted);
    verdict.version = std::to_string(i);
    reporter_.Report(verdict);
    timers_.Advance(seconds(1));
    if (Patched()) ++patches;
    if (transport_.Answer("/events", 200, Json::object())) ++events;
  }
  EXPECT_LE(patches, 5 + kMinutes * 6);
  EXPECT_LE(events, patches);
  timers_.Advance(seconds(10));
  EXPECT_EQ(Annotations()[std::string(kVersionAnnotation)], std::to_string(kMinutes * 60 - 1));
}

TEST_F(StatusReporterTest, WhoLostExclusiveCpusIsInTheVerdictAndAnEvent) {
  Verdict verdict = OfOwnMap(kAccepted);
  ReportSoon(verdict);
  ASSERT_TRUE(Patched());
  const auto show = [&](const std::string& losses, const std::string& error) {
    Json annotations = {{kStatusAnnotation, "accepted"},
                        {kMapAnnotation, verdict.map},
                        {kVersionAnnotation, verdict.version},
                        {kPolicyLossesAnnotation, losses}};
    if (!error.empty()) annotations[std::string(kErrorAnnotation)] = error;
    Show(annotations);
    timers_.Advance(kSoon);
  };
  show("default/dsp-1/main (2 CPUs)", "");
  const std::string error = Annotations()[std::string(kErrorAnnotation)];
  EXPECT_EQ(error, "containers lost exclusive CPUs: default/dsp-1/main (2 CPUs)");
  EXPECT_EQ(Body("/events")["reason"], "ExclusiveCpusLost");
  EXPECT_THAT(Body("/events")["message"].get<std::string>(), HasSubstr("default/dsp-1/main"));
  ASSERT_TRUE(Patched());
  transport_.Answer("/events", 201, Json::object());

  show("default/dsp-1/main (2 CPUs)", error);
  EXPECT_EQ(transport_.open(), 0u) << "it is told";
  show("", error);
  EXPECT_EQ(Annotations()[std::string(kErrorAnnotation)], nullptr);
  EXPECT_FALSE(transport_.Has("/events"));
}

TEST_F(StatusReporterTest, LossesOfBeforeTheStartAreNoEvent) {
  StatusReporter reporter(transport_, timers_, "n1", kOwnMap, {}, 1);
  reporter.NodeSeen(
      {{"metadata", {{"annotations", {{kPolicyLossesAnnotation, "default/dsp-1/main"}}}}}});
  reporter.Report(kAccepted);
  timers_.Advance(kSoon);
  EXPECT_TRUE(transport_.Has("/nodes/"));
  EXPECT_FALSE(transport_.Has("/events"));
}

TEST_F(StatusReporterTest, TriesUntilTheAnnotationsAreWritten) {
  ReportSoon(kAccepted);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(transport_.Answer("/nodes/", 500, Json::object()));
    timers_.RunNext();
  }
  EXPECT_TRUE(Patched());
  EXPECT_EQ(timers_.timers(), 0u);
}

TEST_F(StatusReporterTest, LatestVerdictReplacesOneThatWaits) {
  ReportSoon(kAccepted);
  transport_.Answer("/nodes/", Unavailable("down"));
  ReportSoon(OfOwnMap(kRejected));
  // The former report's next try may have begun before.
  if (Annotations()[std::string(kStatusAnnotation)] == "accepted") {
    ASSERT_TRUE(transport_.Answer("/nodes/", Unavailable("down")));
  }
  EXPECT_EQ(Annotations()[std::string(kStatusAnnotation)], "rejected");
  ASSERT_TRUE(Patched());
  timers_.Advance(std::chrono::hours(1));
  EXPECT_FALSE(transport_.Has("/nodes/"));
}

TEST_F(StatusReporterTest, ANodeObjectOfBeforeThePatchDoesNotCauseAnother) {
  ReportSoon(kAccepted);
  ASSERT_TRUE(Patched());
  Show(Json::object());
  timers_.Advance(kSoon / 2);
  Show(kAccepted);
  timers_.Advance(std::chrono::hours(1));
  EXPECT_EQ(transport_.sent(), 1);
}

TEST_F(StatusReporterTest, OtherAnnotationsAreOnePatchWithTheReport) {
  Show(kAccepted);
  Verdict later = kAccepted;
  later.version = "9";
  reporter_.TakeAlong({{"a.io/policy", "static"}, {"a.io/old", nullptr}});
  reporter_.TakeAlong({{"a.io/policy", "null"}});
  reporter_.Report(later);
  EXPECT_TRUE(reporter_.WaitsWithSharedNews());
  timers_.Advance(seconds(60));
  const Json annotations = Annotations();
  EXPECT_EQ(annotations["a.io/policy"], "null");
  EXPECT_TRUE(annotations.contains("a.io/old") && annotations["a.io/old"].is_null());
  EXPECT_EQ(annotations[std::string(kVersionAnnotation)], "9");
  // A change that comes while a request is under way is not lost.
  reporter_.TakeAlong({{"a.io/policy", "topology-aware"}});
  ASSERT_TRUE(Patched());
  EXPECT_EQ(reporter_.taken_along(), Json({{"a.io/policy", "topology-aware"}}));
  timers_.Advance(seconds(60));
  EXPECT_EQ(Annotations()["a.io/policy"], "topology-aware");
  ASSERT_TRUE(Patched());
  EXPECT_TRUE(reporter_.taken_along().empty());
  timers_.Advance(std::chrono::hours(1));
  EXPECT_EQ(transport_.sent(), 2);
}

// The annotations of the daemon must not keep the agent from telling its own.
TEST_F(StatusReporterTest, AnnotationsThatTheApiServerRefusesAreDroppedAndTheReportIsWritten) {
  for (const int refusal : {400, 413, 422}) {
    Verdict verdict = OfOwnMap(kAccepted);
    verdict.version = std::to_string(refusal);
    EXPECT_TRUE(reporter_.TakeAlong({{"a.io/policy", "static"}}));
    reporter_.Report(verdict);
    timers_.Advance(seconds(60));
    EXPECT_EQ(Annotations()["a.io/policy"], "static");
    ASSERT_TRUE(transport_.Answer("/nodes/", refusal, {{"message", "not valid"}}));
    EXPECT_TRUE(reporter_.taken_along().empty()) << refusal;
    EXPECT_FALSE(Annotations().contains("a.io/policy")) << refusal;
    EXPECT_EQ(Annotations()[std::string(kVersionAnnotation)], verdict.version);
    ASSERT_TRUE(Patched());
  }
  timers_.Advance(std::chrono::hours(1));
  EXPECT_EQ(transport_.sent(), 6);
}

// An API server that has just started refuses everything until it knows the roles.
TEST_F(StatusReporterTest, AnnotationsThatAreForbiddenOnceAreWrittenAllTheSame) {
  EXPECT_TRUE(reporter_.TakeAlong({{"a.io/policy", "static"}}));
  ReportSoon(OfOwnMap(kAccepted));
  EXPECT_EQ(Annotations()["a.io/policy"], "static");
  ASSERT_TRUE(transport_.Answer("/nodes/", 403, {{"message", "no roles yet"}}));
  EXPECT_FALSE(Annotations().contains("a.io/policy"));
  EXPECT_EQ(Annotations()[std::string(kMapAnnotation)], kOwnMap) << "at once";
  ASSERT_TRUE(Patched());
  EXPECT_TRUE(reporter_.TakeAlong({{"a.io/other", "x"}}));
  EXPECT_FALSE(transport_.Has("/nodes/"));
  timers_.Advance(seconds(6));
  EXPECT_EQ(Annotations()["a.io/policy"], "static");
  EXPECT_EQ(Annotations()["a.io/other"], "x");
  ASSERT_TRUE(Patched());
  EXPECT_TRUE(reporter_.taken_along().empty());
  timers_.Advance(std::chrono::hours(1));
  EXPECT_EQ(transport_.sent(), 3);
}

TEST_F(StatusReporterTest, AnnotationsThatStayForbiddenAreDroppedAfterAMinute) {
  constexpr seconds kLongestPause{48};
  for (int round = 0; round < 2; ++round) {
    reporter_.TakeAlong({{"a.io/policy", "static"}});
    timers_.Advance(seconds(60));
    for (int tries = 1; tries <= 5; ++tries) {
      EXPECT_EQ(reporter_.taken_along().size(), 1U) << tries;
      ASSERT_TRUE(transport_.Answer("/nodes/", 403, {{"message", "no right"}})) << tries;
      timers_.Advance(kLongestPause);
    }
    EXPECT_TRUE(reporter_.taken_along().empty());
    timers_.Advance(std::chrono::hours(1));
    EXPECT_EQ(transport_.open(), 0U);
  }
}

TEST_F(StatusReporterTest, ForbiddenAnnotationsThatAreWrittenByOtherMeansAreNotTriedAgain) {
  reporter_.TakeAlong({{"a.io/policy", "static"}});
  timers_.Advance(seconds(60));
  ASSERT_TRUE(transport_.Answer("/nodes/", 403, {{"message", "no roles yet"}}));
  EXPECT_TRUE(reporter_.LeaveOut({{"a.io/policy", "null"}}));
  timers_.Advance(std::chrono::hours(1));
  EXPECT_EQ(transport_.sent(), 1);
}

TEST_F(StatusReporterTest, RefusedAnnotationsWithoutAReportAreDropped) {
  reporter_.TakeAlong({{"a.io/policy", "static"}});
  timers_.Advance(seconds(60));
  ASSERT_TRUE(transport_.Answer("/nodes/", 422, {{"message", "not valid"}}));
  timers_.Advance(std::chrono::hours(1));
  EXPECT_EQ(transport_.sent(), 1);
}

TEST_F(StatusReporterTest, AnOutageDropsNoAnnotations) {
  reporter_.TakeAlong({{"a.io/policy", "static"}});
  timers_.Advance(seconds(60));
  for (const int outage : {401, 429, 500, 503}) {
    ASSERT_TRUE(transport_.Answer("/nodes/", outage, Json::object()));
    timers_.RunNext();
    EXPECT_EQ(Annotations()["a.io/policy"], "static") << outage;
  }
  ASSERT_TRUE(transport_.Answer("/nodes/", Unavailable("down")));
  timers_.RunNext();
  EXPECT_EQ(Annotations()["a.io/policy"], "static");
  EXPECT_TRUE(Patched());
}

// The API server would refuse more than an object may have.
TEST_F(StatusReporterTest, HoldsNoMoreAnnotationsThanAnObjectMayHave) {
  const std::string half(size_t{150} << 10, 'x');
  EXPECT_TRUE(reporter_.TakeAlong({{"a.io/one", half}}));
  EXPECT_FALSE(reporter_.TakeAlong({{"a.io/two", half}}));
  EXPECT_EQ(reporter_.taken_along(), Json({{"a.io/one", half}}));
  EXPECT_TRUE(reporter_.TakeAlong({{"a.io/one", half}})) << "in place of the one before";
}

TEST_F(StatusReporterTest, WhatIsWrittenByOtherMeansIsNotOverwritten) {
  reporter_.TakeAlong({{"a.io/policy", "static"}, {"a.io/source", "agent"}});
  EXPECT_TRUE(reporter_.LeaveOut({{"a.io/policy", "null"}}));
  timers_.Advance(seconds(60));
  EXPECT_EQ(Annotations(), Json({{"a.io/source", "agent"}}));
  // The same annotation is under way already.
  reporter_.TakeAlong({{"a.io/policy", "null"}});
  timers_.Advance(seconds(60));
  EXPECT_TRUE(reporter_.LeaveOut({{"a.io/other", "x"}}));
  EXPECT_FALSE(reporter_.LeaveOut({{"a.io/source", "a file"}})) << "it would be overwritten";
  ASSERT_TRUE(Patched());
  EXPECT_EQ(Annotations(), Json({{"a.io/policy", "null"}}));
  ASSERT_TRUE(Patched());
  EXPECT_TRUE(reporter_.taken_along().empty());
  EXPECT_TRUE(reporter_.LeaveOut({{"a.io/source", "a file"}}));
}

TEST_F(StatusReporterTest, ShortensWhatIsTooLong) {
  Verdict verdict = kRejected;
  verdict.reason = std::string(1 << 20, 'x');
  ReportSoon(verdict);
  EXPECT_LE(transport_.Request("/nodes/").body.size(), 10'000u);
}

// Half a character would make the API server refuse the whole annotation.
TEST_F(StatusReporterTest, ShortensBetweenCharacters) {
  for (size_t before = 0; before < 4; ++before) {
    Verdict verdict = OfOwnMap(kRejected);
    verdict.reason = std::string(before, 'x');
    for (int i = 0; i < 5000; ++i)
      verdict.reason += "\u20ac";
    ReportSoon(verdict);
    const std::string error = Annotations()[std::string(kErrorAnnotation)];
    EXPECT_TRUE(error.ends_with("\u20ac..."));
    EXPECT_LE(error.size(), 8192u);
    EXPECT_EQ(error.find("\ufffd"), std::string::npos) << "the mark of what was not UTF-8";
  }
}

TEST_F(StatusReporterTest, AnotherVersionOfTheSameRejectionIsNotAnEvent) {
  Show(kRejected);
  Verdict verdict = kRejected;
  verdict.version = "9";
  reporter_.Report(verdict);
  timers_.Advance(seconds(120));
  EXPECT_EQ(Annotations()[std::string(kVersionAnnotation)], "9");
  EXPECT_FALSE(transport_.Has("/events"));
}

// The answer to a patch of the former object says nothing about the new one.
TEST_F(StatusReporterTest, ANodeObjectThatIsMadeAnewDuringAPatchGetsTheAnnotationsToo) {
  ReportSoon(kAccepted);
  reporter_.TakeAlong({{"a.io/policy", "static"}});
  timers_.Advance(seconds(60));
  reporter_.NodeSeen({{"metadata", {{"name", "n1"}, {"uid", "another"}}}});
  ASSERT_TRUE(Patched());
  timers_.Advance(seconds(60));
  EXPECT_EQ(Annotations()[std::string(kStatusAnnotation)], "accepted");
  EXPECT_EQ(Annotations()["a.io/policy"], "static");
}

TEST_F(StatusReporterTest, ANewNodeObjectGetsTheAnnotationsAgain) {
  ReportSoon(kRejected);
  ASSERT_TRUE(Patched());
  Show(kRejected);
  Show(Json::object());
  timers_.Advance(kSoon);
  EXPECT_EQ(Annotations()[std::string(kStatusAnnotation)], "rejected");
}

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
  for (int tries = 0; tries < 5 && Answer(403); ++tries)
    timers_.Advance(seconds(60));
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
