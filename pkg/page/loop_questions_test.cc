// SPDX-License-Identifier: Apache-2.0
#include "pkg/page/loop_questions.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/status_matchers.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using test::HasCode;

// A loop on a thread of its own; "echo" answers with the message, "silent" when the test says so.
class LoopQuestionsTest : public testing::Test {
 protected:
  LoopQuestionsTest() {
    thread_ = std::thread([this] { loop_.Run(); });
  }
  ~LoopQuestionsTest() override {
    go_on_ = true;
    loop_.Stop();
    thread_.join();
  }

  // Runs a task on the loop's thread and waits for its end.
  void OnLoop(const EventLoop::Task& task) {
    std::atomic<bool> done = false;
    loop_.Post([&] {
      task();
      done = true;
    });
    while (!done)
      std::this_thread::sleep_for(milliseconds(1));
  }
  void Open(LoopQuestions& questions) {
    OnLoop([&] { questions.Open(loop_, Methods()); });
  }
  // Stops the loop until go_on_ is true.
  void HoldLoop() {
    std::atomic<bool> held = false;
    loop_.Post([this, &held] {
      held = true;
      while (!go_on_)
        std::this_thread::sleep_for(milliseconds(1));
    });
    while (!held)
      std::this_thread::sleep_for(milliseconds(1));
  }
  UnaryServer::Methods Methods() {
    UnaryServer::Methods methods;
    methods["echo"] = [this](std::string message, const UnaryServer::Reply& reply) {
      ++calls_;
      reply(std::move(message));
    };
    methods["silent"] = [this](const std::string&, UnaryServer::Reply reply) {
      ++calls_;
      replies_.push_back(std::move(reply));
    };
    return methods;
  }

  EventLoop loop_;
  std::atomic<int> calls_ = 0;
  std::atomic<bool> go_on_ = false;
  std::vector<UnaryServer::Reply> replies_;  // loop's thread only
  std::thread thread_;
};

constexpr milliseconds kLong{20'000};

TEST_F(LoopQuestionsTest, AsksOnTheLoop) {
  LoopQuestions questions({.deadline = kLong});
  EXPECT_THAT(questions.Ask("echo", "a"), HasCode(StatusCode::kUnavailable)) << "not open yet";
  Open(questions);
  const auto answer = questions.Ask("echo", "a");
  ASSERT_THAT(answer, test::IsOk());
  EXPECT_EQ(**answer, "a");
  OnLoop([&] { questions.Close(); });
  EXPECT_THAT(questions.Ask("echo", "b"), HasCode(StatusCode::kUnavailable));
}

TEST_F(LoopQuestionsTest, AMethodThatIsNotThereIsUnavailable) {
  LoopQuestions questions({.deadline = kLong});
  Open(questions);
  EXPECT_THAT(questions.Ask("other", ""), HasCode(StatusCode::kUnavailable));
}

TEST_F(LoopQuestionsTest, ManyThreadsThatAskTheSameCostOneCall) {
  LoopQuestions questions({.deadline = kLong, .fresh = kLong, .waiting = 8});
  Open(questions);
  HoldLoop();
  std::atomic<int> answered = 0;
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] { answered += questions.Ask("echo", "a").ok() ? 1 : 0; });
  go_on_ = true;
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(answered, 8);
  EXPECT_EQ(calls_, 1);
  EXPECT_THAT(questions.Ask("echo", "b"), test::IsOk());
  EXPECT_EQ(calls_, 2) << "another question";
}

TEST_F(LoopQuestionsTest, AnAnswerIsAskedForAgainWhenItIsOld) {
  LoopQuestions questions({.deadline = kLong, .fresh = milliseconds(0)});
  Open(questions);
  for (int i = 1; i <= 3; ++i) {
    EXPECT_THAT(questions.Ask("echo", "a"), test::IsOk());
    EXPECT_EQ(calls_, i);
  }
}

TEST_F(LoopQuestionsTest, ALoopThatStandsStillIsNotWaitedForLonger) {
  LoopQuestions questions({.deadline = milliseconds(30)});
  Open(questions);
  HoldLoop();
  const auto answer = questions.Ask("echo", "a");
  EXPECT_THAT(answer,
              test::Fails(StatusCode::kUnavailable, "the event loop did not answer within 30 ms"));
  go_on_ = true;
  // A busy machine may be later than this deadline, too.
  EXPECT_TRUE(test::Eventually([&] { return questions.Ask("echo", "a").ok(); }));
}

// Each question that was given up is still on the loop's list, which is bounded.
TEST_F(LoopQuestionsTest, QuestionsOnAStandingLoopAreBounded) {
  LoopQuestions questions({.deadline = milliseconds(5), .under_way = 3});
  Open(questions);
  HoldLoop();
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(questions.Ask("echo", std::to_string(i)), HasCode(StatusCode::kUnavailable));
  EXPECT_THAT(questions.Ask("echo", "more"), HasCode(StatusCode::kResourceExhausted));
  EXPECT_THAT(questions.Ask("echo", "0"), HasCode(StatusCode::kUnavailable)) << "asked already";
  go_on_ = true;
  EXPECT_TRUE(test::Eventually([&] { return questions.Ask("echo", "more").ok(); }));
}

TEST_F(LoopQuestionsTest, WaitingThreadsAreBounded) {
  LoopQuestions questions({.deadline = kLong, .waiting = 1});
  Open(questions);
  std::thread waits([&] { EXPECT_THAT(questions.Ask("silent", ""), test::IsOk()); });
  while (calls_ == 0)
    std::this_thread::sleep_for(milliseconds(1));
  EXPECT_THAT(questions.Ask("echo", ""), HasCode(StatusCode::kResourceExhausted));
  EXPECT_THAT(questions.Ask("silent", ""), HasCode(StatusCode::kResourceExhausted));
  OnLoop([this] { replies_.front()("late"); });
  waits.join();
  EXPECT_THAT(questions.Ask("echo", ""), test::IsOk());
}

TEST_F(LoopQuestionsTest, QuestionsWithinASecondAreBounded) {
  LoopQuestions questions({.deadline = kLong, .fresh = milliseconds(0), .a_second = 2});
  Open(questions);
  int refused = 0;
  for (int i = 0; i < 20; ++i)
    refused += questions.Ask("echo", "").ok() ? 0 : 1;
  EXPECT_GE(refused, 1);
  EXPECT_EQ(calls_, 20 - refused);
}

TEST_F(LoopQuestionsTest, AnswersThatAreKeptAreBounded) {
  LoopQuestions questions({.deadline = kLong, .fresh = kLong, .kept = 2});
  Open(questions);
  EXPECT_THAT(questions.Ask("echo", "a"), test::IsOk());
  EXPECT_THAT(questions.Ask("echo", "b"), test::IsOk());
  EXPECT_THAT(questions.Ask("echo", "c"), HasCode(StatusCode::kResourceExhausted));
  EXPECT_THAT(questions.Ask("echo", "a"), test::IsOk());
}

TEST_F(LoopQuestionsTest, CloseEndsAllWaiting) {
  LoopQuestions questions({.deadline = kLong});
  Open(questions);
  std::thread waits(
      [&] { EXPECT_THAT(questions.Ask("silent", ""), HasCode(StatusCode::kUnavailable)); });
  while (calls_ == 0)
    std::this_thread::sleep_for(milliseconds(1));
  OnLoop([&] { questions.Close(); });
  waits.join();
  // A later answer has no effect.
  OnLoop([this] { replies_.front()("late"); });
}

TEST_F(LoopQuestionsTest, ErrorsAreAnswers) {
  LoopQuestions questions({.deadline = kLong});
  OnLoop([&] {
    UnaryServer::Methods methods;
    methods["bad"] = [](const std::string&, const UnaryServer::Reply& reply) {
      reply(NotFound("there is none"));
    };
    questions.Open(loop_, std::move(methods));
  });
  EXPECT_THAT(questions.Ask("bad", ""), test::Fails(StatusCode::kNotFound, "there is none"));
}

}  // namespace
}  // namespace resmgr
