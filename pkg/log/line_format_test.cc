// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/line_format.h"

#include <chrono>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "pkg/base/utf8.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

using testing::EndsWith;
using testing::MatchesRegex;
using testing::SizeIs;
using testing::StartsWith;

std::string Line(LineStyle style, spdlog::level::level_enum level, const std::string& text) {
  spdlog::memory_buf_t line;
  MakeLineFormatter(style)->format(
      spdlog::details::log_msg("state", level, spdlog::string_view_t(text)), line);
  return {line.data(), line.size()};
}

TEST(LineFormatTest, JournalGetsAPriorityAndKeepsTheTimeItself) {
  const LineStyle journal{.format = LogFormat::kText, .journal = true};
  EXPECT_EQ(Line(journal, spdlog::level::debug, "x"), "<7>[state] x\n");
  EXPECT_EQ(Line(journal, spdlog::level::info, "x"), "<6>[state] x\n");
  EXPECT_EQ(Line(journal, spdlog::level::warn, "x"), "<4>[state] x\n");
  EXPECT_EQ(Line(journal, spdlog::level::err, "x"), "<3>[state] x\n");
}

TEST(LineFormatTest, TextHasATimeAndNoPriority) {
  EXPECT_THAT(Line({}, spdlog::level::warn, "x"),
              MatchesRegex("[0-9-]+T[0-9:.]+[+-][0-9:]+ warning \\[state\\] x\n"));
}

// The part that is kept for a second is formatted again for the next one, and for an earlier one
// after the clock was set back.
TEST(LineFormatTest, TheTimeIsThatOfTheMessage) {
  ::setenv("TZ", "IST-5:30", 1);
  ::tzset();
  const auto formatter = MakeLineFormatter({});
  const auto time_of = [&](int64_t ms) {
    const spdlog::log_clock::time_point at{std::chrono::milliseconds(ms)};
    spdlog::memory_buf_t line;
    formatter->format({at, {}, "state", spdlog::level::info, "x"}, line);
    return std::string(line.data(), line.size());
  };
  const int64_t new_year = 1'767'225'600'000;  // 2026-01-01T00:00:00Z
  EXPECT_EQ(time_of(new_year), "2026-01-01T05:30:00.000+05:30 info [state] x\n");
  EXPECT_EQ(time_of(new_year + 7), "2026-01-01T05:30:00.007+05:30 info [state] x\n");
  EXPECT_EQ(time_of(new_year + 59'999), "2026-01-01T05:30:59.999+05:30 info [state] x\n");
  EXPECT_EQ(time_of(new_year - 1), "2026-01-01T05:29:59.999+05:30 info [state] x\n");
  ::setenv("TZ", "NST3:30", 1);
  ::tzset();
  EXPECT_EQ(time_of(new_year), "2025-12-31T20:30:00.000-03:30 info [state] x\n");
  ::unsetenv("TZ");
  ::tzset();
}

TEST(LineFormatTest, JsonIsOneObjectPerLine) {
  const LineStyle json{.format = LogFormat::kJson, .journal = false};
  const std::string text = "a \"quoted\" name, and bytes that are no UTF-8: \xff";
  const std::string line = Line(json, spdlog::level::err, text);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto object = nlohmann::json::parse(line);
  EXPECT_EQ(object["level"], "error");
  EXPECT_EQ(object["source"], "state");
  EXPECT_EQ(object["message"], "a \"quoted\" name, and bytes that are no UTF-8: \xef\xbf\xbd");
  EXPECT_THAT(object["time"].get<std::string>(), MatchesRegex("[0-9-]+T[0-9:.]+[+-][0-9:]+"));
}

TEST(LineFormatTest, JsonForAJournalHasThePriorityInFront) {
  const LineStyle style{.format = LogFormat::kJson, .journal = true};
  const std::string line = Line(style, spdlog::level::warn, "x");
  ASSERT_TRUE(line.starts_with("<4>{")) << line;
  EXPECT_EQ(nlohmann::json::parse(line.substr(3))["message"], "x");
}

TEST(LineFormatTest, JournalIsTheFileThatTheVariableNames) {
  const UniqueFd fd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  struct stat info {};
  ASSERT_EQ(::fstat(fd.get(), &info), 0);
  const auto stream = [&](ino_t inode) { return fmt::format("{}:{}", info.st_dev, inode); };
  EXPECT_TRUE(IsJournal(fd.get(), stream(info.st_ino).c_str()));
  EXPECT_FALSE(IsJournal(fd.get(), stream(info.st_ino + 1).c_str()));
  EXPECT_FALSE(IsJournal(fd.get(), nullptr));
  EXPECT_FALSE(IsJournal(fd.get(), "journal"));
  EXPECT_FALSE(IsJournal(-1, stream(info.st_ino).c_str()));
}

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
