// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/answer_within.h"

#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(AnswerWithinTest, GivesTheAnswer) {
  const auto answer =
      AnswerWithin<std::string>(std::chrono::seconds(60), "ask", [] { return "here"; });
  EXPECT_EQ(answer, "here");
}

TEST(AnswerWithinTest, LeavesWhatHangsBehind) {
  const auto never = std::make_shared<std::promise<void>>();
  const auto ended = std::make_shared<std::promise<void>>();
  const auto answer = AnswerWithin<int>(std::chrono::milliseconds(1), "ask", [never, ended] {
    never->get_future().wait();
    ended->set_value();
    return 1;
  });
  EXPECT_EQ(answer, std::nullopt);
  never->set_value();
  ended->get_future().wait();
}

}  // namespace
}  // namespace resmgr
