// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/acceptor.h"

#include <string>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using test::RunFor;
using test::RunUntil;

// While this object lives, the process cannot open more files.
class NoFilesLeft {
 public:
  NoFilesLeft() {
    ::getrlimit(RLIMIT_NOFILE, &former_);
    const UniqueFd lowest(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    rlimit limit = former_;
    limit.rlim_cur = static_cast<rlim_t>(lowest.get());
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~NoFilesLeft() { ::setrlimit(RLIMIT_NOFILE, &former_); }
  NoFilesLeft(const NoFilesLeft&) = delete;
  NoFilesLeft& operator=(const NoFilesLeft&) = delete;

 private:
  rlimit former_{};
};

class AcceptorTest : public testing::Test {
 protected:
  Acceptor::Options Unlimited() {
    return {.take = [this](UniqueFd socket) { taken_.push_back(std::move(socket)); },
            .failed =
                [this](const Status& why) {
                  EXPECT_EQ(why.code(), StatusCode::kResourceExhausted) << Message(why);
                  ++failures_;
                },
            .pause = pause_};
  }
  // One more ends the first.
  Acceptor::Options Limited(size_t most) {
    Acceptor::Options options = Unlimited();
    options.present = [this] { return taken_.size(); };
    options.most = most;
    options.make_room = [this] {
      ASSERT_FALSE(taken_.empty());
      taken_.erase(taken_.begin());
    };
    return options;
  }
  void Connect(int clients) {
    for (int i = 0; i < clients; ++i) {
      StatusOr<UniqueFd> client = ConnectUnix(path_);
      ASSERT_TRUE(client.ok()) << Message(client.status());
      clients_.push_back(*std::move(client));
    }
  }
  ListeningSocket Listener() const { return *ListeningSocket::Create(path_); }
  bool Takes(size_t connections) {
    return RunUntil(loop_, [&] { return taken_.size() >= connections; });
  }
  static bool IsClosed(const UniqueFd& client) {
    pollfd polled{.fd = client.get(), .events = POLLIN, .revents = 0};
    return ::poll(&polled, 1, 0) == 1 && (polled.revents & POLLHUP) != 0;
  }

  const TempDir directory_;
  const std::string path_ = directory_.File("a.sock");
  const milliseconds pause_{30};
  EventLoop loop_;
  std::vector<UniqueFd> taken_;
  std::vector<UniqueFd> clients_;
  int failures_ = 0;
};

TEST_F(AcceptorTest, AFloodOfConnectionsLeavesOtherEventsTheirTurns) {
  Acceptor acceptor(loop_, Unlimited());
  acceptor.Listen(Listener());
  Connect(40);
  std::vector<size_t> seen;
  const std::function<void()> look = [&] {
    seen.push_back(taken_.size());
    if (taken_.size() < 40) loop_.Post(look);
  };
  loop_.Post(look);
  EXPECT_TRUE(Takes(40));
  EXPECT_THAT(seen, testing::IsSupersetOf({16U, 32U}));
}

TEST_F(AcceptorTest, OneTooManyEndsAPresentConnection) {
  Acceptor acceptor(loop_, Limited(2));
  acceptor.Listen(Listener());
  Connect(2);
  ASSERT_TRUE(Takes(2));
  Connect(1);
  EXPECT_TRUE(RunUntil(loop_, [this] { return IsClosed(clients_[0]); }));
  EXPECT_EQ(taken_.size(), 2U);
  EXPECT_FALSE(IsClosed(clients_[1]));
  EXPECT_FALSE(IsClosed(clients_[2]));
}

TEST_F(AcceptorTest, RestsWhileNoFileIsLeft) {
  Acceptor acceptor(loop_, Unlimited());
  acceptor.Listen(Listener());
  Connect(1);
  const auto begin = EventLoop::Clock::now();
  {
    const NoFilesLeft none;
    RunFor(loop_, 10 * pause_);
    EXPECT_TRUE(RunUntil(loop_, [this] { return failures_ >= 2; }));
  }
  EXPECT_TRUE(taken_.empty());
  EXPECT_LE(failures_, 1 + (EventLoop::Clock::now() - begin) / pause_);
  EXPECT_TRUE(Takes(1));
}

TEST_F(AcceptorTest, EndsAPresentConnectionWhereNoFileIsLeft) {
  Acceptor acceptor(loop_, Limited(10));
  acceptor.Listen(Listener());
  Connect(1);
  ASSERT_TRUE(Takes(1));
  Connect(1);
  const NoFilesLeft none;
  EXPECT_TRUE(RunUntil(loop_, [this] { return IsClosed(clients_[0]) && !taken_.empty(); }));
  EXPECT_EQ(failures_, 1);
  EXPECT_FALSE(IsClosed(clients_[1]));
}

// Another process has taken the descriptors.
TEST_F(AcceptorTest, EndsOneConnectionInAPauseWhereThatDoesNotHelp) {
  int ended = 0;
  Acceptor::Options options = Limited(10);
  options.present = [] { return size_t{5}; };
  options.make_room = [&ended] { ++ended; };
  Acceptor acceptor(loop_, std::move(options));
  acceptor.Listen(Listener());
  Connect(1);
  const auto begin = EventLoop::Clock::now();
  const NoFilesLeft none;
  RunFor(loop_, 10 * pause_);
  EXPECT_TRUE(RunUntil(loop_, [&ended] { return ended >= 2; }));
  EXPECT_LE(ended, 1 + (EventLoop::Clock::now() - begin) / pause_);
}

TEST_F(AcceptorTest, StopsWhileItRestsAndListensAgain) {
  Acceptor acceptor(loop_, Unlimited());
  acceptor.Listen(Listener());
  Connect(1);
  {
    const NoFilesLeft none;
    ASSERT_TRUE(RunUntil(loop_, [this] { return failures_ == 1; }));
  }
  acceptor.Stop();
  RunFor(loop_, 2 * pause_);
  EXPECT_FALSE(ConnectUnix(path_).ok());
  EXPECT_TRUE(taken_.empty());
  acceptor.Listen(Listener());
  Connect(1);
  EXPECT_TRUE(Takes(1));
}

TEST_F(AcceptorTest, MayBeStoppedByTheOneThatTakesAConnection) {
  Acceptor::Options options = Unlimited();
  Acceptor* stopped = nullptr;
  options.take = [&](UniqueFd socket) {
    taken_.push_back(std::move(socket));
    stopped->Stop();
  };
  Acceptor acceptor(loop_, std::move(options));
  stopped = &acceptor;
  acceptor.Listen(Listener());
  Connect(2);
  ASSERT_TRUE(Takes(1));
  RunFor(loop_, milliseconds(5));
  EXPECT_EQ(taken_.size(), 1U);
}

TEST(LongestIdleTest, TakesAnIdleOneBeforeABusyOne) {
  struct Client {
    bool busy() const { return is_busy; }
    int last_active() const { return active; }
    bool is_busy;
    int active;
  };
  Client busy{.is_busy = true, .active = 1};
  Client recent{.is_busy = false, .active = 3};
  Client idle{.is_busy = false, .active = 2};
  std::vector<Client*> clients = {&busy, &recent, &idle};
  EXPECT_EQ(&LongestIdle(clients), &idle);
  clients = {&busy};
  EXPECT_EQ(&LongestIdle(clients), &busy);
}

}  // namespace
}  // namespace resmgr
