// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/turns.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::nri {
namespace {

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
  EXPECT_EQ(turns.waiting(), 2u);
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

}  // namespace
}  // namespace resmgr::nri
