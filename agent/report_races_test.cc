// SPDX-License-Identifier: Apache-2.0
// A server takes requests, answers them and reports changes in any order. In every case the node
// shows the last report in the end.
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "agent/status_reporter.h"
#include "agent/testing/fake_transport.h"
#include "pkg/base/json.h"
#include "pkg/log/log.h"
#include "pkg/sys/clock.h"
#include "test/support/seed.h"

namespace resmgr::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kNodePath[] = "/api/v1/nodes/n1";
constexpr char kRacesMap[] = "m.node.n1";
constexpr char kPolicyKey[] = "a.io/policy";
constexpr milliseconds kSoon{200};

const ReportOptions kReportOptions{
    .spread = seconds(60),
    .debounce = kSoon,
    .limit = {.burst = 1000, .period = milliseconds(1)},
    .backoff = {.first = milliseconds(100), .limit = milliseconds(1000)}};

Verdict VerdictOf(Verdict::State state, int version) {
  return {.state = state,
          .map = kRacesMap,
          .version = std::to_string(version),
          .reason = state == Verdict::State::kPending ? "cri-resmgr does not answer" : ""};
}

Json NodeWith(const Json& annotations) {
  return {{"metadata", {{"name", "n1"}, {"uid", "u"}, {"annotations", annotations}}}};
}

// The annotations of a node that has taken the report of this verdict.
Json AnnotationsOf(const Verdict& verdict) {
  Json annotations = {{kStatusAnnotation, ToString(verdict.state)},
                      {kMapAnnotation, verdict.map},
                      {kVersionAnnotation, verdict.version}};
  if (!verdict.reason.empty()) annotations[std::string(kErrorAnnotation)] = verdict.reason;
  return annotations;
}

class ReportRacesTest : public testing::Test {
 protected:
  ReportRacesTest() { reporter_.NodeSeen(NodeWith(AnnotationsOf(accepted_))); }

  void ReportSoon(const Verdict& verdict) {
    reporter_.Report(verdict);
    timers_.Advance(kSoon);
  }
  std::string StatusUnderWay() const {
    const auto body = ParseJson(transport_.Request(kNodePath).body);
    return body ? TextAt(*body, {"metadata", "annotations", kStatusAnnotation}) : "";
  }
  bool Patched() { return transport_.Answer(kNodePath, 200, Json::object()); }

  const Verdict accepted_ = VerdictOf(Verdict::State::kAccepted, 1);
  const Verdict pending_ = VerdictOf(Verdict::State::kPending, 1);
  const Verdict accepted_again_ = VerdictOf(Verdict::State::kAccepted, 2);
  FakeTransport transport_;
  ManualClock timers_;
  StatusReporter reporter_{transport_, timers_, "n1", kRacesMap, kReportOptions, 1};
};

// The server may carry out a request that was given up after the next one: then the node would stay
// pending for ever.
TEST_F(ReportRacesTest, NoReportIsSentWhileTheServerHasOneBeforeIt) {
  ReportSoon(pending_);
  ReportSoon(accepted_again_);
  timers_.Advance(seconds(10));
  EXPECT_EQ(transport_.sent(), 1);
  EXPECT_EQ(StatusUnderWay(), "pending");
  ASSERT_TRUE(Patched());
  EXPECT_EQ(transport_.sent(), 2) << "at once";
  EXPECT_EQ(StatusUnderWay(), "accepted");
  ASSERT_TRUE(Patched());
  timers_.Advance(std::chrono::hours(1));
  EXPECT_EQ(transport_.sent(), 2);
}

TEST_F(ReportRacesTest, AFailureOfTheReportBeforeDelaysNoNewerOne) {
  for (const StatusOr<HttpReply>& failure :
       {StatusOr<HttpReply>(Unavailable("down")), StatusOr<HttpReply>(DeadlineExceeded("late")),
        StatusOr<HttpReply>(HttpReply{.status = 409, .body = "", .retry_after = {}}),
        StatusOr<HttpReply>(HttpReply{.status = 500, .body = "", .retry_after = {}})}) {
    ReportSoon(pending_);
    ReportSoon(accepted_again_);
    ASSERT_TRUE(transport_.Answer(kNodePath, failure));
    EXPECT_EQ(StatusUnderWay(), "accepted");
    ASSERT_TRUE(Patched());
  }
  timers_.Advance(std::chrono::hours(1));
  EXPECT_EQ(transport_.open(), 0U);
}

TEST_F(ReportRacesTest, AServerThatAsksForTimeGetsItBeforeTheNewerReport) {
  ReportSoon(pending_);
  ReportSoon(accepted_again_);
  ASSERT_TRUE(transport_.Answer(kNodePath,
                                HttpReply{.status = 429, .body = "", .retry_after = seconds(30)}));
  timers_.Advance(seconds(29));
  EXPECT_EQ(transport_.open(), 0U);
  timers_.Advance(seconds(1));
  EXPECT_EQ(StatusUnderWay(), "accepted");
}

// The watch has its own connection, so it may show a state after a reply that arrives later.
TEST_F(ReportRacesTest, WhatTheWatchShowsBeforeTheReplyIsNotForgotten) {
  ReportSoon(accepted_again_);
  reporter_.NodeSeen(NodeWith(AnnotationsOf(accepted_again_)));
  reporter_.NodeSeen(NodeWith(AnnotationsOf(pending_)));
  ASSERT_TRUE(Patched());
  timers_.Advance(kSoon);
  EXPECT_EQ(StatusUnderWay(), "accepted") << "the node shows that it is pending";
}

// The watch may also show a state before the patch; the effects of that are corrected soon.
TEST_F(ReportRacesTest, WhatTheWatchShowsOfBeforeThePatchCausesNoOther) {
  ReportSoon(accepted_again_);
  reporter_.NodeSeen(NodeWith(AnnotationsOf(accepted_)));
  ASSERT_TRUE(Patched());
  timers_.Advance(kSoon / 2);
  reporter_.NodeSeen(NodeWith(AnnotationsOf(accepted_again_)));
  timers_.Advance(std::chrono::hours(1));
  EXPECT_EQ(transport_.sent(), 1);
}

TEST_F(ReportRacesTest, NorDoesItWhereReportsAreNotSpread) {
  ReportOptions at_once = kReportOptions;
  at_once.spread = seconds(0);
  StatusReporter reporter(transport_, timers_, "n1", kRacesMap, at_once, 1);
  Verdict shared = accepted_;
  shared.map = "m.default";
  reporter.NodeSeen(NodeWith(AnnotationsOf(shared)));
  Verdict next = shared;
  next.version = "2";
  reporter.Report(next);
  timers_.Advance(kSoon);
  reporter.NodeSeen(NodeWith(AnnotationsOf(shared)));
  ASSERT_TRUE(Patched());
  timers_.Advance(kSoon / 2);
  reporter.NodeSeen(NodeWith(AnnotationsOf(next)));
  timers_.Advance(std::chrono::hours(1));
  EXPECT_EQ(transport_.sent(), 1);
}

// Annotations of the daemon that are sent before a verdict do not change the report.
TEST_F(ReportRacesTest, ThePatchOfOthersAnnotationsTellsNothingOfTheReport) {
  reporter_.TakeAlong({{kPolicyKey, "static"}});
  timers_.Advance(kReportOptions.spread);
  reporter_.NodeSeen(NodeWith(AnnotationsOf(pending_)));
  ASSERT_TRUE(Patched());
  ReportSoon(accepted_);
  EXPECT_EQ(StatusUnderWay(), "accepted") << "the node shows that it is pending";
}

// An API server with many threads: it carries out requests in any order, also those that were given
// up, loses replies, and is behind with its watch.
class RacingServer : public HttpTransport {
 public:
  RacingServer(std::mt19937& random, Json annotations)
      : random_(random), annotations_(std::move(annotations)) {}

  std::unique_ptr<Call> Send(HttpRequest request, Data /*data*/, Done done) override {
    const auto one = std::make_shared<One>();
    one->done = std::move(done);
    if (request.method == "PATCH") one->patch = ParseJson(request.body).value_or(Json());
    open_.push_back(one);
    return std::make_unique<Handle>(one);
  }

  const Json& annotations() const { return annotations_; }
  bool idle() const { return open_.empty() && changes_.empty(); }

  void CarryOutSome() {
    std::vector<std::shared_ptr<One>> due;
    std::ranges::copy_if(open_, std::back_inserter(due),
                         [](const auto& one) { return !one->over; });
    if (due.empty()) return;
    One& one = *due[Below(due.size())];
    one.over = true;
    one.fails = Below(5) == 0;
    if (one.fails || !one.patch.is_object()) return;
    Json after = annotations_;
    after.merge_patch(one.patch["metadata"]["annotations"]);
    if (after == annotations_) return;
    annotations_ = std::move(after);
    changes_.push_back(annotations_);
  }
  void ReplyToSome() {
    std::vector<std::shared_ptr<One>> due;
    std::ranges::copy_if(open_, std::back_inserter(due), [](const auto& one) { return one->over; });
    if (due.empty()) return;
    const std::shared_ptr<One> one = due[Below(due.size())];
    open_.remove(one);
    if (one->given_up) return;
    if (Below(8) == 0) return one->done(Unavailable("the reply is lost"));
    one->done(HttpReply{.status = one->fails ? 503 : 200, .body = "{}", .retry_after = {}});
  }
  std::optional<Json> NextChange() {
    if (changes_.empty()) return std::nullopt;
    Json change = std::move(changes_.front());
    changes_.pop_front();
    return change;
  }

 private:
  struct One {
    Json patch{};
    Done done{};
    bool over = false;  // carried out, or failed
    bool fails = false;
    bool given_up = false;
  };
  class Handle : public Call {
   public:
    explicit Handle(std::shared_ptr<One> one) : one_(std::move(one)) {}
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() override { one_->given_up = true; }

   private:
    const std::shared_ptr<One> one_;
  };

  size_t Below(size_t limit) { return random_() % limit; }

  std::mt19937& random_;
  Json annotations_;
  std::list<std::shared_ptr<One>> open_;
  std::deque<Json> changes_;  // not shown by the watch yet
};

// One life of a reporter: true if the node shows the last report and the last annotation.
bool EndsWithTheLastReport(uint32_t seed) {
  std::mt19937 random(seed);
  Verdict verdict = VerdictOf(Verdict::State::kAccepted, 1);
  std::string policy;
  RacingServer server(random, AnnotationsOf(verdict));
  ManualClock timers;
  StatusReporter reporter(server, timers, "n1", kRacesMap, kReportOptions, seed);
  reporter.NodeSeen(NodeWith(server.annotations()));
  const auto step = [&](uint32_t kind) {
    if (kind == 0) server.CarryOutSome();
    if (kind == 1) server.ReplyToSome();
    if (kind == 2) timers.Advance(milliseconds(random() % 300));
    if (kind != 3) return;
    if (const auto change = server.NextChange()) reporter.NodeSeen(NodeWith(*change));
  };
  constexpr int kSteps = 60;
  for (int i = 0; i < kSteps; ++i) {
    const auto kind = static_cast<uint32_t>(random() % 12);
    step(kind % 4);
    if (kind == 4) {
      constexpr std::array kStates = {Verdict::State::kAccepted, Verdict::State::kPending};
      verdict = VerdictOf(kStates[random() % 2], 1 + static_cast<int>(random() % 2));
      reporter.Report(verdict);
    }
    if (kind == 5) {
      policy = random() % 2 == 0 ? "static" : "topology-aware";
      reporter.TakeAlong({{kPolicyKey, policy}});
    }
  }
  for (int i = 0; i < 1000 && (!server.idle() || timers.timers() > 0); ++i) {
    for (const uint32_t kind : {0U, 1U, 3U})
      step(kind);
    timers.Advance(seconds(1));
  }
  const auto shown = [&](std::string_view key) {
    return server.annotations().value(std::string(key), "");
  };
  const bool reported = verdict.version == shown(kVersionAnnotation) &&
                        ToString(verdict.state) == shown(kStatusAnnotation) &&
                        verdict.reason == shown(kErrorAnnotation);
  return server.idle() && timers.timers() == 0 && reported && shown(kPolicyKey) == policy;
}

TEST(ReportRacesModelTest, TheNodeShowsTheLastReportInTheEnd) {
  GetLogger("status").SetThreshold(LogLevel::kError);
  const auto first = static_cast<uint32_t>(test::SeedOr(1));
  constexpr uint32_t kLives = 2000;
  for (uint32_t seed = first; seed < first + kLives; ++seed)
    ASSERT_TRUE(EndsWithTheLastReport(seed)) << test::Repeat(seed);
  GetLogger("status").SetThreshold(LogLevel::kInfo);
}

}  // namespace
}  // namespace resmgr::agent
