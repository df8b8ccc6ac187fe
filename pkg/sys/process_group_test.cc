// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/process_group.h"

#include <array>
#include <csignal>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace resmgr {
namespace {

constexpr int kPatienceMs = 10'000;

// A child that leads a group and does what `body` does.
template <typename Body>
pid_t Child(Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setpgid(0, 0);
    body();
    ::_exit(3);
  }
  ::setpgid(pid, pid);
  return pid;
}

bool Ended(int pidfd) {
  pollfd poll{.fd = pidfd, .events = POLLIN, .revents = 0};
  return ::poll(&poll, 1, kPatienceMs) == 1;
}

TEST(ProcessGroupTest, TellsHowTheProcessEnded) {
  auto group = ProcessGroup::Own(Child([] {}));
  ASSERT_TRUE(group.ok());
  ASSERT_TRUE(Ended(group->pidfd()));
  const auto end = group->Reap();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->ToString(), "exit status 3");
  EXPECT_FALSE(end->ok());
  EXPECT_EQ(group->pid(), -1);
}

TEST(ProcessGroupTest, AKilledOneEndsByASignal) {
  auto group = ProcessGroup::Own(Child([] { ::pause(); }));
  ASSERT_TRUE(group.ok());
  EXPECT_FALSE(group->Reap().has_value()) << "it still runs";
  group->Kill();
  ASSERT_TRUE(Ended(group->pidfd()));
  EXPECT_EQ(group->Reap().value_or(ProcessGroup::End()).ToString(), "signal 9");
}

// Also the processes that the first one has started.
TEST(ProcessGroupTest, ItsEndKillsTheWholeGroupAndDoesNotWait) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  // Both processes hold the pipe's end for writing.
  const pid_t pid = Child([] {
    ::fork();
    ::pause();
  });
  ::close(pipe[1]);
  {
    auto group = ProcessGroup::Own(pid);
    ASSERT_TRUE(group.ok());
    ProcessGroup moved = *std::move(group);
    EXPECT_EQ(moved.pid(), pid);
  }
  pollfd poll{.fd = pipe[0], .events = 0, .revents = 0};
  EXPECT_EQ(::poll(&poll, 1, kPatienceMs), 1) << "a process of the group still runs";
  EXPECT_EQ(poll.revents & POLLHUP, POLLHUP);
  ::close(pipe[0]);
}

}  // namespace
}  // namespace resmgr
