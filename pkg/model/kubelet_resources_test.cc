// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/kubelet_resources.h"

#include <vector>

#include <gtest/gtest.h>

#include "pkg/kube/qos.h"
#include "pkg/model/requirements.h"

namespace resmgr {
namespace {

constexpr Bytes kGi{int64_t{1} << 30};

Requirements Needs(int64_t cpu_request, int64_t cpu_limit, int64_t memory_request,
                   int64_t memory_limit) {
  return {{cpu_request}, {cpu_limit}, {memory_request}, {memory_limit}};
}

QosClass Qos(const std::vector<Requirements>& containers) {
  return QosOf(containers);
}

TEST(KubeletResourcesTest, TellsTheQosClass) {
  EXPECT_EQ(Qos({}), QosClass::kBestEffort);
  EXPECT_EQ(Qos({Needs(0, 0, 0, 0), Needs(0, 0, 0, 0)}), QosClass::kBestEffort);
  EXPECT_EQ(Qos({Needs(2000, 2000, 10, 10)}), QosClass::kGuaranteed);
  EXPECT_EQ(Qos({Needs(2000, 2000, 10, 10), Needs(1, 1, 1, 1)}), QosClass::kGuaranteed);
  EXPECT_EQ(Qos({Needs(2000, 2000, 10, 10), Needs(0, 0, 0, 0)}), QosClass::kBurstable);
  EXPECT_EQ(Qos({Needs(2000, 2000, 0, 0)}), QosClass::kBurstable);
  EXPECT_EQ(Qos({Needs(1000, 2000, 10, 10)}), QosClass::kBurstable);
  EXPECT_EQ(Qos({Needs(0, 0, 10, 0)}), QosClass::kBurstable);
}

TEST(KubeletResourcesTest, ScoresForTheOomKiller) {
  EXPECT_EQ(OomScoreAdj(QosClass::kGuaranteed, kGi, kGi), -997);
  EXPECT_EQ(OomScoreAdj(QosClass::kBestEffort, Bytes{0}, kGi), 1000);
  EXPECT_EQ(OomScoreAdj(QosClass::kBurstable, Bytes{0}, kGi), 999);
  EXPECT_EQ(OomScoreAdj(QosClass::kBurstable, Bytes{kGi.value / 4}, kGi), 750);
  EXPECT_EQ(OomScoreAdj(QosClass::kBurstable, Bytes{kGi.value / 1000}, kGi), 1000 - 0 - 1);
  EXPECT_EQ(OomScoreAdj(QosClass::kBurstable, kGi, kGi), 3);
  EXPECT_EQ(OomScoreAdj(QosClass::kBurstable, Bytes{INT64_MAX}, Bytes{1}), 3);
  EXPECT_EQ(OomScoreAdj(QosClass::kBurstable, kGi, Bytes{0}), 999);
}

TEST(KubeletResourcesTest, MakesTheFieldsOfARequest) {
  LinuxResources expected;
  expected.cpu_shares = 1536;
  expected.cpu_period = 100'000;
  expected.cpu_quota = 200'000;
  expected.memory_limit = kGi.value;
  expected.oom_score_adj = 875;
  EXPECT_EQ(KubeletResources(Needs(1500, 2000, kGi.value / 2, kGi.value), QosClass::kBurstable,
                             Bytes{kGi.value / 2}, Bytes{4 * kGi.value}),
            expected);
}

TEST(KubeletResourcesTest, WhatIsNotLimitedHasNoLimit) {
  const LinuxResources resources =
      KubeletResources(Needs(0, 0, 0, 0), QosClass::kBestEffort, Bytes{0}, kGi);
  EXPECT_EQ(resources.cpu_shares, 2);
  EXPECT_FALSE(resources.cpu_quota.has_value());
  EXPECT_FALSE(resources.memory_limit.has_value());
  EXPECT_EQ(resources.oom_score_adj, 1000);
}

TEST(KubeletResourcesTest, ALimitAloneGivesTheShares) {
  EXPECT_EQ(KubeletResources(Needs(0, 500, 0, 0), QosClass::kBurstable, Bytes{0}, kGi).cpu_shares,
            512);
}

TEST(KubeletResourcesTest, TheCgroupParentTellsClassAndUid) {
  for (const QosClass qos : {QosClass::kGuaranteed, QosClass::kBurstable, QosClass::kBestEffort}) {
    const auto parsed = ParsePodCgroup(CgroupParentOf(qos, PodUid("12-34")));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->qos, qos);
    EXPECT_EQ(parsed->uid, PodUid("12-34"));
  }
}

// The way there and back again.
TEST(KubeletResourcesTest, TheEstimateUndoesTheArithmetic) {
  for (int64_t milli = 10; milli <= 64'000; milli += 7) {
    const Requirements guaranteed = Needs(milli, milli, kGi.value, kGi.value);
    EXPECT_EQ(EstimateRequirements(
                  KubeletResources(guaranteed, QosClass::kGuaranteed, kGi, Bytes{8 * kGi.value}),
                  QosClass::kGuaranteed, Bytes{8 * kGi.value}),
              guaranteed);
    const Requirements burstable = Needs(milli, 2 * milli, 0, kGi.value);
    EXPECT_EQ(
        EstimateRequirements(KubeletResources(burstable, QosClass::kBurstable, Bytes{0}, Bytes{0}),
                             QosClass::kBurstable, Bytes{0}),
        burstable);
  }
}

}  // namespace
}  // namespace resmgr
