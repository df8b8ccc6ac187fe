// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/dispatch.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/testing/function_port.h"
#include "test/support/status_matchers.h"

namespace resmgr::nri {
namespace {

using resmgr::test::Fails;
using std::chrono::milliseconds;
using test::FunctionPort;
using testing::ElementsAre;
using testing::Optional;

class DispatchTest : public testing::Test {
 protected:
  // Asks the subscribers of StartContainer about it.
  void Ask(Dispatcher::Kind kind = Dispatcher::Kind::kRequest,
           milliseconds budget = milliseconds(10'000)) {
    ended_.reset();
    dispatcher_.InTurn(kind, dispatcher_.Wanting(api::EVENT_START_CONTAINER), Budget(budget), Start,
                       [this](const Status& status) { ended_ = status; });
  }
  // Asks all of them as validators.
  void Validate(milliseconds budget = milliseconds(1'000)) {
    dispatcher_.Together(dispatcher_.plugins(), Budget(budget), Start,
                         [this](const Status& status) { ended_ = status; });
  }
  static void Start(HostedPlugin& plugin, milliseconds timeout, Dispatcher::Answered answered) {
    api::StateChangeEvent event;
    event.set_event(api::EVENT_START_CONTAINER);
    event.mutable_container()->set_name("c");
    plugin.port->Notify(event, timeout, std::move(answered));
  }
  static void Answering(FunctionPort& port, Status status) {
    port.notify = [status = std::move(status)](const auto&, auto done) { done(status); };
  }

  std::vector<std::string> told_;
  std::optional<Status> ended_;
  int ignored_ = 0;
  Dispatcher dispatcher_{[this] { ++ignored_; }};
};

TEST_F(DispatchTest, AsksInTheOrderOfIndexAndNameThoseThatHaveSubscribed) {
  FunctionPort late("20-b", told_);
  FunctionPort last("99-a", told_);
  FunctionPort first("00-z", told_);
  FunctionPort deaf("10-deaf", told_);
  deaf.wants = [](api::Event) { return false; };
  for (FunctionPort* port : {&late, &last, &first, &deaf})
    dispatcher_.Add(*port);
  Ask();
  EXPECT_THAT(told_, ElementsAre("00-z START_CONTAINER c", "20-b START_CONTAINER c",
                                 "99-a START_CONTAINER c"));
  EXPECT_THAT(ended_, Optional(OkStatus()));
  EXPECT_TRUE(dispatcher_.AnyWants(api::EVENT_START_CONTAINER));
  EXPECT_FALSE(dispatcher_.AnyWants(api::EVENT_VALIDATE_CONTAINER_ADJUSTMENT));
}

TEST_F(DispatchTest, TheFirstRefusalEndsARequestAndNamesThePlugin) {
  FunctionPort refuses("10-a", told_);
  FunctionPort other("20-b", told_);
  Answering(refuses, FailedPrecondition("no\nway"));
  dispatcher_.Add(refuses);
  dispatcher_.Add(other);
  Ask();
  EXPECT_THAT(told_, ElementsAre("10-a START_CONTAINER c"));
  EXPECT_THAT(ended_,
              Optional(Fails(StatusCode::kFailedPrecondition, "NRI plugin 10-a: no\\x0away")));
}

TEST_F(DispatchTest, OthersHearOfANoticeWhateverOneSaysOfIt) {
  FunctionPort refuses("10-a", told_, {.failure = FailurePolicy::kFail});
  FunctionPort other("20-b", told_);
  Answering(refuses, FailedPrecondition("no"));
  dispatcher_.Add(refuses);
  dispatcher_.Add(other);
  Ask(Dispatcher::Kind::kNotice);
  EXPECT_EQ(told_.size(), 2u);
  EXPECT_THAT(ended_, Optional(OkStatus()));
}

TEST_F(DispatchTest, WhatFollowsWithoutAnAnswerIsThePluginsSetting) {
  for (const Status& none : {DeadlineExceeded("late"), Unavailable("lost")}) {
    for (const bool required : {false, true}) {
      FunctionPort ignored("10-a", told_, {.required = required});
      Answering(ignored, none);
      dispatcher_.Add(ignored);
      Ask();
      EXPECT_EQ(ended_->ok(), !required);
      dispatcher_.Remove(ignored);
    }
    FunctionPort needed("10-a", told_, {.failure = FailurePolicy::kFail});
    Answering(needed, none);
    dispatcher_.Add(needed);
    Ask();
    EXPECT_EQ(ended_->code(), none.code());
    dispatcher_.Remove(needed);
  }
  EXPECT_EQ(ignored_, 2);
}

TEST_F(DispatchTest, APluginThatIsLostBeforeItsTurnIsNotAsked) {
  FunctionPort first("10-a", told_);
  FunctionPort lost("20-b", told_);
  first.notify = [&](const auto&, auto done) {
    dispatcher_.Remove(lost);
    done(OkStatus());
  };
  dispatcher_.Add(first);
  dispatcher_.Add(lost);
  Ask();
  EXPECT_THAT(told_, ElementsAre("10-a START_CONTAINER c"));
  EXPECT_THAT(ended_, Optional(OkStatus()));
}

TEST_F(DispatchTest, ThePluginsShareTheBudget) {
  FunctionPort plugin("10-a", told_, {.request_timeout = milliseconds(2'000)});
  dispatcher_.Add(plugin);
  Ask();
  EXPECT_EQ(plugin.timeout, milliseconds(2'000));
  Ask(Dispatcher::Kind::kRequest, milliseconds(1'000));
  EXPECT_LE(plugin.timeout, milliseconds(1'000));
  told_.clear();
  Ask(Dispatcher::Kind::kRequest, milliseconds(0));
  EXPECT_TRUE(told_.empty());
}

// A creation has a phase before the runtime and one after it. The runtime's own time does not count
// against the plugins.
TEST_F(DispatchTest, ThePhasesOfACallShareTheBudget) {
  FunctionPort plugin("10-a", told_, {.request_timeout = milliseconds(2'000)});
  dispatcher_.Add(plugin);
  const Budget budget(milliseconds(1'000));
  Dispatcher::Answered held;
  const auto hold = [&held](HostedPlugin&, milliseconds, Dispatcher::Answered answered) {
    held = std::move(answered);
  };
  const auto ask_all = [&](Dispatcher::Kind kind, const Dispatcher::Ask& ask) {
    ended_.reset();
    dispatcher_.InTurn(kind, dispatcher_.Wanting(api::EVENT_START_CONTAINER), budget, ask,
                       [this](const Status& status) { ended_ = status; });
  };
  const auto begin = std::chrono::steady_clock::now();
  ask_all(Dispatcher::Kind::kRequest, hold);
  std::this_thread::sleep_for(milliseconds(300));
  held(OkStatus());
  // A busy machine may have taken longer.
  const auto phase = std::chrono::ceil<milliseconds>(std::chrono::steady_clock::now() - begin);
  std::this_thread::sleep_for(milliseconds(300));
  const auto left = budget.For(plugin.settings());
  EXPECT_LE(left, milliseconds(700));
  EXPECT_GE(left, std::max(milliseconds(1'000) - phase, milliseconds(0)) - milliseconds(1))
      << "the runtime's time counted";
  ask_all(Dispatcher::Kind::kRequest, hold);
  std::this_thread::sleep_for(left);
  held(DeadlineExceeded("late"));
  EXPECT_EQ(budget.For(plugin.settings()), milliseconds(0));
  // The call does not wait for plugins any more, but they are told of the event.
  told_.clear();
  ask_all(Dispatcher::Kind::kRequest, Start);
  EXPECT_TRUE(told_.empty());
  plugin.notify = [](const auto&, auto) {};
  ask_all(Dispatcher::Kind::kNotice, Start);
  EXPECT_THAT(told_, ElementsAre("10-a START_CONTAINER c"));
  EXPECT_THAT(ended_, Optional(OkStatus()));
}

TEST_F(DispatchTest, APluginThatIsAskedAtOnceHasTheWholeBudget) {
  FunctionPort plugin("10-a", told_, {.request_timeout = milliseconds(2'000)});
  dispatcher_.Add(plugin);
  // This thread may have to wait for a processor between the budget's begin and the question.
  int whole = 0;
  for (int round = 0; round < 100; ++round) {
    Ask(Dispatcher::Kind::kRequest, milliseconds(1'000));
    if (plugin.timeout == milliseconds(1'000)) ++whole;
  }
  EXPECT_GT(whole, 0);
}

TEST_F(DispatchTest, AllAreAskedTogetherAndEachMustAgree) {
  std::vector<PluginPort::Answered> waiting;
  FunctionPort a("10-a", told_);
  FunctionPort b("20-b", told_);
  for (FunctionPort* port : {&a, &b}) {
    port->notify = [&waiting](const auto&, auto done) { waiting.push_back(std::move(done)); };
    dispatcher_.Add(*port);
  }
  Validate();
  ASSERT_EQ(waiting.size(), 2u);
  waiting[1](DeadlineExceeded("late"));
  EXPECT_FALSE(ended_);
  waiting[0](OkStatus());
  EXPECT_THAT(ended_, Optional(Fails(StatusCode::kDeadlineExceeded,
                                     "NRI plugin 20-b: it has not validated a container: late")));
}

// A creation needs every validator's answer, but a hanging one costs one request only.
TEST_F(DispatchTest, AValidatorThatDoesNotAnswerRefusesOnce) {
  FunctionPort hung("10-a", told_, {.failure = FailurePolicy::kIgnore});
  Answering(hung, DeadlineExceeded("late"));
  dispatcher_.Add(hung);
  Validate();
  EXPECT_EQ(ended_->code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Message(*ended_), testing::HasSubstr("validat"));
  EXPECT_THAT(told_.back(), testing::StartsWith("10-a End it has not validated a container"));
  // Further requests wait for it then, as long as it is not lost yet.
  Validate();
  EXPECT_THAT(ended_, Optional(OkStatus()));
  dispatcher_.Remove(hung);

  FunctionPort needed("20-b", told_, {.failure = FailurePolicy::kFail});
  Answering(needed, Unavailable("lost"));
  dispatcher_.Add(needed);
  for (int i = 0; i < 2; ++i) {
    Validate();
    EXPECT_EQ(ended_->code(), StatusCode::kUnavailable);
  }
}

TEST_F(DispatchTest, AValidatorForWhichNoTimeIsLeftIsNotEnded) {
  FunctionPort validator("10-a", told_);
  dispatcher_.Add(validator);
  for (int i = 0; i < 2; ++i) {
    Validate(milliseconds(0));
    EXPECT_EQ(ended_->code(), StatusCode::kDeadlineExceeded);
  }
  EXPECT_TRUE(told_.empty());
}

}  // namespace
}  // namespace resmgr::nri
