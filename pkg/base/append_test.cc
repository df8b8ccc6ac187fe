// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/append.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(AppendTest, PartsFollowWhatATextHas) {
  std::string text = "a";
  AppendParts(text, "b", std::string("cd"), std::string_view(), std::string_view("e"));
  EXPECT_EQ(text, "abcde");
  fmt::memory_buffer buffer;
  AppendParts(buffer, "ab");
  AppendParts(buffer, std::string(1000, 'c'), "d");
  EXPECT_EQ(fmt::to_string(buffer), "ab" + std::string(1000, 'c') + "d");
}

TEST(AppendTest, AssignedPartsLeaveNothingOfALongerOrShorterText) {
  std::string text = "a longer text than its parts";
  AssignParts(text, "b", "/", "c");
  EXPECT_EQ(text, "b/c");
  AssignParts(text, "d", "/", std::string(100, 'e'));
  EXPECT_EQ(text, "d/" + std::string(100, 'e'));
  AssignParts(text, "", "");
  EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace resmgr
