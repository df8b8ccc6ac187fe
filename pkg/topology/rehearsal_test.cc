// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/rehearsal.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <signal.h>

namespace resmgr {
namespace {

Status Abort() {
  std::abort();
}

TEST(RehearsalTest, WorkThatEndsWellIsSafe) {
  int changed = 0;
  const auto work = [&changed] {
    changed = 1;
    return OkStatus();
  };
  EXPECT_TRUE(Rehearse(work).ok());
  EXPECT_EQ(changed, 0) << "the work ran in this process";
}

TEST(RehearsalTest, AnErrorComesBackWithItsText) {
  const Status status = Rehearse([] { return ResourceExhausted("no {} left", "tea"); });
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(status), "no tea left");
  const Status longest = Rehearse([] { return NotFound("{}", std::string(100'000, 'x')); });
  EXPECT_EQ(longest.code(), StatusCode::kNotFound);
}

TEST(RehearsalTest, WorkThatDiesIsReported) {
  EXPECT_EQ(Rehearse(Abort).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Rehearse([] {
              raise(SIGSEGV);
              return OkStatus();
            }).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Rehearse([]() -> Status { std::_Exit(0); }).code(), StatusCode::kInvalidArgument);
}

TEST(RehearsalTest, WorksWhereChildrenAreIgnored) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  EXPECT_TRUE(Rehearse(OkStatus).ok());
  EXPECT_EQ(Rehearse(Abort).code(), StatusCode::kInvalidArgument);
  signal(SIGCHLD, before);
}

TEST(RehearsalTest, BlockedSignalsDoNotKeepADyingChildAlive) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  EXPECT_EQ(Rehearse([] {
              raise(SIGALRM);
              return OkStatus();
            }).code(),
            StatusCode::kInvalidArgument);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace resmgr
