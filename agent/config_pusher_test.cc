// SPDX-License-Identifier: Apache-2.0
#include "agent/config_pusher.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/clock.h"

namespace resmgr::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class FakeClient : public ConfigClient {
 public:
  void SetCallbacks(Callbacks callbacks) override { callbacks_ = std::move(callbacks); }
  void SetConfig(const std::map<std::string, std::string>& config, Done done) override {
    pushed.push_back(config.at("policy"));
    done_ = std::move(done);
  }
  bool TakeBack() override {
    if (holds) done_ = nullptr;
    return holds;
  }
  bool busy() const { return done_ != nullptr; }
  void Answer(StatusOr<std::string> verdict) { std::exchange(done_, nullptr)(std::move(verdict)); }
  void Lose() { callbacks_.lost(); }
  void FallSilent(milliseconds since) { callbacks_.silent(since); }
  void AnswerAgain() { callbacks_.answers(); }

  std::vector<std::string> pushed;
  bool holds = false;  // configurations wait for the daemon

 private:
  Done done_;
  Callbacks callbacks_;
};

class ConfigPusherTest : public testing::Test {
 protected:
  static ConfigMap Map(const std::string& value) {
    return {.name = "m", .version = "1", .data = {{"policy", value}}};
  }

  FakeClient client_;
  ManualClock timers_;
  std::vector<std::string> verdicts_;
  ConfigPusher pusher_{client_,
                       timers_,
                       {.first = milliseconds(100), .limit = milliseconds(1000)},
                       1,
                       [this](const Verdict& verdict) {
                         verdicts_.push_back(std::string(ToString(verdict.state)) +
                                             (verdict.reason.empty() ? "" : ": " + verdict.reason));
                       }};
};

TEST_F(ConfigPusherTest, TellsWhatTheDaemonSays) {
  pusher_.Set(Map("a"));
  client_.Answer("");
  pusher_.Set(Map("b"));
  client_.Answer("no such policy");
  EXPECT_THAT(client_.pushed, ElementsAre("a", "b"));
  EXPECT_THAT(verdicts_, ElementsAre("accepted", "rejected: no such policy"));
  EXPECT_EQ(Complaint(pusher_.verdict()), "ConfigMap m is rejected: no such policy");
  EXPECT_EQ(timers_.timers(), 0u) << "a rejection is not retried";
}

TEST_F(ConfigPusherTest, WhatWaitsForTheDaemonIsTakenBackWhenItAppliesNoMore) {
  client_.holds = true;
  pusher_.Set(Map("a"));
  pusher_.Set(Map("b"));
  EXPECT_THAT(client_.pushed, ElementsAre("a", "b"));
  pusher_.Set(std::nullopt);
  EXPECT_FALSE(client_.busy());
  EXPECT_FALSE(pusher_.pushing());
  pusher_.Set(Map("c"));
  client_.Answer("");
  EXPECT_THAT(client_.pushed, ElementsAre("a", "b", "c"));
  EXPECT_THAT(verdicts_, ElementsAre("none", "accepted"));
}

TEST_F(ConfigPusherTest, PushesNothingWhereNoMapApplies) {
  pusher_.Set(std::nullopt);
  EXPECT_THAT(client_.pushed, IsEmpty());
  EXPECT_THAT(verdicts_, ElementsAre("none"));
  EXPECT_EQ(Complaint(pusher_.verdict()), "");
}

TEST_F(ConfigPusherTest, TriesUntilTheDaemonIsThere) {
  pusher_.Set(Map("a"));
  for (int i = 0; i < 4; ++i) {
    client_.Answer(Unavailable("no daemon"));
    EXPECT_THAT(verdicts_, IsEmpty()) << "too soon to report";
    timers_.RunNext();
  }
  client_.Answer("");
  EXPECT_THAT(client_.pushed, ElementsAre("a", "a", "a", "a", "a"));
  EXPECT_THAT(verdicts_, ElementsAre("accepted"));
}

TEST_F(ConfigPusherTest, SaysThatTheDaemonIsMissing) {
  pusher_.Set(Map("a"));
  const auto start = timers_.Steady();
  while (timers_.Steady() - start < seconds(10)) {
    if (client_.busy()) client_.Answer(Unavailable("no daemon"));
    timers_.RunNext();
  }
  EXPECT_THAT(verdicts_, ElementsAre("pending: no daemon"));
  EXPECT_EQ(Complaint(pusher_.verdict()), "ConfigMap m is not delivered: no daemon");
  client_.Answer("");
  EXPECT_THAT(verdicts_, ElementsAre("pending: no daemon", "accepted"));
}

TEST_F(ConfigPusherTest, SaysThatADeliveryHasNoAnswer) {
  pusher_.Set(Map("a"));
  timers_.Advance(milliseconds(4999));
  EXPECT_THAT(verdicts_, IsEmpty());
  timers_.Advance(milliseconds(1));
  EXPECT_THAT(verdicts_, ElementsAre("pending: cri-resmgr does not answer"));
  client_.Answer("");
  EXPECT_THAT(client_.pushed, ElementsAre("a")) << "however late, it is the answer";
  EXPECT_THAT(verdicts_, ElementsAre("pending: cri-resmgr does not answer", "accepted"));
}

TEST_F(ConfigPusherTest, ADaemonThatFallsSilentIsPendingUntilItAnswers) {
  pusher_.Set(Map("a"));
  client_.Answer("bad");
  client_.FallSilent(milliseconds(3000));
  timers_.Advance(milliseconds(1999));
  EXPECT_THAT(verdicts_, ElementsAre("rejected: bad")) << "silent for less than five seconds";
  timers_.Advance(milliseconds(1));
  client_.AnswerAgain();
  EXPECT_THAT(verdicts_,
              ElementsAre("rejected: bad", "pending: cri-resmgr does not answer", "rejected: bad"));
  EXPECT_THAT(client_.pushed, ElementsAre("a")) << "it has it still";
  EXPECT_EQ(timers_.timers(), 0u);
}

TEST_F(ConfigPusherTest, AShortSilenceIsNotTold) {
  pusher_.Set(Map("a"));
  client_.Answer("");
  client_.FallSilent(milliseconds(3000));
  client_.AnswerAgain();
  timers_.Advance(seconds(60));
  EXPECT_THAT(verdicts_, ElementsAre("accepted"));
}

TEST_F(ConfigPusherTest, ADaemonThatEndsInSilenceGetsItsConfigurationAgain) {
  pusher_.Set(Map("a"));
  client_.Answer("");
  client_.FallSilent(milliseconds(3000));
  timers_.Advance(seconds(1));
  client_.Lose();
  timers_.Advance(seconds(1));
  client_.Answer("");
  EXPECT_THAT(client_.pushed, ElementsAre("a", "a"));
  EXPECT_THAT(verdicts_,
              ElementsAre("accepted", "pending: cri-resmgr does not answer", "accepted"));
}

TEST_F(ConfigPusherTest, TakesARefusedCallForARejection) {
  pusher_.Set(Map("a"));
  client_.Answer(FailedPrecondition("-force-config"));
  EXPECT_THAT(verdicts_, ElementsAre("rejected: failed precondition: -force-config"));
  EXPECT_EQ(timers_.timers(), 0u);
}

TEST_F(ConfigPusherTest, LatestWinsWhileAPushIsUnderWay) {
  pusher_.Set(Map("a"));
  pusher_.Set(Map("b"));
  pusher_.Set(Map("c"));
  EXPECT_THAT(client_.pushed, ElementsAre("a"));
  client_.Answer("a is bad");
  EXPECT_THAT(verdicts_, IsEmpty()) << "a is not wanted any more";
  client_.Answer("");
  EXPECT_THAT(client_.pushed, ElementsAre("a", "c"));
  EXPECT_THAT(verdicts_, ElementsAre("accepted"));
}

TEST_F(ConfigPusherTest, PushesAgainToADaemonThatCameBack) {
  pusher_.Set(Map("a"));
  client_.Answer("");
  client_.Lose();
  client_.Answer(Unavailable("not yet"));
  timers_.RunNext();
  client_.Answer("");
  EXPECT_THAT(client_.pushed, ElementsAre("a", "a", "a"));
  EXPECT_THAT(verdicts_, ElementsAre("accepted")) << "nothing has changed for the cluster";
}

TEST_F(ConfigPusherTest, GivesARejectedMapToANewDaemonToo) {
  pusher_.Set(Map("a"));
  client_.Answer("bad");
  client_.Lose();
  client_.Answer("");
  EXPECT_THAT(verdicts_, ElementsAre("rejected: bad", "accepted"));
}

TEST_F(ConfigPusherTest, ForgetsAMapThatDoesNotApplyAnyMore) {
  pusher_.Set(Map("a"));
  pusher_.Set(std::nullopt);
  client_.Answer(Unavailable("no daemon"));
  client_.Lose();
  EXPECT_EQ(timers_.timers(), 0u);
  EXPECT_FALSE(client_.busy());
  EXPECT_THAT(verdicts_, ElementsAre("none"));
}

TEST_F(ConfigPusherTest, RejectsAMapThatCannotBeDelivered) {
  ConfigMap map = Map("a");
  map.problem = "policy is in binaryData";
  pusher_.Set(map);
  client_.Lose();
  EXPECT_THAT(client_.pushed, IsEmpty()) << "the daemon keeps what it has";
  EXPECT_THAT(verdicts_, ElementsAre("rejected: policy is in binaryData"));
  pusher_.Set(Map("a"));
  client_.Answer("");
  EXPECT_THAT(verdicts_, ElementsAre("rejected: policy is in binaryData", "accepted"));
}

TEST_F(ConfigPusherTest, AnotherVersionOfTheSameContentIsNotPushed) {
  ConfigMap map = Map("a");
  pusher_.Set(map);
  map.version = "2";
  pusher_.Set(map);
  client_.Answer("");
  EXPECT_EQ(pusher_.verdict().version, "2") << "the verdict is about this content";
  map.version = "3";
  pusher_.Set(map);
  EXPECT_THAT(client_.pushed, ElementsAre("a"));
  EXPECT_THAT(verdicts_, ElementsAre("accepted", "accepted"));
  EXPECT_EQ(pusher_.verdict().version, "3");
  EXPECT_EQ(pusher_.verdict().content_version, "1");
}

}  // namespace
}  // namespace resmgr::agent
