// SPDX-License-Identifier: Apache-2.0
#include "agent/status_reporter.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/json.h"
#include "agent/testing/fake_timers.h"
#include "agent/testing/fake_transport.h"

namespace resmgr::agent {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

const Verdict kAccepted{
    .state = Verdict::State::kAccepted, .map = "m", .version = "7", .reason = ""};
const Verdict kRejected{
    .state = Verdict::State::kRejected, .map = "m", .version = "8", .reason = "no policy \"x\""};

class StatusReporterTest : public testing::Test {
 protected:
  Json Body(const char* target) {
    return ParseJson(transport_.Request(target).body).value_or(Json());
  }
  Json Annotations() { return Body("/api/v1/nodes/n1")["metadata"]["annotations"]; }

  FakeTransport transport_;
  FakeTimers timers_;
  StatusReporter reporter_{
      transport_, timers_,
      "n1",       {.first = milliseconds(100), .limit = milliseconds(1000)},
      1,          [] { return std::chrono::system_clock::from_time_t(1'767'323'045); }};
};

TEST_F(StatusReporterTest, AnnotatesTheNode) {
  reporter_.Report(kRejected);
  const HttpRequest request = transport_.Request("/nodes/");
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.content_type, "application/merge-patch+json");
  EXPECT_EQ(Annotations()[std::string(kStatusAnnotation)], "rejected");
  EXPECT_EQ(Annotations()[std::string(kMapAnnotation)], "m");
  EXPECT_EQ(Annotations()[std::string(kVersionAnnotation)], "8");
  EXPECT_EQ(Annotations()[std::string(kErrorAnnotation)], "no policy \"x\"");
}

TEST_F(StatusReporterTest, RemovesWhatIsNotTrueAnyMore) {
  reporter_.Report(kAccepted);
  EXPECT_EQ(Annotations()[std::string(kErrorAnnotation)], nullptr);
  EXPECT_EQ(Annotations()[std::string(kStatusAnnotation)], "accepted");
}

TEST_F(StatusReporterTest, WritesAnEventForEachVerdict) {
  reporter_.Report(kAccepted);
  Json event = Body("/events");
  EXPECT_EQ(event["reason"], "ConfigAccepted");
  EXPECT_EQ(event["type"], "Normal");
  EXPECT_EQ(event["involvedObject"]["name"], "n1");
  EXPECT_EQ(event["firstTimestamp"], "2026-01-02T03:04:05Z");
  transport_.Answer("/events", 201, Json::object());
  reporter_.Report(kRejected);
  event = Body("/events");
  EXPECT_EQ(event["reason"], "ConfigRejected");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_THAT(event["message"].get<std::string>(),
              AllOf(HasSubstr("ConfigMap m"), HasSubstr("no policy \"x\"")));
}

TEST_F(StatusReporterTest, WritesNoEventTwiceAndNoneForWhatIsNoVerdict) {
  reporter_.Report(kAccepted);
  transport_.Answer("/events", 201, Json::object());
  reporter_.Report({.state = Verdict::State::kPending, .map = "m", .version = "7", .reason = "x"});
  reporter_.Report(kAccepted);
  reporter_.Report({.state = Verdict::State::kNone, .map = "", .version = "", .reason = ""});
  EXPECT_FALSE(transport_.Has("/events"));
}

TEST_F(StatusReporterTest, TriesUntilTheAnnotationsAreWritten) {
  reporter_.Report(kAccepted);
  transport_.Answer("/events", 201, Json::object());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(transport_.Answer("/nodes/", 500, Json::object()));
    timers_.RunNext();
  }
  EXPECT_TRUE(transport_.Answer("/nodes/", 200, Json::object()));
  EXPECT_EQ(timers_.waiting(), 0u);
}

TEST_F(StatusReporterTest, LatestVerdictReplacesOneThatWaits) {
  reporter_.Report(kAccepted);
  transport_.Answer("/nodes/", Unavailable("down"));
  reporter_.Report(kRejected);
  EXPECT_EQ(Annotations()[std::string(kStatusAnnotation)], "rejected");
  transport_.Answer("/nodes/", 200, Json::object());
  timers_.Advance(std::chrono::hours(1));
  EXPECT_FALSE(transport_.Has("/nodes/"));
}

TEST_F(StatusReporterTest, GivesUpAnEventThatNobodyWants) {
  reporter_.Report(kAccepted);
  transport_.Answer("/nodes/", 200, Json::object());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(transport_.Answer("/events", 403, Json::object()));
    timers_.Advance(std::chrono::seconds(5));
  }
  EXPECT_FALSE(transport_.Has("/events"));
}

TEST_F(StatusReporterTest, ShortensWhatIsTooLong) {
  Verdict verdict = kRejected;
  verdict.reason = std::string(1 << 20, 'x');
  reporter_.Report(verdict);
  EXPECT_LE(transport_.Request("/nodes/").body.size(), 10'000u);
  EXPECT_LE(Body("/events")["message"].get<std::string>().size(), 1024u);
}

// Half a character would make the API server refuse the whole annotation.
TEST_F(StatusReporterTest, ShortensBetweenCharacters) {
  for (size_t before = 0; before < 4; ++before) {
    Verdict verdict = kRejected;
    verdict.reason = std::string(before, 'x');
    for (int i = 0; i < 5000; ++i)
      verdict.reason += "\u20ac";
    reporter_.Report(verdict);
    const std::string error = Annotations()[std::string(kErrorAnnotation)];
    EXPECT_TRUE(error.ends_with("\u20ac..."));
    EXPECT_LE(error.size(), 8192u);
    EXPECT_EQ(error.find("\ufffd"), std::string::npos) << "the mark of what was not UTF-8";
  }
}

TEST_F(StatusReporterTest, AnotherVersionOfTheSameContentIsNotAnEvent) {
  Verdict verdict = kAccepted;
  verdict.content_version = "7";
  reporter_.Report(verdict);
  transport_.Answer("/events", 201, Json::object());
  verdict.version = "9";
  reporter_.Report(verdict);
  EXPECT_EQ(Annotations()[std::string(kVersionAnnotation)], "9");
  EXPECT_FALSE(transport_.Has("/events"));
}

TEST_F(StatusReporterTest, RepeatsTheAnnotationsForANewNodeObject) {
  reporter_.Repeat();
  EXPECT_FALSE(transport_.Has("/nodes/")) << "there is nothing to tell yet";
  reporter_.Report(kRejected);
  transport_.Answer("/nodes/", 200, Json::object());
  reporter_.Repeat();
  EXPECT_EQ(Annotations()[std::string(kStatusAnnotation)], "rejected");
}

}  // namespace
}  // namespace resmgr::agent
