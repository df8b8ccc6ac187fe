// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/line_queue.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <regex>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
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
