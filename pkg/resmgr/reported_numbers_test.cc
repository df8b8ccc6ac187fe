// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/reported_numbers.h"

#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

LinuxResources Numbers(int64_t shares, int64_t quota) {
  LinuxResources resources;
  resources.cpu_shares = shares;
  resources.cpu_quota = quota;
  resources.cpu_period = 100'000;
  return resources;
}

// A container with half a CPU, whose daemon was killed while it was asked to have more.
class AskedUpdateTest : public testing::Test {
 protected:
  AskedUpdateTest() {
    saved_.requested = Numbers(512, 50'000);
    saved_.asked.emplace();
    saved_.asked->requested = Numbers(1024, 100'000);
  }
  NumbersNews Judge(int64_t shares, int64_t quota) {
    const LinuxResources in_force = Numbers(shares, quota);
    const Requirements needs;
    return JudgeNumbers({.saved = saved_,
                         .qos = QosClass::kBurstable,
                         .in_force = in_force,
                         .needs_in_force = needs,
                         .crowded = {},
                         .called = false,
                         .others_set = others_set_});
  }

  SavedContainer saved_;
  bool others_set_ = false;
};

TEST_F(AskedUpdateTest, HasArrivedWhereItsNumbersAreInForce) {
  EXPECT_EQ(Judge(1024, 100'000), NumbersNews::kAsked);
  EXPECT_EQ(Judge(512, 50'000), NumbersNews::kNone);
  EXPECT_EQ(Judge(1024, -1), NumbersNews::kAsked) << "the policy lifts quotas";
  EXPECT_EQ(Judge(1024, 70'000), NumbersNews::kAsked) << "and then another program came";
}

TEST_F(AskedUpdateTest, HasNotArrivedWhereOnlyAnotherProgramsQuotaDiffers) {
  EXPECT_EQ(Judge(512, 70'000), NumbersNews::kNone);
  EXPECT_EQ(Judge(512, -1), NumbersNews::kNone);
  // An update of the quota alone.
  saved_.asked->requested = Numbers(512, 100'000);
  EXPECT_EQ(Judge(512, 70'000), NumbersNews::kNone);
  EXPECT_EQ(Judge(512, 100'000), NumbersNews::kAsked);
}

// The disk was behind: later updates were not saved.
TEST_F(AskedUpdateTest, IsNotTheLastWhereOtherSharesAreInForce) {
  EXPECT_EQ(Judge(2048, 200'000), NumbersNews::kUpdated);
  EXPECT_EQ(Judge(2048, -1), NumbersNews::kUpdated) << "the policy lifts quotas";
  // An update of the quota alone.
  saved_.asked->requested = Numbers(512, 100'000);
  EXPECT_EQ(Judge(2048, -1), NumbersNews::kUpdated);
}

// These cases cannot be distinguished: the values in force may be the update's, as plugins changed
// them.
TEST_F(AskedUpdateTest, CountsAsArrivedWhereThatCannotBeToldApart) {
  saved_.asked->requested = Numbers(512, 100'000);
  EXPECT_EQ(Judge(512, -1), NumbersNews::kAsked) << "the policy may have lifted it";
  saved_.asked->requested = Numbers(1024, 100'000);
  others_set_ = true;
  EXPECT_EQ(Judge(512, 70'000), NumbersNews::kAsked) << "stages may have changed it";
  others_set_ = false;
  saved_.placement.cpu_shares = 512;
  EXPECT_EQ(Judge(512, -1), NumbersNews::kAsked) << "the policy decides the shares";
}

}  // namespace
}  // namespace resmgr
