// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/turns.h"

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/wait.h"

namespace resmgr::nri {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

TEST(TurnsTest, EachWaitsForTheOneBefore) {
  Turns turns;
  std::vector<std::string> begun;
  std::vector<Turns::Turn> held;
  for (const char* name : {"a", "b", "c"}) {
    turns.Take([&, name](Turns::Turn turn) {
      begun.emplace_back(name);
      held.push_back(std::move(turn));
    });
  }
  EXPECT_THAT(begun, ElementsAre("a"));
  held[0].reset();
  EXPECT_THAT(begun, ElementsAre("a", "b"));
  held[1].reset();
  EXPECT_THAT(begun, ElementsAre("a", "b", "c"));
  held.clear();
}

TEST(TurnsTest, ManyShortTurnsDoNotGrowTheStack) {
  Turns turns;
  size_t ran = 0;
  std::optional<Turns::Turn> first;
  turns.Take([&first](Turns::Turn turn) { first.emplace(std::move(turn)); });
  for (int i = 0; i < 200'000; ++i)
    turns.Take([&ran](const Turns::Turn&) { ++ran; });
  first.reset();
  EXPECT_EQ(ran, 200'000u);
}

TEST(TurnsTest, WhatWaitsIsDroppedWithTheTurns) {
  std::optional<Turns::Turn> first;
  bool ran = false;
  {
    Turns turns;
    turns.Take([&first](Turns::Turn turn) { first.emplace(std::move(turn)); });
    turns.Take([&ran](const Turns::Turn&) { ran = true; });
  }
  first.reset();
  EXPECT_FALSE(ran);
}

class FairTurnsTest : public testing::Test {
 protected:
  void Add(FairTurns& turns, const char& peer) {
    turns.Add(&peer, [this, &peer](FairTurns::Running running) {
      begun_ += peer;
      running_.push_back(std::move(running));
    });
  }
  void EndFirst() {
    const FairTurns::Running over = std::move(running_.front());
    running_.erase(running_.begin());
  }

  EventLoop loop_;
  const char a_ = 'a';
  const char b_ = 'b';
  std::string begun_;
  std::vector<FairTurns::Running> running_;
};

TEST_F(FairTurnsTest, EachPeerHasItsTurn) {
  FairTurns turns(loop_, {.at_once = 2, .slice = std::chrono::seconds(10)});
  for (int i = 0; i < 4; ++i)
    Add(turns, a_);
  Add(turns, b_);
  EXPECT_EQ(begun_, "aa");
  EndFirst();
  EndFirst();
  EXPECT_EQ(begun_, "aaab") << "the third of a was before the first of b";
  Add(turns, b_);
  turns.Drop(&a_);
  EndFirst();
  EXPECT_EQ(begun_, "aaabb");
  running_.clear();
}

TEST_F(FairTurnsTest, NoTurnOfTheLoopIsLongerThanASlice) {
  FairTurns turns(loop_, {.at_once = 100, .slice = milliseconds(1)});
  int begun = 0;
  for (int i = 0; i < 5; ++i) {
    turns.Add(&a_, [&begun](const FairTurns::Running&) {
      ++begun;
      std::this_thread::sleep_for(milliseconds(2));
    });
  }
  EXPECT_EQ(begun, 1);
  EXPECT_TRUE(resmgr::test::RunUntil(loop_, [&] { return begun == 5; }));
}

TEST_F(FairTurnsTest, WhatRunsMayOutliveThem) {
  {
    FairTurns turns(loop_, {.at_once = 1});
    Add(turns, a_);
    Add(turns, b_);
  }
  EXPECT_EQ(begun_, "a");
  running_.clear();
  EXPECT_EQ(begun_, "a");
}

}  // namespace
}  // namespace resmgr::nri
