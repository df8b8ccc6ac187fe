// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/cold_starts.h"

#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/resmgr/manual_clock.h"

namespace resmgr {
namespace {

using std::chrono::seconds;

class ColdStartsTest : public testing::Test {
 protected:
  ContainerRecord Record(ContainerState state) {
    ContainerRecord record(pod_);
    record.container.key = ContainerKey{1};
    record.container.state = state;
    record.container.placement.cold_start = seconds(60);
    return record;
  }

  PodRecord pod_;
  ManualClock clock_;
  std::vector<ContainerKey> over_;
  ColdStarts cold_starts_{clock_, [this](ContainerKey key) { over_.push_back(key); }};
};

TEST_F(ColdStartsTest, AreOverOnceAfterTheirTime) {
  const ContainerRecord record = Record(ContainerState::kRunning);
  cold_starts_.Follow(record);
  clock_.Advance(seconds(30));
  cold_starts_.Follow(record);
  EXPECT_EQ(clock_.timers(), 1U);
  clock_.Advance(std::chrono::milliseconds(29'999));
  EXPECT_TRUE(over_.empty());
  clock_.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(over_, std::vector<ContainerKey>{ContainerKey{1}});
  clock_.Advance(seconds(3600));
  EXPECT_EQ(over_.size(), 1U);
}

TEST_F(ColdStartsTest, CountFromTheStart) {
  ContainerRecord record = Record(ContainerState::kRunning);
  record.started_at = clock_.Now() - seconds(59);
  cold_starts_.Follow(record);
  clock_.Advance(seconds(1));
  EXPECT_EQ(over_.size(), 1U);
}

TEST_F(ColdStartsTest, ThatPassedAreOverAtOnceButNotWithinTheCall) {
  ContainerRecord record = Record(ContainerState::kRunning);
  record.started_at = clock_.Now() - seconds(3600);
  cold_starts_.Follow(record);
  EXPECT_TRUE(over_.empty());
  clock_.Advance(seconds(0));
  EXPECT_EQ(over_.size(), 1U);
}

TEST_F(ColdStartsTest, NeverTakeLongerThanTheyShouldWhateverTheRuntimesClockSays) {
  ContainerRecord record = Record(ContainerState::kRunning);
  record.started_at = clock_.Now() + seconds(3600);
  cold_starts_.Follow(record);
  clock_.Advance(seconds(60));
  EXPECT_EQ(over_.size(), 1U);
}

TEST_F(ColdStartsTest, WaitForTheStart) {
  ContainerRecord record = Record(ContainerState::kCreated);
  cold_starts_.Follow(record);
  clock_.Advance(seconds(100));
  record.container.state = ContainerState::kRunning;
  record.started_at = clock_.Now();
  cold_starts_.Follow(record);
  clock_.Advance(seconds(59));
  EXPECT_TRUE(over_.empty());
  clock_.Advance(seconds(1));
  EXPECT_EQ(over_.size(), 1U);
}

TEST_F(ColdStartsTest, EndWithTheContainerOrItsPlacement) {
  cold_starts_.Follow(Record(ContainerState::kRunning));
  cold_starts_.Forget(ContainerKey{1});
  EXPECT_EQ(clock_.timers(), 0U);
  cold_starts_.Follow(Record(ContainerState::kRunning));
  cold_starts_.Follow(Record(ContainerState::kExited));
  EXPECT_EQ(clock_.timers(), 0U);
  ContainerRecord record = Record(ContainerState::kRunning);
  cold_starts_.Follow(record);
  record.container.placement.cold_start = seconds(0);
  cold_starts_.Follow(record);
  clock_.Advance(seconds(100));
  EXPECT_TRUE(over_.empty());
}

}  // namespace
}  // namespace resmgr
