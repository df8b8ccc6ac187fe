// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/options_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using ::testing::HasSubstr;

std::optional<std::string> Value(std::string_view line) {
  Problems problems;
  const auto options = ParseOptionLines(line, "f", problems);
  EXPECT_TRUE(problems.ToStatus().ok()) << line << " " << Describe(problems.ToStatus());
  EXPECT_EQ(options.size(), 1U) << line;
  if (options.size() != 1) return std::nullopt;
  EXPECT_EQ(options.front().name, "dump") << line;
  return options.front().value;
}

std::string LinesError(std::string_view text) {
  Problems problems;
  static_cast<void>(ParseOptionLines(text, "f", problems));
  const Status status = problems.ToStatus();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
  return std::string(Message(status));
}

TEST(OptionsFileTest, TakesAllWaysToWriteAValue) {
  for (const char* line : {"dump a:b,c", "dump = a:b,c", "dump=a:b,c", "dump: a:b,c", "dump:a:b,c",
                           "\tdump \t a:b,c  \r", "dump 'a:b,c'", "dump = \"a:b,c\"  # why",
                           "dump a:b,c # why", "dump\ta:b,c"}) {
    EXPECT_EQ(Value(line), "a:b,c") << line;
  }
}

TEST(OptionsFileTest, KeepsWhatBelongsToTheValue) {
  EXPECT_EQ(Value("dump CPU=#0-3"), "CPU=#0-3");
  EXPECT_EQ(Value("dump '# a'"), "# a");
  EXPECT_EQ(Value("dump a b"), "a b");
  EXPECT_EQ(Value("dump ''"), "");
  EXPECT_EQ(Value("dump ="), "");
  EXPECT_EQ(Value("dump ==x"), "=x");
  EXPECT_EQ(Value("dump a'b'"), "a'b'");
}

TEST(OptionsFileTest, ANameAloneHasNoValue) {
  EXPECT_EQ(Value("dump"), std::nullopt);
  EXPECT_EQ(Value("dump # why"), std::nullopt);
}

TEST(OptionsFileTest, SkipsEmptyLinesAndCommentsAndCountsThem) {
  Problems problems;
  const auto options = ParseOptionLines("# a\n\n  # b\npolicy null\n\nversion", "f", problems);
  ASSERT_EQ(options.size(), 2U);
  EXPECT_EQ(options[0].where, "f:4");
  EXPECT_EQ(options[1].where, "f:6");
}

TEST(OptionsFileTest, OtherLinesAreErrorsWithTheirPlace) {
  EXPECT_EQ(LinesError("policy null\n--dump x\n"),
            "f:2: options have no dashes here: write dump x");
  EXPECT_EQ(LinesError("{a}"), "f:1: \"{a}\" is not an option with its value");
  EXPECT_EQ(LinesError("= a"), "f:1: \"= a\" is not an option with its value");
  EXPECT_EQ(LinesError("pol{icy x"), "f:1: \"pol{icy x\" is not an option with its value");
  EXPECT_EQ(LinesError("dump 'a"), "f:1: the quote ' is not closed");
  EXPECT_EQ(LinesError("dump 'a' b"), "f:1: \"b\" follows the closing quote");
  EXPECT_THAT(LinesError(std::string_view("dump \0", 6)), HasSubstr("f:1: byte 0x00"));
}

}  // namespace
}  // namespace resmgr
