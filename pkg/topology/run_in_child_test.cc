// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/run_in_child.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <signal.h>

namespace resmgr {
namespace {

Status Abort() {
  std::abort();
}

TEST(RunInChildTest, WorkThatEndsWellIsSafe) {
  int changed = 0;
  const auto work = [&changed] {
    changed = 1;
    return OkStatus();
  };
  EXPECT_TRUE(RunInChild(work).ok());
  EXPECT_EQ(changed, 0) << "the work ran in this process";
}

TEST(RunInChildTest, AnErrorComesBackWithItsText) {
  const Status status = RunInChild([] { return ResourceExhausted("no {} left", "tea"); });
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(status), "no tea left");
  const Status longest = RunInChild([] { return NotFound("{}", std::string(100'000, 'x')); });
  EXPECT_EQ(longest.code(), StatusCode::kNotFound);
}

TEST(RunInChildTest, WorkThatDiesIsReported) {
  EXPECT_EQ(RunInChild(Abort).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(RunInChild([] {
              raise(SIGSEGV);
              return OkStatus();
            }).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(RunInChild([]() -> Status { std::_Exit(0); }).code(), StatusCode::kInvalidArgument);
}

TEST(RunInChildTest, WorkThatTakesTooLongIsNoCrash) {
  const Status late = RunInChild([] {
    raise(SIGALRM);
    return OkStatus();
  });
  EXPECT_EQ(late.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(late), "the library that reads it needs more than 5 seconds for it");
  EXPECT_EQ(Message(RunInChild(Abort)), "it crashes the library that reads it");
}

TEST(RunInChildTest, WorksWhereChildrenAreIgnored) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  EXPECT_TRUE(RunInChild(OkStatus).ok());
  EXPECT_EQ(RunInChild(Abort).code(), StatusCode::kInvalidArgument);
  signal(SIGCHLD, before);
}

TEST(RunInChildTest, BlockedSignalsDoNotKeepADyingChildAlive) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  EXPECT_EQ(RunInChild([] {
              raise(SIGALRM);
              return OkStatus();
            }).code(),
            StatusCode::kInvalidArgument);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace resmgr
