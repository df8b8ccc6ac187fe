// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/look_again_timers.h"

#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/sys/manual_clock.h"

namespace resmgr {
namespace {

using std::chrono::seconds;

class LookAgainTimersTest : public testing::Test {
 protected:
  ContainerRecord Record(ContainerState state) {
    ContainerRecord record(pod_);
    record.container.key = ContainerKey{1};
    record.container.state = state;
    record.container.placement.look_again_after = seconds(60);
    return record;
  }

  PodRecord pod_;
  ManualClock clock_;
  std::vector<ContainerKey> due_;
  LookAgainTimers timers_{clock_, [this](ContainerKey key) { due_.push_back(key); }};
};

TEST_F(LookAgainTimersTest, AContainerIsDueOnceAfterItsTime) {
  const ContainerRecord record = Record(ContainerState::kRunning);
  timers_.Follow(record);
  clock_.Advance(seconds(30));
  timers_.Follow(record);
  EXPECT_EQ(clock_.timers(), 1U);
  clock_.Advance(std::chrono::milliseconds(29'999));
  EXPECT_TRUE(due_.empty());
  clock_.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(due_, std::vector<ContainerKey>{ContainerKey{1}});
  clock_.Advance(seconds(3600));
  EXPECT_EQ(due_.size(), 1U);
}

TEST_F(LookAgainTimersTest, TheTimeCountsFromTheStart) {
  ContainerRecord record = Record(ContainerState::kRunning);
  record.started_at = clock_.Now() - seconds(59);
  timers_.Follow(record);
  clock_.Advance(seconds(1));
  EXPECT_EQ(due_.size(), 1U);
}

TEST_F(LookAgainTimersTest, ATimeThatPassedIsDueAtOnceButNotWithinTheCall) {
  ContainerRecord record = Record(ContainerState::kRunning);
  record.started_at = clock_.Now() - seconds(3600);
  timers_.Follow(record);
  EXPECT_TRUE(due_.empty());
  clock_.Advance(seconds(0));
  EXPECT_EQ(due_.size(), 1U);
}

TEST_F(LookAgainTimersTest, ARuntimeClockInTheFutureDelaysNothing) {
  ContainerRecord record = Record(ContainerState::kRunning);
  record.started_at = clock_.Now() + seconds(3600);
  timers_.Follow(record);
  clock_.Advance(seconds(60));
  EXPECT_EQ(due_.size(), 1U);
}

TEST_F(LookAgainTimersTest, TheTimerWaitsForTheStart) {
  ContainerRecord record = Record(ContainerState::kCreated);
  timers_.Follow(record);
  clock_.Advance(seconds(100));
  record.container.state = ContainerState::kRunning;
  record.started_at = clock_.Now();
  timers_.Follow(record);
  clock_.Advance(seconds(59));
  EXPECT_TRUE(due_.empty());
  clock_.Advance(seconds(1));
  EXPECT_EQ(due_.size(), 1U);
}

TEST_F(LookAgainTimersTest, ATimerEndsWithItsContainerOrPlacement) {
  timers_.Follow(Record(ContainerState::kRunning));
  timers_.Forget(ContainerKey{1});
  EXPECT_EQ(clock_.timers(), 0U);
  timers_.Follow(Record(ContainerState::kRunning));
  timers_.Follow(Record(ContainerState::kExited));
  EXPECT_EQ(clock_.timers(), 0U);
  ContainerRecord record = Record(ContainerState::kRunning);
  timers_.Follow(record);
  record.container.placement.look_again_after = seconds(0);
  timers_.Follow(record);
  clock_.Advance(seconds(100));
  EXPECT_TRUE(due_.empty());
}

}  // namespace
}  // namespace resmgr
