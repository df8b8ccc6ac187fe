// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/hand_over.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pkg/sys/inherited_sockets.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unix_socket.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Must;

using std::chrono::milliseconds;
using Files = HandOverChannel::Files;

std::pair<UniqueFd, UniqueFd> Connected() {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

size_t FilesOpen() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

class HandOverChannelTest : public testing::Test {
 protected:
  HandOverChannelTest() : HandOverChannelTest(Connected()) {}

  TempDir directory_;
  HandOverChannel from_;
  HandOverChannel to_;

 private:
  explicit HandOverChannelTest(std::pair<UniqueFd, UniqueFd> ends)
      : from_(std::move(ends.first), Files::kRefuse), to_(std::move(ends.second), Files::kTake) {}
};

TEST_F(HandOverChannelTest, MessagesComeOneByOne) {
  EXPECT_EQ(*to_.Next(), std::nullopt);
  EXPECT_EQ(from_.Send("one"), OkStatus());
  EXPECT_EQ(from_.Send("another"), OkStatus());
  EXPECT_EQ(*to_.Next(), "one");
  EXPECT_EQ(*to_.Await(milliseconds(0)), "another");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(to_.Await(milliseconds(10)).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(10));
}

TEST_F(HandOverChannelTest, WhatWasSaidBeforeTheEndIsHeard) {
  {
    const HandOverChannel gone = std::move(from_);
    from_ = HandOverChannel(UniqueFd(), Files::kRefuse);
    const HandOverChannel& speaks = gone;
    EXPECT_EQ(::write(speaks.fd(), "no reason", 10), 10);
  }
  (void)to_.Send("drain");
  EXPECT_EQ(*to_.Await(milliseconds(1'000)), "no reason");
  EXPECT_EQ(to_.Await(milliseconds(1'000)).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(to_.Send("end").code(), StatusCode::kUnavailable);
}

TEST_F(HandOverChannelTest, AMessageThatDoesNotEndIsRefused) {
  const std::string endless(HandOverChannel::kLongestMessage, 'x');
  ASSERT_EQ(::write(from_.fd(), endless.data(), endless.size()),
            static_cast<ssize_t>(endless.size()));
  EXPECT_EQ(to_.Next().status().code(), StatusCode::kInvalidArgument);
}

TEST_F(HandOverChannelTest, DescriptorsThatAreNotWantedAreClosed) {
  const size_t before = FilesOpen();
  const std::array<int, 2> files = {0, 1};
  EXPECT_EQ(to_.Send("take these", files), OkStatus());
  EXPECT_EQ(*from_.Next(), "take these");
  EXPECT_EQ(FilesOpen(), before);
  EXPECT_EQ(from_.ReadSocket("socket own /x").status().code(), StatusCode::kInvalidArgument);
}

TEST_F(HandOverChannelTest, OnlyASocketWithItsTwoDescriptorsIsOne) {
  EXPECT_EQ(to_.ReadSocket("socket own /x").status().code(), StatusCode::kInvalidArgument);
  const std::array<int, 2> files = {0, 1};
  ASSERT_EQ(from_.Send("sofa own /x", files), OkStatus());
  ASSERT_EQ(*to_.Next(), "sofa own /x");
  EXPECT_EQ(to_.ReadSocket("sofa own /x").status().code(), StatusCode::kInvalidArgument);
}

TEST_F(HandOverChannelTest, KnowsThePeer) {
  EXPECT_EQ(from_.peer()->user, ::geteuid());
  EXPECT_EQ(from_.peer()->process, ::getpid());
}

// One process is both daemons here.
class SharedSocketTest : public HandOverChannelTest {
 protected:
  // Hands the sockets over as the other daemon gets them.
  void HandOver() {
    auto copies = OpenSockets::Instance().Share();
    ASSERT_TRUE(copies.ok()) << copies.status();
    for (const OpenSockets::Copy& copy : *copies)
      ASSERT_EQ(from_.SendSocket(copy), OkStatus());
    for (size_t i = 0; i < copies->size(); ++i) {
      const auto message = to_.Await(milliseconds(1'000));
      ASSERT_TRUE(message.ok());
      auto copy = to_.ReadSocket(*message);
      ASSERT_TRUE(copy.ok()) << copy.status();
      InheritedSockets::Instance().Add(copy->path, std::move(copy->socket));
    }
  }
  bool Exists(const std::string& path) { return std::filesystem::exists(path); }

  const std::string path_ = directory_.File("a.sock");
};

TEST_F(SharedSocketTest, ClientsThatWaitAreServedByTheOtherProcess) {
  StatusOr<ListeningSocket> own = ListeningSocket::Create(path_);
  ASSERT_TRUE(own.ok());
  HandOver();
  const UniqueFd waits = Must(ConnectUnix(path_));
  own = Unavailable("ended");
  ASSERT_TRUE(Exists(path_));
  EXPECT_EQ(ClaimPath(path_).status().code(), StatusCode::kAlreadyExists) << "claimed all the time";
  StatusOr<ListeningSocket> theirs = ListeningSocket::Create(path_);
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  EXPECT_TRUE(theirs->Accept()->has_value());
  theirs = Unavailable("ended");
  EXPECT_FALSE(Exists(path_));
  EXPECT_TRUE(ClaimPath(path_).ok());
}

TEST_F(SharedSocketTest, AfterTheOtherProcessDiedTheFileIsRemovedAgain) {
  StatusOr<ListeningSocket> own = ListeningSocket::Create(path_);
  HandOver();
  (void)InheritedSockets::Instance().Take(path_);
  OpenSockets::Instance().TakeBack();
  EXPECT_TRUE(OpenSockets::Instance().Has(path_));
  own = Unavailable("ended");
  EXPECT_FALSE(Exists(path_));
  EXPECT_FALSE(OpenSockets::Instance().Has(path_));
}

TEST_F(SharedSocketTest, ThatAFileIsAnothersIsHandedOn) {
  StatusOr<ListeningSocket> maker = ListeningSocket::Create(path_);
  InheritedSockets::Socket kept{
      .fd = UniqueFd(::dup(maker->fd())), .lock = {}, .kept_by_other = true};
  std::filesystem::create_hard_link(path_, directory_.File("kept"));
  maker = Unavailable("gone");
  std::filesystem::rename(directory_.File("kept"), path_);
  InheritedSockets::Instance().Add(path_, std::move(kept));
  StatusOr<ListeningSocket> own = ListeningSocket::Create(path_);
  ASSERT_TRUE(own.ok()) << own.status();
  HandOver();
  own = Unavailable("ended");
  StatusOr<ListeningSocket> theirs = ListeningSocket::Create(path_);
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  theirs = Unavailable("ended");
  EXPECT_TRUE(Exists(path_));
}

TEST_F(SharedSocketTest, WhatIsNotServedAnyMoreIsRemoved) {
  const std::string other = directory_.File("b.sock");
  StatusOr<ListeningSocket> first = ListeningSocket::Create(path_);
  StatusOr<ListeningSocket> second = ListeningSocket::Create(other);
  HandOver();
  first = Unavailable("ended");
  second = Unavailable("ended");
  DropInherited({path_});
  EXPECT_THAT(InheritedSockets::Instance().Paths(), testing::ElementsAre(path_));
  EXPECT_TRUE(Exists(path_));
  EXPECT_FALSE(Exists(other));
  DropInherited({});
  EXPECT_FALSE(Exists(path_));
}

class InheritedSocketsTest : public testing::Test {
 protected:
  // A listening socket that outlives the one that made it, as of a service manager.
  UniqueFd Listener() const {
    const auto made = ListeningSocket::Create(path_);
    EXPECT_TRUE(made.ok()) << made.status();
    UniqueFd fd(::dup(made->fd()));
    std::filesystem::create_hard_link(path_, path_ + ".file");
    return fd;
  }
  // The file is back at its path.
  void PutFileBack() const { std::filesystem::rename(path_ + ".file", path_); }

  TempDir directory_;
  const std::string path_ = directory_.File("a.sock");
};

TEST_F(InheritedSocketsTest, IsServedAndItsFileIsKept) {
  InheritedSockets::Instance().Add(path_, {.fd = Listener(), .lock = {}, .kept_by_other = true});
  PutFileBack();
  // A client that came before.
  const auto early = Must(ConnectUnix(path_));
  {
    auto socket = Must(ListeningSocket::Create(path_));
    const auto accepted = socket.Accept();
    ASSERT_TRUE(accepted.ok() && accepted->has_value());
    EXPECT_FALSE(socket.Accept()->has_value()) << "it does not block";
    EXPECT_EQ(ListeningSocket::Create(path_).status().code(), StatusCode::kAlreadyExists)
        << "it has its claim";
  }
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(InheritedSocketsTest, IsFoundByAnotherNameOfItsFile) {
  InheritedSockets sockets;
  sockets.Add(path_, {.fd = Listener(), .lock = {}, .kept_by_other = true});
  PutFileBack();
  std::filesystem::create_directory_symlink(directory_.path(), directory_.path() + "-run");
  EXPECT_FALSE(sockets.Take(directory_.File("b.sock")).has_value());
  EXPECT_TRUE(sockets.Take(directory_.path() + "-run/a.sock").has_value());
  EXPECT_FALSE(sockets.Take(path_).has_value()) << "once";
  std::filesystem::remove(directory_.path() + "-run");
}

TEST_F(InheritedSocketsTest, WaitsForTheClaimOfAnother) {
  InheritedSockets::Instance().Add(path_, {.fd = Listener(), .lock = {}, .kept_by_other = true});
  PutFileBack();
  auto claim = Must(ClaimPath(path_));
  EXPECT_EQ(ListeningSocket::Create(path_).status().code(), StatusCode::kAlreadyExists);
  claim.Reset();
  EXPECT_TRUE(ListeningSocket::Create(path_).ok()) << "it was not lost";
}

// The environment names fixed numbers, so a process of its own is asked.
class FromEnvironmentTest : public InheritedSocketsTest {
 protected:
  // How many a process takes that has the socket as its fd 3, a pipe as 4, and these variables.
  int Taken(const std::string& pid, const std::string& count) const {
    const UniqueFd listener = Listener();
    PutFileBack();
    const pid_t child = ::fork();
    if (child == 0) {
      int ends[2] = {};
      if (::pipe(ends) != 0) ::_exit(99);
      const int high_listener = ::fcntl(listener.get(), F_DUPFD, 20);
      const int high_end = ::fcntl(ends[0], F_DUPFD, 20);
      ::dup2(high_listener, 3);
      ::dup2(high_end, 4);
      ::setenv("LISTEN_PID", pid == "mine" ? std::to_string(::getpid()).c_str() : pid.c_str(), 1);
      ::setenv("LISTEN_FDS", count.c_str(), 1);
      InheritedSockets sockets;
      const size_t taken = sockets.AddFromEnvironment();
      const bool has = sockets.Take(path_).has_value();
      if (has != (taken > 0) || std::getenv("LISTEN_FDS") != nullptr) ::_exit(98);
      ::_exit(static_cast<int>(taken));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    std::filesystem::remove(path_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 97;
  }
};

TEST_F(FromEnvironmentTest, TakesWhatIsForThisProcess) {
  EXPECT_EQ(Taken("mine", "2"), 1) << "the pipe is none";
  EXPECT_EQ(Taken("mine", "1"), 1);
}

TEST_F(FromEnvironmentTest, TakesNothingElse) {
  EXPECT_EQ(Taken("1", "1"), 0) << "for another process";
  for (const char* const count : {"0", "-1", "x", "", "1000000"})
    EXPECT_EQ(Taken("mine", count), 0) << count;
}

}  // namespace
}  // namespace resmgr
