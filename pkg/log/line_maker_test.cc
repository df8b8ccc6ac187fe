// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/line_maker.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/base/utf8.h"

namespace resmgr {
namespace {

using testing::EndsWith;
using testing::MatchesRegex;
using testing::SizeIs;
using testing::StartsWith;

constexpr size_t kMost = 100;
constexpr LineStyle kJournal{.format = LogFormat::kText, .journal = true};

std::string LineOf(const LogRecord& record, size_t most) {
  LineMaker maker;
  spdlog::memory_buf_t line;
  maker.Append(record, most, line);
  return {line.data(), line.size()};
}

std::string LineInQueue(const LogRecord& record) {
  std::string records;
  RecordLines::AppendTo(records, record, kMost);
  RecordLines lines(kMost);
  return std::string(lines.Lines(records));
}

TEST(RecordLinesTest, LinesOfManyRecordsAreInTheirOrderAndEachInItsStyle) {
  const std::chrono::system_clock::time_point time{std::chrono::milliseconds(1'767'225'600'123)};
  std::string records;
  RecordLines::AppendTo(records, {.time = time, .source = "a", .text = "first", .style = kJournal},
                        kMost);
  RecordLines::AppendTo(
      records, {.time = time, .level = LogLevel::kError, .source = "", .text = "", .style = {}},
      kMost);
  RecordLines::AppendTo(records,
                        {.time = time,
                         .level = LogLevel::kDebug,
                         .source = "b",
                         .text = "third",
                         .style = {.format = LogFormat::kJson, .journal = true}},
                        kMost);
  RecordLines lines(kMost);
  const std::string all(lines.Lines(records));
  EXPECT_THAT(all, MatchesRegex("<6>\\[a\\] first\n"
                                "[0-9-]+T[0-9:]+\\.123[+-][0-9:]+ error \\[\\] \n"
                                "<7>\\{\"time\":\"[^\"]+\",\"level\":\"debug\",\"source\":\"b\","
                                "\"message\":\"third\"\\}\n"));
  EXPECT_EQ(lines.Lines(records), all);
  EXPECT_EQ(lines.Lines(""), "");
}

TEST(RecordLinesTest, MessageStaysOneLine) {
  EXPECT_EQ(LineInQueue({.source = "a", .text = "first\nsecond\x1b[2J", .style = kJournal}),
            "<6>[a] first\\x0asecond\\x1b[2J\n");
}

// The queue keeps less of a long text than the caller gave, and the line is the same.
TEST(RecordLinesTest, LineOfALongTextIsTheOneThatTheWholeTextHas) {
  for (const std::string character : {"x", "\xe2\x82\xac", "\xf0\x9f\x90\xa2", "\x1b", "\xff"}) {
    for (size_t before = 0; before < 8; ++before) {
      std::string text(before, 'a');
      while (text.size() < 10 * kMost)
        text += character;
      const LogRecord record{.source = "a", .text = text, .style = kJournal};
      const std::string line = LineInQueue(record);
      EXPECT_EQ(line, LineOf(record, kMost));
      EXPECT_LE(line.size(), kMost);
      EXPECT_THAT(line, StartsWith("<6>[a] " + text.substr(0, before)));
      EXPECT_THAT(line, EndsWith("...\n"));
      for (std::string_view rest = line; !rest.empty(); rest.remove_prefix(Utf8Length(rest)))
        ASSERT_GT(Utf8Length(rest), 0U) << line;
    }
  }
}

TEST(RecordLinesTest, WhatWaitsOfALongTextIsBounded) {
  std::string records;
  RecordLines::AppendTo(records, {.source = "a", .text = std::string(1'000'000, 'x')}, kMost);
  EXPECT_LT(records.size(), kMost + 100);
  RecordLines lines(kMost);
  EXPECT_THAT(lines.Lines(records), SizeIs(kMost));
}

}  // namespace
}  // namespace resmgr
