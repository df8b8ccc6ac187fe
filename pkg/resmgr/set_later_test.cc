// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/set_later.h"

#include <cstdint>
#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/model/resources_annotation.h"
#include "pkg/resmgr/reported_values.h"

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

RuntimeContainer Reported(int64_t shares_milli, int64_t quota) {
  RuntimeContainer container;
  container.name = "main";
  container.resources.cpu_shares = SharesFromMilliCpu(MilliCpu{shares_milli});
  container.resources.cpu_quota = quota;
  container.resources.cpu_period = kDefaultCpuPeriod;
  return container;
}

Pod PodOf(QosClass qos) {
  Pod pod;
  pod.qos = qos;
  return pod;
}

// One CPU of its own and 500m of the shared ones: a policy weighs it by these 500m.
TEST(NeedsTest, TheQuotaOfAGuaranteedContainerTellsWhatItsSharesDoNot) {
  const RuntimeContainer mixed = Reported(500, QuotaFromMilliCpu(MilliCpu{1500}));
  const Requirements needs = ReportedNeeds(PodOf(QosClass::kGuaranteed), mixed, Bytes{});
  EXPECT_EQ(needs.cpu_request.value, 1500);
  EXPECT_EQ(needs.cpu_limit.value, 1500);
  EXPECT_EQ(ReportedRequest(mixed, needs).cpu_shares, SharesFromMilliCpu(MilliCpu{1500}));
}

TEST(NeedsTest, ALiftedQuotaLeavesTheShares) {
  const RuntimeContainer exclusive = Reported(2000, -1);
  const Requirements needs = ReportedNeeds(PodOf(QosClass::kGuaranteed), exclusive, Bytes{});
  EXPECT_EQ(needs.cpu_request.value, 2000);
  EXPECT_EQ(ReportedRequest(exclusive, needs), exclusive.resources);
}

TEST(NeedsTest, TheLeastQuotaIsNoRequest) {
  const RuntimeContainer tiny = Reported(5, QuotaFromMilliCpu(MilliCpu{5}));
  EXPECT_EQ(ReportedNeeds(PodOf(QosClass::kGuaranteed), tiny, Bytes{}).cpu_request.value, 5);
}

TEST(NeedsTest, ALimitAboveTheRequestIsNoRequest) {
  const RuntimeContainer burstable = Reported(500, QuotaFromMilliCpu(MilliCpu{4000}));
  const Requirements needs = ReportedNeeds(PodOf(QosClass::kBurstable), burstable, Bytes{});
  EXPECT_EQ(needs.cpu_request.value, 500);
  EXPECT_EQ(needs.cpu_limit.value, 4000);
  EXPECT_EQ(ReportedRequest(burstable, needs), burstable.resources);
}

TEST(NeedsTest, AnAnnotationCountsUntilTheSharesSaySomethingElse) {
  Pod pod = PodOf(QosClass::kBurstable);
  pod.annotations.Set(std::string(kResourcesAnnotation),
                      R"({"containers":{"main":{"requests":{"cpu":"1m"}}}})");
  EXPECT_EQ(ReportedNeeds(pod, Reported(1, -1), Bytes{}).cpu_request.value, 1);
  EXPECT_EQ(ReportedNeeds(pod, Reported(700, -1), Bytes{}).cpu_request.value, 700) << "resized";
}

// From 256 CPUs on all shares are the same.
TEST(NeedsTest, LargeRequestsAreToldByTheQuotaOrAsTheyWereBefore) {
  Pod pod = PodOf(QosClass::kGuaranteed);
  pod.annotations.Set(
      std::string(kResourcesAnnotation),
      R"({"containers":{"main":{"limits":{"cpu":"300"},"requests":{"cpu":"300"}}}})");
  const auto request = [&pod](int64_t limit) {
    const int64_t quota = limit == 0 ? kNoQuota : QuotaFromMilliCpu(MilliCpu{limit});
    const Requirements needs = ReportedNeeds(pod, Reported(300'000, quota), Bytes{});
    EXPECT_TRUE(pod.qos != QosClass::kGuaranteed || needs.cpu_limit == needs.cpu_request);
    return needs.cpu_request.value;
  };
  EXPECT_EQ(request(0), 300'000);
  EXPECT_EQ(request(320'000), 320'000) << "grown";
  EXPECT_EQ(request(260'000), 260'000) << "shrunk";
  pod.qos = QosClass::kBurstable;
  EXPECT_EQ(request(0), 300'000);
  EXPECT_EQ(request(400'000), 300'000);
  EXPECT_EQ(request(280'000), 280'000) << "no more than the limit";
}

TEST(NeedsTest, ALargeResizeLeavesTheRequestThatIsKnown) {
  const auto after = [](int64_t known, int64_t limit, QosClass qos) {
    const Requirements needs{{known}, {known}, {}, {}};
    const LinuxResources now = Reported(400'000, QuotaFromMilliCpu(MilliCpu{limit})).resources;
    return NeedsAfter(needs, {}, now, qos, Bytes{}).cpu_request.value;
  };
  EXPECT_EQ(after(300'000, 400'000, QosClass::kBurstable), 300'000);
  EXPECT_EQ(after(300'000, 0, QosClass::kBurstable), 300'000);
  EXPECT_EQ(after(300'000, 270'000, QosClass::kBurstable), 270'000);
  EXPECT_EQ(after(2000, 400'000, QosClass::kBurstable), 256'000);
  EXPECT_EQ(after(300'000, 400'000, QosClass::kGuaranteed), 400'000);
  EXPECT_EQ(after(300'000, 0, QosClass::kGuaranteed), 300'000);
}

// Kubelets name all values in each update.
TEST(NeedsTest, WhatAnUpdateRepeatsIsNotEstimatedAnew) {
  Requirements needs{{1}, {2000}, {Bytes{5}}, {Bytes{9}}};
  LinuxResources before = Reported(1, QuotaFromMilliCpu(MilliCpu{2000})).resources;
  before.memory_limit = 9;
  before.oom_score_adj = 900;
  LinuxResources after = before;
  EXPECT_EQ(NeedsAfter(needs, before, after, QosClass::kBurstable, Bytes{1 << 20}), needs);
  after.cpu_shares = 1024;
  const Requirements cpu = NeedsAfter(needs, before, after, QosClass::kBurstable, Bytes{1 << 20});
  EXPECT_EQ(cpu.cpu_request.value, 1000);
  EXPECT_EQ(cpu.memory_request.value, 5);
  EXPECT_FALSE(cpu.memory_estimated);
  after.memory_limit = 0;
  const Requirements both = NeedsAfter(needs, before, after, QosClass::kBurstable, Bytes{1 << 20});
  EXPECT_TRUE(both.memory_estimated);
  needs.cpu_of_pod = true;
  EXPECT_EQ(NeedsAfter(needs, before, after, QosClass::kBurstable, {}).cpu_request.value, 1);
}

TEST(NeedsTest, TheQuotaTellsWhetherALargeRequestIsInForce) {
  SavedContainer saved;
  saved.requested = Reported(300'000, QuotaFromMilliCpu(MilliCpu{300'000})).resources;
  LinuxResources in_force = saved.requested;
  EXPECT_TRUE(TellsCpuInForce(saved, in_force));
  in_force.cpu_quota = QuotaFromMilliCpu(MilliCpu{320'000});
  EXPECT_FALSE(TellsCpuInForce(saved, in_force)) << "resized";
  saved.requested.cpu_quota.reset();
  in_force.cpu_quota = 0;
  EXPECT_TRUE(TellsCpuInForce(saved, in_force));
}

TEST(NeedsTest, SharesMayHaveBeenRoundedToWeights) {
  SavedContainer saved;
  saved.requested.cpu_shares = 3072;
  LinuxResources in_force;
  EXPECT_TRUE(TellsCpuInForce(saved, in_force)) << "not reported";
  in_force.cpu_shares = 3069;  // by way of weight 118
  EXPECT_TRUE(TellsCpuInForce(saved, in_force));
  in_force.cpu_quota = 300'200;
  EXPECT_FALSE(TellsCpuInForce(saved, in_force)) << "a resize that weights do not show";
  in_force.cpu_shares = 3060;
  EXPECT_FALSE(TellsCpuInForce(saved, in_force));
  in_force.cpu_shares = 1024;
  EXPECT_FALSE(TellsCpuInForce(saved, in_force));
  saved.placement.cpu_shares = 1024;  // the policy's
  EXPECT_TRUE(TellsCpuInForce(saved, in_force));
}

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
