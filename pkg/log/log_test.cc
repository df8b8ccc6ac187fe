// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/log.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <random>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pkg/base/utf8.h"
#include "pkg/log/all_debug.h"
#include "pkg/log/line_sink.h"
#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

struct FormattedOnlyWhenLogged {
  int* count;
};

}  // namespace
}  // namespace resmgr

template <>
struct fmt::formatter<resmgr::FormattedOnlyWhenLogged> : fmt::formatter<int> {
  template <typename Context>
  auto format(const resmgr::FormattedOnlyWhenLogged& value, Context& context) const {
    return fmt::formatter<int>::format(++*value.count, context);
  }
};

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

class LogTest : public testing::Test {
 public:
  LogTest() {
    ConfigureLogging({});
    SetLogWriter([this](std::string_view line) { lines_.emplace_back(line); });
  }
  ~LogTest() override {
    SetLogWriter(nullptr);
    ConfigureLogging({});
  }

 protected:
  std::vector<std::string> lines_;
};

TEST_F(LogTest, LineHasTimeLevelSourceAndMessage) {
  GetLogger("cri/relay").Warn("stream {} of {}", 7, "kubelet");
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_THAT(lines_[0], MatchesRegex("[0-9-]+T[0-9:.]+[+-][0-9:]+ warning \\[cri/relay\\] "
                                      "stream 7 of kubelet\n"));
}

TEST_F(LogTest, DefaultIsInfo) {
  Logger& log = GetLogger("a");
  log.Debug("d");
  log.Info("i");
  log.Warn("w");
  log.Error("e");
  EXPECT_THAT(lines_, ElementsAre(EndsWith(" info [a] i\n"), EndsWith(" warning [a] w\n"),
                                  EndsWith(" error [a] e\n")));
}

TEST_F(LogTest, SuppressedMessageIsNotFormatted) {
  int count = 0;
  GetLogger("a").Debug("{}", FormattedOnlyWhenLogged{&count});
  EXPECT_EQ(count, 0);
  GetLogger("a").Info("{}", FormattedOnlyWhenLogged{&count});
  EXPECT_EQ(count, 1);
}

TEST_F(LogTest, MessageStaysOneLine) {
  GetLogger("a").Info("{}", "first\nsecond\x1b[2J");
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_THAT(lines_[0], EndsWith("first\\x0asecond\\x1b[2J\n"));
}

TEST_F(LogTest, FormatIsASetting) {
  ConfigureLogging({.format = LogFormat::kJson});
  GetLogger("a").Warn("{}", "says \"no\"");
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_THAT(lines_[0],
              MatchesRegex("\\{\"time\":\"[^\"]+\",\"level\":\"warning\",\"source\":\"a\","
                           "\"message\":\"says \\\\\"no\\\\\"\"\\}\n"));
}

TEST_F(LogTest, WhateverANameContainsATerminalOnlyShowsIt) {
  std::mt19937 random(19);
  std::uniform_int_distribution<int> byte(0, 255);
  for (int round = 0; round < 2'000; ++round) {
    std::string name = round % 2 == 0 ? "\xc2" : "";
    for (int i = 0; i < 6; ++i)
      name += static_cast<char>(byte(random));
    lines_.clear();
    GetLogger("a").Info("{}", name);
    ASSERT_THAT(lines_, SizeIs(1));
    std::string_view line = lines_[0];
    ASSERT_EQ(line.find('\n'), line.size() - 1);
    line.remove_suffix(1);
    while (!line.empty()) {
      const size_t length = Utf8Length(line);
      ASSERT_GT(length, 0U) << lines_[0];
      ASSERT_FALSE(IsControl(line.substr(0, length))) << lines_[0];
      line.remove_prefix(length);
    }
  }
}

TEST_F(LogTest, SameSourceIsSameLogger) {
  EXPECT_EQ(&GetLogger("same"), &GetLogger("same"));
  EXPECT_NE(&GetLogger("same"), &GetLogger("other"));
}

TEST_F(LogTest, LevelHoldsForOldAndNewSources) {
  Logger& old = GetLogger("level-old");
  ConfigureLogging({.level = LogLevel::kError});
  Logger& fresh = GetLogger("level-new");
  for (const Logger* log : {&old, &fresh}) {
    EXPECT_FALSE(log->Enabled(LogLevel::kWarn));
    EXPECT_TRUE(log->Enabled(LogLevel::kError));
  }
}

TEST_F(LogTest, DebugIsForcedOnForItsSourcesOnly) {
  ConfigureLogging({.level = LogLevel::kError, .debug = *SourceFilter::Parse("policy")});
  EXPECT_TRUE(GetLogger("policy").Enabled(LogLevel::kDebug));
  EXPECT_FALSE(GetLogger("cache").Enabled(LogLevel::kWarn));
}

TEST_F(LogTest, SourceThatIsNotEnabledStillWarns) {
  ConfigureLogging({.enabled = *SourceFilter::Parse("policy")});
  EXPECT_TRUE(GetLogger("policy").Enabled(LogLevel::kInfo));
  EXPECT_FALSE(GetLogger("cache").Enabled(LogLevel::kInfo));
  EXPECT_TRUE(GetLogger("cache").Enabled(LogLevel::kWarn));
}

TEST_F(LogTest, LevelOfOneSourceChangesAtRunTime) {
  SetLogLevel(LogLevel::kDebug, "a");
  EXPECT_TRUE(GetLogger("a").Enabled(LogLevel::kDebug));
  EXPECT_FALSE(GetLogger("b").Enabled(LogLevel::kDebug));
  SetLogLevel(LogLevel::kError, "a");
  EXPECT_FALSE(GetLogger("a").Enabled(LogLevel::kWarn));
}

TEST_F(LogTest, LevelOfAllSourcesReplacesSingleOnesUntilConfiguredAnew) {
  SetLogLevel(LogLevel::kError, "a");
  SetLogLevel(LogLevel::kDebug);
  EXPECT_TRUE(GetLogger("a").Enabled(LogLevel::kDebug));
  ConfigureLogging({});
  EXPECT_FALSE(GetLogger("a").Enabled(LogLevel::kDebug));
}

TEST_F(LogTest, AllDebugOutlastsSettingsUntilItIsTurnedOff) {
  Logger& log = GetLogger("a");
  EXPECT_TRUE(ToggleAllDebug());
  SetLogLevel(LogLevel::kError, "a");
  EXPECT_FALSE(log.Enabled(LogLevel::kWarn)) << "asked for later, and for this source";
  ConfigureLogging({.level = LogLevel::kWarn});
  EXPECT_TRUE(log.Enabled(LogLevel::kDebug));
  EXPECT_FALSE(ToggleAllDebug());
  EXPECT_FALSE(log.Enabled(LogLevel::kInfo));
  EXPECT_TRUE(log.Enabled(LogLevel::kWarn));
}

TEST_F(LogTest, ALevelForAllSourcesEndsAllDebug) {
  Logger& log = GetLogger("a");
  EXPECT_TRUE(ToggleAllDebug());
  SetLogLevel(LogLevel::kInfo);
  EXPECT_FALSE(log.Enabled(LogLevel::kDebug));
  EXPECT_TRUE(ToggleAllDebug()) << "one call turns it on again";
  EXPECT_TRUE(log.Enabled(LogLevel::kDebug));
  EXPECT_FALSE(ToggleAllDebug());
}

TEST_F(LogTest, LoggingAndChangingLevelsFromSeveralThreads) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      Logger& log = GetLogger(fmt::format("thread-{}", t));
      for (int i = 0; i < 200; ++i) {
        log.Warn("{}", i);
        SetLogLevel(i % 2 == 0 ? LogLevel::kInfo : LogLevel::kWarn);
      }
    });
  }
  for (auto& thread : threads)
    thread.join();
  EXPECT_THAT(lines_, SizeIs(800));
}

TEST(ParseLogLevelTest, TakesTheFourLevels) {
  EXPECT_EQ(*ParseLogLevel("debug"), LogLevel::kDebug);
  EXPECT_EQ(*ParseLogLevel("Info"), LogLevel::kInfo);
  EXPECT_EQ(*ParseLogLevel("warning"), LogLevel::kWarn);
  EXPECT_EQ(*ParseLogLevel("ERROR"), LogLevel::kError);
  const auto wrong = ParseLogLevel("loud\n");
  EXPECT_EQ(wrong.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(wrong.status())), HasSubstr("\"loud\\x0a\""));
}

TEST(ParseLogFormatTest, TakesTheTwoFormats) {
  EXPECT_EQ(*ParseLogFormat("text"), LogFormat::kText);
  EXPECT_EQ(*ParseLogFormat("JSON"), LogFormat::kJson);
  EXPECT_EQ(ParseLogFormat("xml").status().code(), StatusCode::kInvalidArgument);
}

class LineSinkTest : public testing::Test {
 public:
  LineSinkTest() {
    std::array<int, 2> fds{};
    EXPECT_EQ(::pipe2(fds.data(), O_CLOEXEC), 0);
    reader_ = fds[0];
    writer_ = fds[1];
    // Only this end: the sink must cope with a blocking fd.
    ::fcntl(reader_, F_SETFL, O_NONBLOCK);
  }
  ~LineSinkTest() override {
    ::close(reader_);
    ::close(writer_);
  }

 protected:
  std::string ReadAll() const {
    std::string all;
    std::array<char, 4096> buffer{};
    for (;;) {
      const ssize_t got = ::read(reader_, buffer.data(), buffer.size());
      if (got <= 0) return all;
      all.append(buffer.data(), static_cast<size_t>(got));
    }
  }

  int reader_ = -1;
  int writer_ = -1;
};

TEST_F(LineSinkTest, DropsAndCountsWhatIsNotRead) {
  LineSink sink(writer_);
  for (int i = 0; i < 20000; ++i)
    sink.Log(LogLevel::kInfo, "", fmt::format("message {}", i));
  const std::string before = ReadAll();
  EXPECT_THAT(before, HasSubstr("message 0\n"));
  EXPECT_THAT(before, Not(HasSubstr("message 19999\n")));

  sink.Log(LogLevel::kInfo, "", "read again");
  EXPECT_THAT(ReadAll(),
              MatchesRegex("[^\n]*\\[log\\] [0-9]+ log messages were dropped: they were not "
                           "read\n[^\n]* info \\[\\] read again\n"));
}

TEST_F(LineSinkTest, SurvivesAReaderThatWentAway) {
  LineSink sink(writer_);
  ASSERT_EQ(::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), reader_), reader_);
  sink.Log(LogLevel::kInfo, "", "would raise SIGPIPE");
  EXPECT_EQ(ReadAll(), "");
}

// The thread formats the same lines, each with the style and, in a queue, the time of its message.
TEST_F(LineSinkTest, ThreadWritesLinesAsTheyWereLogged) {
  LineSink sink(writer_);
  sink.SetStyle({.format = LogFormat::kText, .journal = true});
  sink.StartThread();
  sink.Log(LogLevel::kInfo, "a", "first");
  sink.Log(LogLevel::kError, "b", "second\n");
  sink.SetStyle({.format = LogFormat::kJson, .journal = false});
  sink.Log(LogLevel::kWarn, "a", "third");
  sink.EndThread();
  sink.Log(LogLevel::kInfo, "a", std::string(100000, 'x'));
  EXPECT_THAT(ReadAll(), MatchesRegex("<6>\\[a\\] first\n<3>\\[b\\] second.x0a\n"
                                      "\\{\"time\":\"[^\"]+\",\"level\":\"warning\",\"source\":"
                                      "\"a\",\"message\":\"third\"\\}\n"
                                      "\\{\"time\":.*xxx\\.\\.\\.\"\\}\n"));
}

TEST_F(LineSinkTest, CutsWhatAPipeMightNotTakeAtOnce) {
  LineSink sink(writer_);
  sink.Log(LogLevel::kInfo, "", std::string(100000, 'x'));
  const std::string line = ReadAll();
  EXPECT_THAT(line, SizeIs(LineSink::kLongestLine));
  EXPECT_THAT(line, EndsWith("x...\n"));
}

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{20};

class LineQueueTest : public testing::Test {
 protected:
  LineQueueTest() {
    std::signal(SIGPIPE, SIG_IGN);
    MakePipe();
  }

  void MakePipe() {
    std::array<int, 2> fds{};
    ASSERT_EQ(::pipe2(fds.data(), O_CLOEXEC), 0);
    reader_.Reset(fds[0]);
    // Never closed: a thread that hung in a write of an earlier test may still use it.
    writer_ = fds[1];
  }

  // Reads until the text arrives, and returns everything.
  std::string ReadUntil(const std::string& text) const {
    std::string all;
    std::array<char, 65536> buffer{};
    while (all.find(text) == std::string::npos) {
      const ssize_t got = ::read(reader_.get(), buffer.data(), buffer.size());
      if (got <= 0) break;
      all.append(buffer.data(), static_cast<size_t>(got));
    }
    return all;
  }

  UniqueFd reader_;
  int writer_ = -1;
};

TEST_F(LineQueueTest, WritesInOrder) {
  LineQueue queue(writer_);
  for (int i = 0; i < 100; ++i)
    queue.Push(std::to_string(i) + "\n", {});
  ASSERT_TRUE(queue.Flush(kPatience));
  const std::string all = ReadUntil("99\n");
  EXPECT_THAT(all, StartsWith("0\n1\n2\n"));
  EXPECT_THAT(all, EndsWith("98\n99\n"));
}

// A pipe takes 64 KiB, and a block of as much may be in a write. Unread lines are bounded, cost no
// time, and are counted in their place once they are read again, without a further line.
TEST_F(LineQueueTest, NobodyWhoLogsWaitsForAReaderThatHangs) {
  constexpr size_t kLines = 10'000;
  LineQueue queue(writer_, size_t{128} << 10);
  const std::string line = std::string(99, 'x') + "\n";
  const auto start = Clock::now();
  for (size_t i = 0; i < kLines; ++i)
    queue.Push(line, {});
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
  EXPECT_FALSE(queue.Flush(std::chrono::milliseconds(1)));

  // A writer that makes progress meanwhile reports more than once.
  const std::regex report("([0-9]+) log messages were dropped: they were not read\n");
  std::string all;
  size_t read = 0;
  size_t dropped = 0;
  while (read + dropped < kLines) {
    all += ReadUntil("\n");
    read = static_cast<size_t>(std::count(all.begin(), all.end(), '\n'));
    dropped = 0;
    for (std::sregex_iterator at(all.begin(), all.end(), report), end; at != end; ++at) {
      dropped += std::stoul((*at)[1]);
      --read;
    }
  }
  EXPECT_EQ(read + dropped, kLines);
  EXPECT_LT(read, kLines / 2);
  ASSERT_TRUE(queue.Flush(kPatience));
  queue.Push("read again\n", {});
  EXPECT_EQ(ReadUntil("again\n"), "read again\n");
}

TEST_F(LineQueueTest, CountsWhatIsLostWithoutAReader) {
  LineQueue queue(writer_);
  reader_.Reset();
  for (int i = 0; i < 3; ++i) {
    queue.Push("lost\n", {});
    EXPECT_TRUE(queue.Flush(kPatience));
  }
  // The pipe gets a reader again, as when the journal was restarted.
  const int old = writer_;
  MakePipe();
  ASSERT_EQ(::dup2(writer_, old), old);
  queue.Push("read again\n", {});
  const std::string all = ReadUntil("again\n");
  EXPECT_THAT(all, HasSubstr("[log] 3 log messages were dropped"));
  EXPECT_THAT(all, Not(HasSubstr("lost\n")));
}

// A full disk may take a part of a line. The next text, once there is room, begins its own line.
TEST_F(LineQueueTest, WhatFollowsAPartOfALineIsALine) {
  const TempDir directory;
  const std::string path = directory.File("log");
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  ASSERT_TRUE(file.valid());
  LineQueue queue(file.get());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{.rlim_cur = 8, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  queue.Push("one\ntwo and more\n", {});
  const bool flushed = queue.Flush(kPatience);
  queue.Push("three\n", {});
  const bool again = queue.Flush(kPatience);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_TRUE(flushed && again);
  queue.Push("room again\n", {});
  ASSERT_TRUE(queue.Flush(kPatience));
  EXPECT_THAT(*ReadFile(path, 4096), MatchesRegex("one\ntwo \n[^\n]* 2 log messages were dropped"
                                                  "[^\n]*\nroom again\n"));
}

// Each write and each wake-up of the thread costs a caller's CPU time.
TEST_F(LineQueueTest, LinesThatFollowEachOtherAreWrittenTogether) {
  std::array<int, 2> fds{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()), 0);
  const UniqueFd messages(fds[0]);
  const UniqueFd end(fds[1]);
  LineQueue queue(end.get());
  queue.Push("first\n", {});
  std::array<char, 4096> buffer{};
  ASSERT_EQ(::read(messages.get(), buffer.data(), buffer.size()), 6) << "at once, and alone";
  for (int i = 0; i < 100; ++i)
    queue.Push("next\n", {});
  ASSERT_TRUE(queue.Flush(kPatience));
  size_t writes = 0;
  for (ssize_t read = 0; read < 500; ++writes) {
    const ssize_t got = ::read(messages.get(), buffer.data(), buffer.size());
    ASSERT_GT(got, 0);
    read += got;
  }
  EXPECT_LE(writes, 10U);
}

TEST_F(LineQueueTest, WaitsForAReaderOfAPipeThatDoesNotBlock) {
  ASSERT_EQ(::fcntl(writer_, F_SETFL, O_NONBLOCK), 0);
  LineQueue queue(writer_);
  for (int i = 0; i < 2000; ++i)
    queue.Push(std::string(99, 'x') + "\n", {});
  queue.Push("last\n", {});
  EXPECT_THAT(ReadUntil("last\n"), Not(HasSubstr("dropped")));
}

TEST_F(LineQueueTest, EndWritesWhatWaits) {
  { LineQueue(writer_).Push("last words\n", {}); }
  EXPECT_EQ(ReadUntil("words\n"), "last words\n");
}

TEST_F(LineQueueTest, EndDoesNotWaitForEver) {
  const auto start = Clock::now();
  {
    LineQueue queue(writer_);
    for (int i = 0; i < 2000; ++i)
      queue.Push(std::string(99, 'x') + "\n", {});
  }
  EXPECT_LT(Clock::now() - start, LineQueue::kLastWords + std::chrono::seconds(10));
}

}  // namespace
}  // namespace resmgr
