// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/lifecycle.h"

#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

using enum LifeState;
using enum LifeEvent;

using Path = std::vector<LifeEvent>;

// How a container gets into each state.
const std::map<LifeState, Path>& Paths() {
  static const auto* const kPaths = new std::map<LifeState, Path>{
      {kCreating, {}},
      {kCreated, {kCreateSucceeded}},
      {kStarting, {kCreateSucceeded, kStartSent}},
      {kUnresolved, {kCreateSucceeded, kStartSent, kStartUnanswered}},
      {kRunning, {kCreateSucceeded, kStartSent, kStartSucceeded}},
      {kExited, {kCreateSucceeded, kStartSent, kStartSucceeded, kEnded}},
      {kGone, {kCreateSucceeded, kRemoved}},
  };
  return *kPaths;
}

// Every transition that changes the state. All other events leave it as it is.
const std::map<std::pair<LifeState, LifeEvent>, LifeState>& Changes() {
  static const auto* const kChanges = new std::map<std::pair<LifeState, LifeEvent>, LifeState>{
      {{kCreating, kCreateSucceeded}, kCreated},
      {{kCreating, kCreateFailed}, kGone},
      {{kCreating, kReportedCreated}, kCreated},
      {{kCreating, kReportedRunning}, kRunning},
      {{kCreating, kEnded}, kExited},
      {{kCreating, kRemoved}, kGone},

      {{kCreated, kCreateFailed}, kGone},
      {{kCreated, kStartSent}, kStarting},
      {{kCreated, kStartSucceeded}, kRunning},
      {{kCreated, kStartUnanswered}, kUnresolved},
      {{kCreated, kReportedRunning}, kRunning},
      {{kCreated, kEnded}, kExited},
      {{kCreated, kRemoved}, kGone},

      {{kStarting, kCreateFailed}, kGone},
      {{kStarting, kStartSucceeded}, kRunning},
      {{kStarting, kStartFailed}, kCreated},
      {{kStarting, kStartUnanswered}, kUnresolved},
      {{kStarting, kReportedRunning}, kRunning},
      {{kStarting, kEnded}, kExited},
      {{kStarting, kRemoved}, kGone},

      {{kUnresolved, kCreateFailed}, kGone},
      {{kUnresolved, kStartSucceeded}, kRunning},
      {{kUnresolved, kStartExpired}, kCreated},
      {{kUnresolved, kReportedRunning}, kRunning},
      {{kUnresolved, kEnded}, kExited},
      {{kUnresolved, kRemoved}, kGone},

      {{kRunning, kCreateFailed}, kGone},
      {{kRunning, kReportedCreated}, kCreated},
      {{kRunning, kEnded}, kExited},
      {{kRunning, kRemoved}, kGone},

      {{kExited, kCreateFailed}, kGone},
      {{kExited, kReportedCreated}, kCreated},
      {{kExited, kReportedRunning}, kRunning},
      {{kExited, kRevived}, kCreated},
      {{kExited, kRemoved}, kGone},
  };
  return *kChanges;
}

struct Life {
  Container container;
  Lifecycle life;

  Life& After(const Path& events) {
    for (const LifeEvent event : events)
      life.Apply(event, container);
    return *this;
  }
};

TEST(LifecycleTest, EveryEventInEveryState) {
  for (const auto& [state, path] : Paths()) {
    for (size_t i = 0; i < kLifeEvents; ++i) {
      const auto event = static_cast<LifeEvent>(i);
      Life one;
      ASSERT_EQ(one.After(path).life.state(), state);
      const auto change = Changes().find({state, event});
      const LifeState expected = change == Changes().end() ? state : change->second;
      EXPECT_EQ(one.After({event}).life.state(), expected)
          << ToString(state) << ", " << ToString(event);
      EXPECT_EQ(NextState(state, event), expected) << ToString(state) << ", " << ToString(event);
    }
  }
  EXPECT_EQ(Paths().size(), kLifeStates);
}

// The state that policies see follows each transition.
TEST(LifecycleTest, ThePublishedStateFollows) {
  const std::map<LifeState, ContainerState> published = {
      {kCreating, ContainerState::kCreating}, {kCreated, ContainerState::kCreated},
      {kStarting, ContainerState::kCreated},  {kUnresolved, ContainerState::kCreated},
      {kRunning, ContainerState::kRunning},   {kExited, ContainerState::kExited},
      {kGone, ContainerState::kExited},
  };
  for (const auto& [state, path] : Paths()) {
    for (size_t i = 0; i < kLifeEvents; ++i) {
      Life one;
      one.After(path).After({static_cast<LifeEvent>(i)});
      EXPECT_EQ(one.container.state, published.at(one.life.state()));
    }
  }
}

// A client that gave up sends the same start again while the first one is under way.
TEST(LifecycleTest, ARefusedStartLeavesAnotherOneUnderWay) {
  Life one;
  one.After({kCreateSucceeded, kStartSent, kStartSent, kStartFailed});
  EXPECT_EQ(one.life.state(), kStarting);
  EXPECT_EQ(one.After({kStartFailed}).life.state(), kCreated);
}

TEST(LifecycleTest, AnExpiredStartLeavesAnotherOneUnderWay) {
  Life one;
  one.After({kCreateSucceeded, kStartSent, kStartUnanswered, kStartSent, kStartExpired});
  EXPECT_EQ(one.life.state(), kStarting);
}

// The container counted as exited while it was being started; the start is still under way.
TEST(LifecycleTest, AStartOfAnExitedContainerCountsWhenItIsReportedCreated) {
  Life one;
  one.After({kCreateSucceeded, kEnded, kStartSent, kReportedCreated});
  EXPECT_EQ(one.life.state(), kStarting);
}

TEST(LifecycleTest, AnEndForgetsTheStartsThatWereUnderWay) {
  Life one;
  one.After({kCreateSucceeded, kStartSent, kEnded, kReportedCreated});
  EXPECT_EQ(one.life.state(), kCreated);
}

// A runtime that restarts it reports it running, exited and running again meanwhile.
TEST(LifecycleTest, ComesBackUntilItsStartIsOver) {
  Life restarted;
  restarted.After({kCreateSucceeded, kStartSent, kStartSucceeded, kStartSent});
  EXPECT_FALSE(restarted.life.ComesBack()) << "most runtimes refuse such a start";
  restarted.life.ExpectReturn();
  EXPECT_TRUE(restarted.After({kReportedRunning}).life.ComesBack());
  EXPECT_FALSE(restarted.After({kStartSucceeded}).life.ComesBack());

  Life revived;
  revived.After({kCreateSucceeded, kStartSent, kStartSucceeded, kEnded, kRevived});
  EXPECT_TRUE(revived.life.ComesBack());
  EXPECT_TRUE(revived.After({kStartSent, kStartUnanswered}).life.ComesBack());
  EXPECT_FALSE(revived.After({kReportedRunning}).life.ComesBack());
  EXPECT_FALSE(revived.After({kEnded, kRevived, kEnded}).life.ComesBack());
}

TEST(LifecycleTest, TheCpusAreUnknownAsLongAsTheStartIsUnresolved) {
  Life one;
  one.After({kCreateSucceeded}).life.SetCpusUnknown();
  EXPECT_FALSE(one.life.MayComeUpAnywhere()) << "no start is unresolved";
  one.After({kStartUnanswered}).life.SetCpusUnknown();
  EXPECT_TRUE(one.After({kStartUnanswered, kStartFailed}).life.MayComeUpAnywhere());
  EXPECT_FALSE(one.After({kStartExpired}).life.MayComeUpAnywhere());
  EXPECT_FALSE(one.After({kStartUnanswered}).life.MayComeUpAnywhere());
}

TEST(LifecycleTest, WhatMayRun) {
  for (const auto& [state, path] : Paths()) {
    Life one;
    one.After(path);
    const bool starting = state == kStarting || state == kUnresolved;
    EXPECT_EQ(one.life.BeingStarted(), starting) << ToString(state);
    EXPECT_EQ(one.life.MayRun(), starting || state == kRunning) << ToString(state);
  }
}

}  // namespace
}  // namespace resmgr
