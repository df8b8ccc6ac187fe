// SPDX-License-Identifier: Apache-2.0
#include "test/support/containerd/child_process.h"

#include <chrono>
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr seconds kPatience{10};

class ChildProcessTest : public ::testing::Test {
 protected:
  std::filesystem::path log() const { return directory_.File("log"); }

  std::unique_ptr<ChildProcess> Start(const std::vector<std::string>& argv) const {
    auto process = ChildProcess::Start(argv, log());
    EXPECT_TRUE(process.ok()) << Describe(process.status());
    return process.ok() ? *std::move(process) : nullptr;
  }

 private:
  TempDir directory_;
};

TEST_F(ChildProcessTest, TellsTheExitStatusAgainAndAgain) {
  const auto process = Start({"sh", "-c", "exit 3"});
  EXPECT_EQ(process->Wait(kPatience).value_or(-1), 3);
  EXPECT_EQ(process->Wait(milliseconds(0)).value_or(-1), 3);
  EXPECT_FALSE(process->Running());
}

TEST_F(ChildProcessTest, TellsTheSignalThatEndedIt) {
  const auto process = Start({"sleep", "1000"});
  EXPECT_TRUE(process->Running());
  process->Signal(SIGKILL);
  EXPECT_EQ(process->Wait(kPatience).value_or(-1), 128 + SIGKILL);
}

TEST_F(ChildProcessTest, WaitEndsAtItsDeadline) {
  const auto process = Start({"sleep", "1000"});
  EXPECT_EQ(process->Wait(milliseconds(1)).status().code(), StatusCode::kDeadlineExceeded);
}

TEST_F(ChildProcessTest, KillsWhatStillRunsWhenDestroyed) {
  auto process = Start({"sleep", "1000"});
  const pid_t pid = process->pid();
  process.reset();
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST_F(ChildProcessTest, ShowsAMissingProgramAsAShellDoes) {
  EXPECT_EQ(Start({"no-such-program"})->Wait(kPatience).value_or(-1), 127);
}

TEST_F(ChildProcessTest, FailureOfAProgramCarriesWhatItPrinted) {
  const Status failed =
      RunProgram({"sh", "-c", "echo out; echo err >&2; exit 1"}, log(), kPatience);
  EXPECT_EQ(failed.code(), StatusCode::kInternal);
  EXPECT_THAT(std::string(Message(failed)), HasSubstr("out\nerr\n"));
  EXPECT_TRUE(RunProgram({"true"}, log(), kPatience).ok());
}

TEST_F(ChildProcessTest, WaitUntilReturnsWhenTheConditionHolds) {
  int asked = 0;
  EXPECT_TRUE(WaitUntil("third time", kPatience, [&] { return ++asked == 3; }).ok());
  EXPECT_EQ(asked, 3);
  const Status late = WaitUntil("never", milliseconds(1), [] { return false; });
  EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(Message(late)), HasSubstr("never"));
}

}  // namespace
}  // namespace resmgr::test
