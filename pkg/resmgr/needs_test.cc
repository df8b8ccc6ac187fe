// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/needs.h"

#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/model/resources_annotation.h"

namespace resmgr {
namespace {

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

}  // namespace
}  // namespace resmgr
