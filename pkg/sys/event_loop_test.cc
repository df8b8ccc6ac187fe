// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/event_loop.h"

#include <array>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "pkg/sys/signal_wakeup.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

struct SocketPair {
  SocketPair() {
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()), 0);
    near.Reset(fds[0]);
    far.Reset(fds[1]);
  }
  void Send(std::string_view text) const {
    EXPECT_EQ(::write(far.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::string Receive() const {
    std::array<char, 256> buffer{};
    const ssize_t got = ::read(near.get(), buffer.data(), buffer.size());
    return {buffer.data(), static_cast<size_t>(std::max<ssize_t>(got, 0))};
  }
  UniqueFd near;
  UniqueFd far;
};

// The number of times that this thread went to sleep.
long Sleeps() {
  rusage usage{};
  EXPECT_EQ(::getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_nvcsw;
}

class EventLoopTest : public testing::Test {
 protected:
  // Every test ends by Stop; the deadline turns a hanging one into a failure.
  void Run() {
    const auto deadline = loop_.After(milliseconds(20000), [this] {
      ADD_FAILURE() << "the expected events did not come";
      loop_.Stop();
    });
    loop_.Run();
  }

  EventLoop loop_;
};

TEST_F(EventLoopTest, ReportsReadableData) {
  const SocketPair pair;
  std::string received;
  const auto watch = loop_.Watch(pair.near.get(), EventLoop::kReadable, [&](int events) {
    EXPECT_EQ(events, EventLoop::kReadable);
    received += pair.Receive();
    loop_.Stop();
  });
  pair.Send("hello");
  Run();
  EXPECT_EQ(received, "hello");
}

TEST_F(EventLoopTest, ReportsAgainWhatWasNotRead) {
  const SocketPair pair;
  int calls = 0;
  const auto watch = loop_.Watch(pair.near.get(), EventLoop::kReadable, [&](int) {
    if (++calls == 3) loop_.Stop();
  });
  pair.Send("x");
  Run();
  EXPECT_EQ(calls, 3);
}

TEST_F(EventLoopTest, SetEventsPausesAndResumes) {
  const SocketPair pair;
  std::vector<std::string> order;
  EventLoop::HandlePtr watch;
  EventLoop::HandlePtr resume;
  watch = loop_.Watch(pair.near.get(), EventLoop::kReadable, [&](int) {
    order.emplace_back("read");
    EventLoop::SetEvents(*watch, 0);
    if (resume) {
      loop_.Stop();
      return;
    }
    resume = loop_.After(milliseconds(20), [&] {
      order.emplace_back("resume");
      EventLoop::SetEvents(*watch, EventLoop::kReadable);
    });
  });
  pair.Send("x");
  Run();
  EXPECT_THAT(order, ElementsAre("read", "resume", "read"));
}

TEST_F(EventLoopTest, SetEventsAddsWritable) {
  const SocketPair pair;
  int seen = 0;
  const auto watch = loop_.Watch(pair.near.get(), 0, [&](int events) {
    seen = events;
    loop_.Stop();
  });
  EventLoop::SetEvents(*watch, EventLoop::kReadable | EventLoop::kWritable);
  pair.Send("x");
  Run();
  EXPECT_EQ(seen, EventLoop::kReadable | EventLoop::kWritable);
}

TEST_F(EventLoopTest, PeerThatHungUpIsReadable) {
  SocketPair pair;
  int seen = 0;
  const auto watch = loop_.Watch(pair.near.get(), EventLoop::kReadable, [&](int events) {
    seen = events;
    loop_.Stop();
  });
  pair.far.Reset();
  Run();
  EXPECT_NE(seen & EventLoop::kReadable, 0);
}

TEST_F(EventLoopTest, SocketErrorIsReportedAgainAndAgain) {
  SocketPair pair;
  // A peer that goes away with unread data leaves a connection reset behind.
  EXPECT_EQ(::write(pair.near.get(), "x", 1), 1);
  pair.far.Reset();
  int calls = 0;
  const auto watch = loop_.Watch(pair.near.get(), EventLoop::kReadable, [&](int events) {
    EXPECT_EQ(events, EventLoop::kReadable | EventLoop::kWritable);
    if (++calls == 2) loop_.Stop();
  });
  Run();
  EXPECT_EQ(calls, 2);
}

TEST_F(EventLoopTest, WatchMayBeDestroyedInItsOwnCallback) {
  const SocketPair pair;
  int calls = 0;
  EventLoop::HandlePtr watch;
  watch =
      loop_.Watch(pair.near.get(), EventLoop::kReadable, [&, text = std::string(100, 'c')](int) {
        ++calls;
        watch.reset();
        // The captured text is still there.
        EXPECT_EQ(text.size(), 100U);
        // Two turns later.
        loop_.Post([&] { loop_.Post([&] { loop_.Stop(); }); });
      });
  pair.Send("unread");
  Run();
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, WatchDestroyedByAnotherOneOfTheSameTurnIsNotCalled) {
  const SocketPair first;
  const SocketPair second;
  int calls = 0;
  EventLoop::HandlePtr watch_first;
  EventLoop::HandlePtr watch_second;
  const auto end_both = [&](int) {
    ++calls;
    watch_first.reset();
    watch_second.reset();
    loop_.Post([&] { loop_.Stop(); });
  };
  watch_first = loop_.Watch(first.near.get(), EventLoop::kReadable, end_both);
  watch_second = loop_.Watch(second.near.get(), EventLoop::kReadable, end_both);
  first.Send("x");
  second.Send("x");
  Run();
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, FdNumberMayBeReusedRightAfterItsWatchIsDestroyed) {
  SocketPair old_pair;
  SocketPair new_pair;
  int calls_of_old = 0;
  auto watch = loop_.Watch(old_pair.near.get(), EventLoop::kReadable, [&](int) { ++calls_of_old; });
  std::string received;
  const auto exchange = loop_.After(milliseconds(0), [&] {
    watch.reset();
    const int number = old_pair.near.get();
    ASSERT_EQ(::dup2(new_pair.near.get(), number), number);
    watch = loop_.Watch(number, EventLoop::kReadable, [&](int) {
      received = new_pair.Receive();
      loop_.Stop();
    });
    new_pair.Send("new");
  });
  Run();
  EXPECT_EQ(received, "new");
  EXPECT_EQ(calls_of_old, 0);
}

TEST_F(EventLoopTest, AfterRunsOnceAndNotTooEarly) {
  const auto start = EventLoop::Clock::now();
  int calls = 0;
  const auto timer = loop_.After(milliseconds(30), [&] { ++calls; });
  const auto end = loop_.After(milliseconds(80), [&] { loop_.Stop(); });
  Run();
  EXPECT_EQ(calls, 1);
  EXPECT_GE(EventLoop::Clock::now() - start, milliseconds(80));
}

TEST_F(EventLoopTest, EveryRepeatsUntilDestroyedInItsOwnCallback) {
  int calls = 0;
  EventLoop::HandlePtr timer;
  EventLoop::HandlePtr end;
  timer = loop_.Every(milliseconds(1), [&] {
    if (++calls < 3) return;
    timer.reset();
    end = loop_.After(milliseconds(10), [&] { loop_.Stop(); });
  });
  Run();
  EXPECT_EQ(calls, 3);
}

TEST_F(EventLoopTest, EveryWithPeriodZeroRepeatsAndDoesNotStarveOthers) {
  const SocketPair pair;
  int calls = 0;
  std::string received;
  const auto watch =
      loop_.Watch(pair.near.get(), EventLoop::kReadable, [&](int) { received += pair.Receive(); });
  const auto timer = loop_.Every(milliseconds(0), [&] {
    if (++calls >= 3 && !received.empty()) loop_.Stop();
  });
  pair.Send("served");
  Run();
  EXPECT_GE(calls, 3);
  EXPECT_EQ(received, "served");
}

TEST_F(EventLoopTest, DestroyedTimerDoesNotRun) {
  bool ran = false;
  auto timer = loop_.After(milliseconds(5), [&] { ran = true; });
  timer.reset();
  const auto end = loop_.After(milliseconds(20), [&] { loop_.Stop(); });
  Run();
  EXPECT_FALSE(ran);
}

TEST_F(EventLoopTest, TimersRunInTheOrderOfTheirTimes) {
  std::vector<int> order;
  std::vector<EventLoop::HandlePtr> timers;
  // Far apart: a busy machine may take some time from one to the next.
  for (const int due : {7, 3, 9, 1, 5, 3}) {
    timers.push_back(loop_.After(due * milliseconds(40), [&order, due] { order.push_back(due); }));
  }
  const auto end = loop_.After(milliseconds(500), [&] { loop_.Stop(); });
  Run();
  EXPECT_THAT(order, ElementsAre(1, 3, 3, 5, 7, 9));
}

TEST_F(EventLoopTest, TimerMayDestroyAnotherThatIsDue) {
  bool ran = false;
  EventLoop::HandlePtr second;
  const auto first = loop_.After(milliseconds(0), [&] { second.reset(); });
  second = loop_.After(milliseconds(0), [&] { ran = true; });
  const auto end = loop_.After(milliseconds(10), [&] { loop_.Stop(); });
  Run();
  EXPECT_FALSE(ran);
}

TEST_F(EventLoopTest, TimersThatCallForTheNextAtOnceDoNotStarveSockets) {
  const SocketPair pair;
  EventLoop::HandlePtr timer;
  std::function<void()> again = [&] { timer = loop_.After(milliseconds(0), again); };
  again();
  std::string received;
  const auto watch = loop_.Watch(pair.near.get(), EventLoop::kReadable, [&](int) {
    received = pair.Receive();
    loop_.Stop();
  });
  pair.Send("served");
  Run();
  EXPECT_EQ(received, "served");
}

TEST_F(EventLoopTest, TimerOfTheFarthestFutureNeverRuns) {
  bool ran = false;
  const auto timer = loop_.After(milliseconds::max(), [&] { ran = true; });
  const auto end = loop_.After(milliseconds(5), [&] { loop_.Stop(); });
  Run();
  EXPECT_FALSE(ran);
}

TEST_F(EventLoopTest, PausedWatchOfAPeerThatHungUpDoesNotWakeUp) {
  SocketPair pair;
  int calls = 0;
  const auto watch = loop_.Watch(pair.near.get(), EventLoop::kReadable, [&](int) { ++calls; });
  EventLoop::SetEvents(*watch, 0);
  pair.far.Reset();
  const long before = Sleeps();
  const auto end = loop_.After(milliseconds(50), [&] { loop_.Stop(); });
  Run();
  const long after = Sleeps();
  EXPECT_EQ(calls, 0);
  EXPECT_LE(after - before, 3);
}

TEST_F(EventLoopTest, NowFollowsTheSteadyClock) {
  const auto before = EventLoop::Clock::now();
  EventLoop::Clock::time_point now;
  const auto timer = loop_.After(milliseconds(10), [&] {
    now = loop_.Now();
    loop_.Stop();
  });
  Run();
  EXPECT_GE(now, before);
  EXPECT_LE(now, EventLoop::Clock::now());
}

TEST_F(EventLoopTest, SignalRunsItsTask) {
  std::vector<pid_t> senders;
  const auto watch = loop_.OnSignal(SIGUSR1, [&](pid_t sender) {
    senders.push_back(sender);
    loop_.Stop();
  });
  ASSERT_EQ(std::raise(SIGUSR1), 0);
  Run();
  EXPECT_THAT(senders, testing::ElementsAre(::getpid()));
}

TEST_F(EventLoopTest, SignalWatchMayBeDestroyedInItsOwnCallback) {
  int calls = 0;
  auto watch = loop_.OnSignal(SIGUSR1, [](pid_t) {});
  const auto other = loop_.OnSignal(SIGUSR1, [&](pid_t) {
    ++calls;
    watch.reset();
    loop_.Stop();
  });
  ASSERT_EQ(std::raise(SIGUSR1), 0);
  Run();
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, SignalsHaveTheirDefaultEffectAfterTheLastWatch) {
  struct sigaction action = {};
  {
    const auto first = loop_.OnSignal(SIGUSR2, [](pid_t) {});
    auto second = loop_.OnSignal(SIGUSR2, [](pid_t) {});
    second.reset();
    ASSERT_EQ(::sigaction(SIGUSR2, nullptr, &action), 0);
    EXPECT_NE(action.sa_handler, SIG_DFL);
  }
  ASSERT_EQ(::sigaction(SIGUSR2, nullptr, &action), 0);
  EXPECT_EQ(action.sa_handler, SIG_DFL);
}

// SIGWINCH, since the signal stays held: other tests of this process need the default effects of
// SIGUSR1 and SIGUSR2.
TEST_F(EventLoopTest, AHeldSignalWaitsForItsTask) {
  HoldSignal(SIGWINCH);
  HoldSignal(SIGWINCH);
  ASSERT_EQ(std::raise(SIGWINCH), 0);
  int calls = 0;
  {
    const auto watch = loop_.OnSignal(SIGWINCH, [&](pid_t sender) {
      EXPECT_EQ(sender, ::getpid());
      ++calls;
      loop_.Stop();
    });
    Run();
  }
  EXPECT_EQ(calls, 1);
  struct sigaction action = {};
  ASSERT_EQ(::sigaction(SIGWINCH, nullptr, &action), 0);
  EXPECT_NE(action.sa_handler, SIG_DFL) << "it is held when the watch has ended, too";
  const auto next = loop_.OnSignal(SIGWINCH, [&](pid_t) { ++calls; });
  loop_.Post([this] { loop_.Stop(); });
  Run();
  EXPECT_EQ(calls, 1) << "what the first watch got does not come again";
}

TEST_F(EventLoopTest, PostsOfOneThreadRunInTheirOrder) {
  constexpr size_t kThreads = 4;
  constexpr int kPosts = 2000;
  std::array<int, kThreads> next{};
  size_t finished = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kPosts; ++i) {
        loop_.Post([&, t, i] {
          EXPECT_EQ(next[t]++, i);
          if (i + 1 == kPosts && ++finished == kThreads) loop_.Stop();
        });
      }
    });
  }
  Run();
  for (auto& thread : threads)
    thread.join();
  EXPECT_THAT(next, testing::Each(kPosts));
}

TEST_F(EventLoopTest, TaskThatPostsItselfDoesNotStarveSockets) {
  const SocketPair pair;
  std::function<void()> again = [&] { loop_.Post(again); };
  loop_.Post(again);
  std::string received;
  const auto watch = loop_.Watch(pair.near.get(), EventLoop::kReadable, [&](int) {
    received = pair.Receive();
    loop_.Stop();
  });
  pair.Send("served");
  Run();
  EXPECT_EQ(received, "served");
}

TEST_F(EventLoopTest, PostsOfTheLoopAndOfOthersShareOneOrder) {
  std::vector<int> order;
  const auto timer = loop_.After(milliseconds(0), [&] {
    loop_.Post([&] { order.push_back(1); });
    std::thread([&] { loop_.Post([&] { order.push_back(2); }); }).join();
    loop_.Post([&] {
      order.push_back(3);
      loop_.Stop();
    });
  });
  Run();
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST_F(EventLoopTest, StopFromAnotherThreadEndsAnIdleLoop) {
  bool running = false;
  std::thread other;
  loop_.Post([&] {
    running = true;
    other = std::thread([&] { loop_.Stop(); });
  });
  Run();
  other.join();
  EXPECT_TRUE(running);
}

TEST_F(EventLoopTest, RunsAgainAfterStop) {
  int runs = 0;
  for (int i = 0; i < 3; ++i) {
    loop_.Post([&] {
      ++runs;
      loop_.Stop();
    });
    Run();
  }
  EXPECT_EQ(runs, 3);
}

TEST_F(EventLoopTest, IdleLoopDoesNotWakeUp) {
  const SocketPair pair;
  const auto watch = loop_.Watch(pair.near.get(), EventLoop::kReadable, [](int) {});
  long before = 0;
  long after = 0;
  const auto first = loop_.After(milliseconds(10), [&] { before = Sleeps(); });
  const auto last = loop_.After(milliseconds(210), [&] {
    after = Sleeps();
    loop_.Stop();
  });
  Run();
  // One sleep between the two timers; the second allows for the last partial millisecond.
  EXPECT_LE(after - before, 2);
}

TEST(EventLoopLifetimeTest, HandleMayOutliveItsLoop) {
  const SocketPair pair;
  EventLoop::HandlePtr watch;
  EventLoop::HandlePtr timer;
  const auto owned = std::make_shared<int>(1);
  {
    EventLoop loop;
    watch = loop.Watch(pair.near.get(), EventLoop::kReadable, [owned](int) {});
    timer = loop.Every(milliseconds(1), [owned] {});
    EXPECT_EQ(owned.use_count(), 3);
  }
  // The loop let go of everything that it held for them.
  EXPECT_EQ(owned.use_count(), 1);
  EventLoop::SetEvents(*watch, EventLoop::kWritable);
}

TEST(EventLoopLifetimeTest, PostsThatNeverRanAreDropped) {
  const auto owned = std::make_shared<int>(1);
  bool ran = false;
  {
    EventLoop loop;
    auto timer = std::make_shared<EventLoop::HandlePtr>(loop.After(milliseconds(1), [] {}));
    loop.Post([&ran, owned, timer] { ran = true; });
  }
  EXPECT_FALSE(ran);
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(EventLoopDeathTest, WatchingAClosedFdIsABug) {
  EXPECT_DEATH(
      {
        EventLoop loop;
        loop.Watch(-1, EventLoop::kReadable, [](int) {});
      },
      "watching an fd");
}

}  // namespace
}  // namespace resmgr
