// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/asked_numbers.h"

#include <memory>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

constexpr int64_t kPeriod = 100'000;

class AskedNumbersTest : public testing::Test {
 protected:
  AskedNumbersTest() {
    record_.container.requested.cpu_shares = 1536;
    record_.container.requested.cpu_quota = 150'000;
    record_.container.requested.cpu_period = kPeriod;
  }
  CpuNumbers Shown(CpuNumbers reported) const {
    ShowAsked(record_, reported);
    return reported;
  }
  Placement& placement() { return record_.container.placement; }

  const CpuNumbers asked_{.shares = 1536, .quota = 150'000, .period = kPeriod};
  PodRecord pod_;
  ContainerRecord record_{pod_};
};

TEST_F(AskedNumbersTest, NothingChangesWhereNothingElseWasSent) {
  EXPECT_FALSE(SentOtherNumbers(record_));
  const CpuNumbers reported{.shares = 7, .quota = -1, .period = 8};
  EXPECT_EQ(Shown(reported), reported);
  EXPECT_EQ(Shown(asked_), asked_);
}

TEST_F(AskedNumbersTest, ThePolicysNumbersBecomeTheClients) {
  placement().cpu_quota = -1;
  placement().cpu_shares = 512;
  EXPECT_TRUE(SentOtherNumbers(record_));
  EXPECT_EQ(Shown({.shares = 512, .quota = -1, .period = kPeriod}), asked_);
  EXPECT_EQ(Shown({.shares = 512}), asked_) << "a runtime that reports no lifted limit";
  // 512 shares are a weight of 20, which is 500 shares.
  EXPECT_EQ(Shown({.shares = 500, .quota = 0, .period = kPeriod}), asked_);
}

TEST_F(AskedNumbersTest, WhatSomebodyElseSetIsShown) {
  placement().cpu_quota = -1;
  placement().cpu_shares = 512;
  const CpuNumbers others{.shares = 4000, .quota = 70'000, .period = kPeriod};
  EXPECT_EQ(Shown(others), others);
  const CpuNumbers shares_alone{.shares = 4000, .quota = -1, .period = kPeriod};
  EXPECT_EQ(Shown(shares_alone), (CpuNumbers{.shares = 4000, .quota = 150'000, .period = kPeriod}));
}

TEST_F(AskedNumbersTest, NumbersOfLaterStagesAreNotShown) {
  record_.container.set_later.cpu_quota = 300'000;
  record_.container.set_later.cpu_period = 50'000;
  EXPECT_TRUE(SentOtherNumbers(record_));
  EXPECT_EQ(Shown({.shares = 1536, .quota = 300'000, .period = 50'000}), asked_);
  const CpuNumbers others{.shares = 1536, .quota = 300'000, .period = 25'000};
  EXPECT_EQ(Shown(others), others) << "another limit";
}

TEST_F(AskedNumbersTest, NoLimitIsShownInPlaceOfAStagesLimit) {
  record_.container.requested.cpu_quota.reset();
  record_.container.set_later.cpu_quota = 30'000;
  EXPECT_EQ(Shown({.shares = 1536, .quota = 30'000, .period = kPeriod}),
            (CpuNumbers{.shares = 1536, .quota = {}, .period = kPeriod}));
}

TEST_F(AskedNumbersTest, LiftingWhatIsNotThereIsNoChange) {
  record_.container.requested.cpu_quota.reset();
  placement().cpu_quota = -1;
  EXPECT_FALSE(SentOtherNumbers(record_));
}

TEST_F(AskedNumbersTest, SharesThatAFileSaysAreShownAsShares) {
  EXPECT_EQ(Shown({.quota = 150'000, .period = kPeriod, .shares_in_file = true}), asked_);
  const CpuNumbers both{
      .shares = 1536, .quota = 150'000, .period = kPeriod, .shares_in_file = true};
  EXPECT_EQ(Shown(both), both) << "as the client itself asked for";
}

TEST_F(AskedNumbersTest, UntilAnUpdateIsAnsweredTheRequestBeforeItCounts) {
  placement().cpu_quota = -1;
  record_.confirmed = std::make_unique<ConfirmedRequest>(
      ConfirmedRequest{record_.container.requested, {}, placement()});
  record_.container.requested.cpu_quota = 50'000;
  record_.container.requested.cpu_shares = 512;
  EXPECT_EQ(Shown({.shares = 1536, .quota = -1, .period = kPeriod}), asked_);
  // It shares CPUs by now, and the runtime has carried that out.
  placement() = {};
  const CpuNumbers carried_out{.shares = 512, .quota = 50'000, .period = kPeriod};
  EXPECT_EQ(Shown(carried_out), carried_out);
  placement().cpu_quota = 60'000;
  EXPECT_EQ(Shown({.shares = 512, .quota = 60'000, .period = kPeriod}), carried_out);
}

TEST_F(AskedNumbersTest, AContainerThatEndedIsShownAsBefore) {
  record_.former = std::make_unique<Placement>();
  record_.former->cpu_quota = -1;
  EXPECT_TRUE(SentOtherNumbers(record_));
  EXPECT_EQ(Shown({.shares = 1536, .quota = -1, .period = kPeriod}), asked_);
}

}  // namespace
}  // namespace resmgr
