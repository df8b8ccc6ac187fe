// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/unix_socket.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Must;
using testing::HasSubstr;

std::string MessageOf(const Status& status) {
  return std::string(Message(status));
}

mode_t ModeOf(const std::string& path) {
  struct stat found {};
  EXPECT_EQ(::lstat(path.c_str(), &found), 0) << path;
  return found.st_mode & 07777;
}

bool Exists(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0;
}

// A socket as another program would make it: without a lock.
UniqueFd ForeignListener(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(::listen(fd.get(), 8), 0);
  return fd;
}

bool IsNonBlockingAndCloseOnExec(int fd) {
  return (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0 && (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
}

class UnixSocketTest : public testing::Test {
 protected:
  TempDir directory_;
  const std::string path_ = directory_.File("a.sock");
};

TEST_F(UnixSocketTest, StripsTheUnixPrefixOnly) {
  EXPECT_EQ(StripUnixPrefix("unix:///run/a.sock"), "/run/a.sock");
  EXPECT_EQ(StripUnixPrefix("/run/unix://a.sock"), "/run/unix://a.sock");
  EXPECT_EQ(StripUnixPrefix(""), "");
}

TEST_F(UnixSocketTest, KnowsWhatCannotBeAPath) {
  EXPECT_TRUE(CheckUnixPath("/no/such/directory/a.sock").ok());
  EXPECT_TRUE(CheckUnixPath(std::string(107, 'a')).ok());
  for (const std::string& path : {std::string(), std::string(108, 'a'), std::string("a\0b", 3)}) {
    EXPECT_EQ(CheckUnixPath(path).code(), StatusCode::kInvalidArgument) << path;
  }
}

TEST_F(UnixSocketTest, ConnectsAndAccepts) {
  auto listener = Must(ListeningSocket::Create(path_));
  auto client = Must(ConnectUnix(path_));
  auto accepted = Must(listener.Accept());
  ASSERT_TRUE(accepted.has_value());
  const UniqueFd& server = *accepted;

  EXPECT_EQ(::write(client.get(), "ping", 4), 4);
  std::array<char, 8> buffer{};
  EXPECT_EQ(::read(server.get(), buffer.data(), buffer.size()), 4);
  for (const int fd : {client.get(), server.get(), listener.fd()}) {
    EXPECT_TRUE(IsNonBlockingAndCloseOnExec(fd));
  }
}

TEST_F(UnixSocketTest, AcceptReturnsNothingWithoutAConnection) {
  auto listener = Must(ListeningSocket::Create(path_));
  auto accepted = Must(listener.Accept());
  EXPECT_FALSE(accepted.has_value());
}

TEST_F(UnixSocketTest, ConnectingWithoutAListenerIsUnavailable) {
  const auto missing = ConnectUnix(path_);
  EXPECT_EQ(missing.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(missing.status()), HasSubstr("no such socket"));

  ForeignListener(path_).Reset();
  const auto refused = ConnectUnix(path_);
  EXPECT_EQ(refused.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("no listener"));
}

TEST_F(UnixSocketTest, ConnectingToAFullQueueIsUnavailableAtOnce) {
  const UniqueFd listener = ForeignListener(path_);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  std::vector<UniqueFd> clients;
  StatusOr<UniqueFd> client = ConnectUnix(path_);
  while (client.ok() && clients.size() < 100) {
    clients.push_back(*std::move(client));
    client = ConnectUnix(path_);
  }
  EXPECT_EQ(client.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(client.status()), HasSubstr("queue"));
}

TEST_F(UnixSocketTest, PathMayHaveAtMost107Bytes) {
  const std::string longest = directory_.File(std::string(107 - directory_.path().size() - 1, 'x'));
  EXPECT_TRUE(ListeningSocket::Create(longest).ok());
  const std::string too_long = longest + "x";
  for (const Status& status :
       {ListeningSocket::Create(too_long).status(), ConnectUnix(too_long).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(status), HasSubstr("108 bytes long, 107 are possible"));
  }
}

TEST_F(UnixSocketTest, EmptyPathAndZeroByteAreRefused) {
  EXPECT_EQ(ConnectUnix("").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ListeningSocket::Create(std::string_view("/tmp/a\0b", 8)).status().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(UnixSocketTest, MakesMissingDirectories) {
  const std::string path = directory_.File("run/cri/a.sock");
  const auto listener = Must(ListeningSocket::Create(path));
  EXPECT_EQ(ModeOf(directory_.File("run/cri")), 0711U);
}

TEST_F(UnixSocketTest, ModeIsNeverWiderThanGroupAccess) {
  const mode_t old_mask = ::umask(0);
  const auto wide = ListeningSocket::Create(path_, 0777);
  const auto narrow = ListeningSocket::Create(directory_.File("b.sock"), 0600);
  const mode_t mask_after = ::umask(old_mask);
  ASSERT_TRUE(wide.ok() && narrow.ok());
  EXPECT_EQ(ModeOf(path_), 0660U);
  EXPECT_EQ(ModeOf(directory_.File("b.sock")), 0600U);
  EXPECT_EQ(ModeOf(path_ + ".lock"), 0600U);
  EXPECT_EQ(mask_after, 0U);
}

// Threads make sockets of their own while others make files and start programs.
TEST_F(UnixSocketTest, ThreadsLeaveEachOthersModesAlone) {
  constexpr int kThreads = 4;
  const mode_t before = ::umask(022);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread, &wrong] {
      for (int i = 0; i < 50; ++i) {
        const std::string path = directory_.File(fmt::format("{}.sock", thread));
        const mode_t mode = thread % 2 == 0 ? 0660 : 0600;
        const auto listener = ListeningSocket::Create(path, mode);
        const std::string made = directory_.File(fmt::format("{}-{}", thread, i));
        const bool right = listener.ok() && ModeOf(path) == mode &&
                           ::mkdir(made.c_str(), 0777) == 0 && ModeOf(made) == 0755;
        if (!right) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(::umask(before), 022U);
}

TEST_F(UnixSocketTest, SecondInstanceDoesNotStealALiveSocket) {
  auto first = Must(ListeningSocket::Create(path_));
  const auto second = ListeningSocket::Create(path_);
  EXPECT_EQ(second.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(MessageOf(second.status()), HasSubstr(path_));

  const auto client = Must(ConnectUnix(path_));
  EXPECT_TRUE(first.Accept()->has_value());
}

TEST_F(UnixSocketTest, AnotherProcessDoesNotStealALiveSocket) {
  const auto first = Must(ListeningSocket::Create(path_));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto second = ListeningSocket::Create(path_);
    ::_exit(second.status().code() == StatusCode::kAlreadyExists ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(ConnectUnix(path_).ok());
}

TEST_F(UnixSocketTest, LiveSocketWithoutALockIsNotStolen) {
  const UniqueFd foreign = ForeignListener(path_);
  const auto listener = ListeningSocket::Create(path_);
  EXPECT_EQ(listener.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(MessageOf(listener.status()), HasSubstr(path_));
  EXPECT_TRUE(ConnectUnix(path_).ok());
}

TEST_F(UnixSocketTest, StaleSocketIsReplaced) {
  ForeignListener(path_).Reset();
  ASSERT_TRUE(Exists(path_));
  const auto listener = Must(ListeningSocket::Create(path_));
  EXPECT_TRUE(ConnectUnix(path_).ok());
}

TEST_F(UnixSocketTest, SocketOfAKilledProcessIsReplaced) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto listener = ListeningSocket::Create(path_);
    // Ends without destructors, as a killed process does.
    ::_exit(listener.ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(Exists(path_));
  const auto listener = ListeningSocket::Create(path_);
  EXPECT_TRUE(listener.ok()) << listener.status();
}

TEST_F(UnixSocketTest, WhatIsNotASocketStays) {
  std::ofstream(path_) << "precious";
  const auto listener = ListeningSocket::Create(path_);
  EXPECT_EQ(listener.status().code(), StatusCode::kFailedPrecondition);
  std::string content;
  std::ifstream(path_) >> content;
  EXPECT_EQ(content, "precious");
}

TEST_F(UnixSocketTest, DestructorRemovesItsSocketAndGivesThePathFree) {
  { const auto listener = Must(ListeningSocket::Create(path_)); }
  EXPECT_FALSE(Exists(path_));
  EXPECT_TRUE(ListeningSocket::Create(path_).ok());
}

TEST_F(UnixSocketTest, DestructorLeavesASocketThatReplacedIts) {
  UniqueFd foreign;
  {
    const auto listener = Must(ListeningSocket::Create(path_));
    ASSERT_EQ(::rename(path_.c_str(), directory_.File("moved").c_str()), 0);
    foreign = ForeignListener(path_);
  }
  EXPECT_TRUE(ConnectUnix(path_).ok());
}

TEST_F(UnixSocketTest, MovedSocketIsRemovedOnce) {
  auto first = ListeningSocket::Create(path_);
  auto second = ListeningSocket::Create(directory_.File("b.sock"));
  ASSERT_TRUE(first.ok() && second.ok());
  *second = *std::move(first);
  EXPECT_FALSE(Exists(directory_.File("b.sock")));
  EXPECT_TRUE(ConnectUnix(path_).ok());
  EXPECT_EQ(second->path(), path_);
}

}  // namespace
}  // namespace resmgr
