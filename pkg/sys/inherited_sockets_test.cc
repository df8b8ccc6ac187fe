// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/inherited_sockets.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {
namespace {

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
  const auto early = ConnectUnix(path_);
  ASSERT_TRUE(early.ok()) << early.status();
  {
    auto socket = ListeningSocket::Create(path_);
    ASSERT_TRUE(socket.ok()) << socket.status();
    const auto accepted = socket->Accept();
    ASSERT_TRUE(accepted.ok() && accepted->has_value());
    EXPECT_FALSE(socket->Accept()->has_value()) << "it does not block";
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
  auto claim = ClaimPath(path_);
  ASSERT_TRUE(claim.ok());
  EXPECT_EQ(ListeningSocket::Create(path_).status().code(), StatusCode::kAlreadyExists);
  claim->Reset();
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
