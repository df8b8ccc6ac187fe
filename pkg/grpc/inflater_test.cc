// SPDX-License-Identifier: Apache-2.0
#include "pkg/grpc/inflater.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/gzip.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Gzip;
using test::HasCode;

constexpr size_t kMostBytes = 100'000;

StatusOr<std::string> Inflate(const std::string& data, size_t step, size_t room = 0) {
  Inflater inflater(data, room, kMostBytes);
  bool whole = false;
  while (!whole) {
    RESMGR_ASSIGN_OR_RETURN(whole, inflater.Step(step));
  }
  return std::string(inflater.output().view().substr(room));
}

TEST(InflaterTest, AllMembersAreRead) {
  const std::string data = Gzip("first, ") + Gzip("") + Gzip(std::string(10'000, 'x')) + Gzip("!");
  for (const size_t step : {1U, 7U, 5000U, 1'000'000U})
    EXPECT_EQ(Inflate(data, step, step % 6).value(), "first, " + std::string(10'000, 'x') + "!");
}

TEST(InflaterTest, WhatFollowsTheMembersIsAnError) {
  for (const std::string& rest : {std::string("x"), std::string(8, '\0'), Gzip("y").substr(0, 12)})
    EXPECT_THAT(Inflate(Gzip("text") + rest, 1000), HasCode(StatusCode::kInvalidArgument));
}

TEST(InflaterTest, TheLimitIsExact) {
  EXPECT_EQ(Inflate(Gzip(std::string(kMostBytes, 'x')), 1000, 5).value().size(), kMostBytes);
  EXPECT_THAT(Inflate(Gzip(std::string(kMostBytes + 1, 'x')), 1000, 5),
              HasCode(StatusCode::kResourceExhausted));
}

TEST(InflaterTest, ABombTakesManySteps) {
  const std::string bomb = Gzip(std::string(kMostBytes, '\0'));
  Inflater inflater(bomb, 0, kMostBytes);
  int steps = 1;
  while (!inflater.Step(1000).value())
    ++steps;
  EXPECT_GE(steps, 100);
  EXPECT_LT(inflater.memory(), 2 * kMostBytes);
}

// Input without output costs time, too.
TEST(InflaterTest, EmptyMembersTakeStepsOfTheirOwn) {
  std::string data;
  for (int i = 0; i < 100; ++i)
    data += Gzip("");
  Inflater inflater(data, 0, kMostBytes);
  int steps = 1;
  while (!inflater.Step(4096).value())
    ++steps;
  EXPECT_GE(steps, 100);
}

}  // namespace
}  // namespace resmgr
