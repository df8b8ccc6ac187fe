// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/thread.h"

#include <array>
#include <future>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

namespace resmgr {
namespace {

// The event loop starts threads, and must not open files. To name another thread means to open one
// in /proc.
TEST(ThreadTest, IsStartedAndNamedWithoutAFile) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  std::promise<void> started;
  std::string name;
  std::thread thread = StartThread(
      "some-work", [&name, may_run = std::make_shared<std::future<void>>(started.get_future())] {
        may_run->wait();
        std::array<char, 16> text{};
        pthread_getname_np(pthread_self(), text.data(), text.size());
        name = text.data();
      });
  started.set_value();
  thread.join();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(name, "some-work");
}

TEST(AnswerWithinTest, GivesTheAnswer) {
  const auto answer =
      AnswerWithin<std::string>(std::chrono::seconds(60), "ask", [] { return "here"; });
  EXPECT_EQ(answer, "here");
}

TEST(AnswerWithinTest, LeavesWhatHangsBehind) {
  const auto never = std::make_shared<std::promise<void>>();
  const auto ended = std::make_shared<std::promise<void>>();
  const auto answer = AnswerWithin<int>(std::chrono::milliseconds(1), "ask", [never, ended] {
    never->get_future().wait();
    ended->set_value();
    return 1;
  });
  EXPECT_EQ(answer, std::nullopt);
  never->set_value();
  ended->get_future().wait();
}

}  // namespace
}  // namespace resmgr
