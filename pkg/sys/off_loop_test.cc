// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/off_loop.h"

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/wait.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

constexpr seconds kPatience{30};

// Work that hangs until it is released; it owns all that it uses, as all work must.
struct Hang {
  Hang() : go(promise.get_future().share()) {}

  OffLoop::Work Work(EventLoop::Task task = nullptr) const {
    return [go = go, task = std::move(task)] {
      go.wait();
      return task;
    };
  }

  std::promise<void> promise;
  std::shared_future<void> go;
};

TEST(OffLoopTest, RunsElsewhereAndComesBackToTheLoop) {
  EventLoop loop;
  OffLoop off(loop, "test", kPatience);
  const std::thread::id here = std::this_thread::get_id();
  std::thread::id worked;
  std::thread::id returned;
  ASSERT_TRUE(off.Run([&]() -> EventLoop::Task {
                   worked = std::this_thread::get_id();
                   return [&] {
                     returned = std::this_thread::get_id();
                     loop.Stop();
                   };
                 })
                  .ok());
  loop.Run();
  EXPECT_TRUE(worked != here);
  EXPECT_TRUE(returned == here);
}

TEST(OffLoopTest, OfWhatWaitsOnlyTheLatestIsDone) {
  EventLoop loop;
  OffLoop off(loop, "test", kPatience);
  Hang hang;
  std::vector<int> done;
  ASSERT_TRUE(off.Run(hang.Work([&done] { done.push_back(0); })).ok());
  for (int i = 1; i <= 100; ++i) {
    ASSERT_TRUE(off.Run([&, i]() -> EventLoop::Task {
                     return [&, i] {
                       done.push_back(i);
                       loop.Stop();
                     };
                   })
                    .ok());
  }
  EXPECT_TRUE(off.busy());
  hang.promise.set_value();
  loop.Run();
  EXPECT_THAT(done, ElementsAre(0, 100));
}

// A second look that begins before the loop has taken the first one's result would not know of it.
TEST(OffLoopTest, IsBusyUntilTheLoopHasTakenTheResult) {
  EventLoop loop;
  OffLoop off(loop, "test", kPatience);
  bool busy_in_task = true;
  auto owned = std::make_shared<char>();
  const std::weak_ptr<char> work = owned;
  ASSERT_TRUE(off.Run([&, owned = std::move(owned)]() -> EventLoop::Task {
                   return [&] {
                     busy_in_task = off.busy();
                     loop.Stop();
                   };
                 })
                  .ok());
  ASSERT_TRUE(test::Eventually([&] { return work.expired(); }));
  // The thread has done its work; give it time to note that.
  const auto end = std::chrono::steady_clock::now() + milliseconds(50);
  while (std::chrono::steady_clock::now() < end)
    ASSERT_TRUE(off.busy());
  loop.Run();
  EXPECT_FALSE(busy_in_task);
  EXPECT_FALSE(off.busy());
}

TEST(OffLoopTest, TheEndWaitsForWorkThatEnds) {
  EventLoop loop;
  std::atomic<int> done = 0;
  {
    OffLoop off(loop, "test", kPatience);
    ASSERT_TRUE(off.Run([&]() -> EventLoop::Task {
                     ++done;
                     return nullptr;
                   })
                    .ok());
    ASSERT_TRUE(off.Run([&]() -> EventLoop::Task {
                     ++done;
                     return nullptr;
                   })
                    .ok());
  }
  EXPECT_GE(done, 1);
}

TEST(OffLoopTest, TheEndDoesNotWaitForWorkThatHangs) {
  EventLoop loop;
  Hang hang;
  const auto ran = std::make_shared<std::atomic<bool>>(false);
  const auto begin = std::chrono::steady_clock::now();
  {
    OffLoop off(loop, "test", milliseconds(20));
    ASSERT_TRUE(off.Run(hang.Work([ran] { *ran = true; })).ok());
    ASSERT_TRUE(off.Run([ran]() -> EventLoop::Task {
                     *ran = true;
                     return nullptr;
                   })
                    .ok());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
  hang.promise.set_value();
  test::RunFor(loop, milliseconds(50));
  EXPECT_FALSE(*ran) << "neither what follows nor what waited";
}

}  // namespace
}  // namespace resmgr
