// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Where = Drift::Where;

CpuSet Cpus(std::string_view list) {
  return CpuSet::Parse(list).value();
}

CgroupValues With(std::string_view cpus, std::string_view effective) {
  CgroupValues values;
  values.set.cpus = Cpus(cpus);
  values.effective_cpus = Cpus(effective);
  return values;
}

TEST(ComparisonTest, OtherCpusInTheCgroup) {
  EXPECT_THAT(CompareCgroup({.cpus = Cpus("1-2")}, With("0-3", "0-3")),
              ElementsAre(Drift{Where::kCgroup, "cpuset.cpus", "1-2", "0-3"}));
  EXPECT_THAT(CompareCgroup({.cpus = Cpus("1-2")}, With("1-2", "1-2")), IsEmpty());
}

TEST(ComparisonTest, ACpusetThatIsNotSetIsDrift) {
  EXPECT_THAT(CompareCgroup({.cpus = Cpus("1-2")}, CgroupValues()),
              ElementsAre(Drift{Where::kCgroup, "cpuset.cpus", "1-2", ""}));
}

TEST(ComparisonTest, ACgroupAboveThatLeavesLess) {
  EXPECT_THAT(CompareCgroup({.cpus = Cpus("1-2")}, With("1-2", "1")),
              ElementsAre(Drift{Where::kEffective, "cpuset.cpus.effective", "1-2", "1"}));
}

TEST(ComparisonTest, TheCauseOfWhatIsLeftIsTold) {
  CgroupValues values = With("4-5", "4");
  values.why_fewer_cpus = "CPU 5 belongs to the partition of /foo: end it";
  const auto drifts = CompareCgroup({.cpus = Cpus("4-5")}, values);
  ASSERT_EQ(drifts.size(), 1U);
  EXPECT_EQ(Describe(drifts[0]),
            "cpuset.cpus.effective is 4, not 4-5: CPU 5 belongs to the partition of /foo: end it");
  EXPECT_FALSE(CanBeMended(drifts[0]));
}

// A kernel's answer on cgroup v2 where a cgroup above is told 0-3.
TEST(ComparisonTest, ASetOfWhichNothingIsLeftRestrictsNothing) {
  const auto drifts = CompareCgroup({.cpus = Cpus("4-5")}, With("4-5", "0-3"));
  ASSERT_EQ(drifts.size(), 1U);
  EXPECT_EQ(Describe(drifts[0]),
            "cpuset.cpus.effective is 0-3, not 4-5, because none of these is left and the kernel "
            "gives it all of the cgroup above: a cgroup above leaves no more");
}

TEST(ComparisonTest, ACgroupThatTakesNoCpusetCannotBeMended) {
  CgroupValues values;
  values.why_no_cpuset = "the controller is off: switch it on";
  const auto drifts = CompareCgroup({.cpus = Cpus("4-5")}, values);
  ASSERT_EQ(drifts.size(), 1U);
  EXPECT_EQ(Describe(drifts[0]), "cpuset.cpus cannot be 4-5: the controller is off: switch it on");
  EXPECT_FALSE(CanBeMended(drifts[0]));
}

// The kernel refuses each weight then, so to send it again has no effect.
TEST(ComparisonTest, TheWeightOfAnIdleCgroupCannotBeMended) {
  CgroupValues values = With("0", "0");
  values.cpu_weight = 0;
  const ResourceValues decided{.cpu_shares = 1024};
  EXPECT_TRUE(CanBeMended(CompareCgroup(decided, values).at(0)));
  values.idle = true;
  EXPECT_EQ(Describe(CompareCgroup(decided, values).at(0)),
            "cpu.weight is 0 in its cgroup, not that of 1024 shares: cpu.idle is 1, so the kernel "
            "takes no weight: set it to 0");
  EXPECT_FALSE(CanBeMended(CompareCgroup(decided, values).at(0)));
}

TEST(ComparisonTest, MemoryNodesThatACgroupAboveWithholds) {
  CgroupValues values = With("0", "0");
  values.set.mems = NodeSet{0, 1};
  values.effective_mems = NodeSet{0};
  values.why_fewer_mems = "/a allows memory nodes 0 only";
  EXPECT_EQ(Describe(CompareCgroup({.mems = NodeSet{0, 1}}, values).at(0)),
            "cpuset.mems.effective is 0, not 0-1: /a allows memory nodes 0 only");
}

// A service of the runtime with CPUAffinity=0-1.
TEST(ComparisonTest, AnAffinityThatTheRuntimeHandsDown) {
  CgroupValues values = With("1-2", "1-2");
  values.process_cpus = Cpus("1");
  values.parent_cpus = Cpus("0-1");
  EXPECT_THAT(CompareCgroup({.cpus = Cpus("1-2")}, values),
              ElementsAre(Drift{Where::kAffinity, "cpu affinity", "1-2", "1"}));
  values.parent_cpus = Cpus("0-7");
  EXPECT_THAT(CompareCgroup({.cpus = Cpus("1-2")}, values), IsEmpty()) << "its own choice";
  values.process_cpus = Cpus("1-2");
  values.parent_cpus = Cpus("0-1");
  EXPECT_THAT(CompareCgroup({.cpus = Cpus("1-2")}, values), IsEmpty()) << "it has all";
}

TEST(ComparisonTest, WhatWasNotDecidedIsNotCompared) {
  EXPECT_THAT(CompareCgroup({}, With("0-3", "0-3")), IsEmpty());
  EXPECT_THAT(CompareReport({}, {.cpus = Cpus("0-3"), .cpu_shares = 7}), IsEmpty());
}

TEST(ComparisonTest, SharesAreWhatTheKernelMakesOfThem) {
  CgroupValues v1 = With("0", "0");
  v1.set.cpu_shares = 2;
  EXPECT_THAT(CompareCgroup({.cpu_shares = 0}, v1), IsEmpty());
  EXPECT_THAT(CompareCgroup({.cpu_shares = 1024}, v1),
              ElementsAre(Drift{Where::kCgroup, "cpu.shares", "1024", "2"}));
  for (const auto& [shares, weight] :
       {std::pair(1024, 39), {1024, 100}, {2, 1}, {262'144, 10'000}, {2048, 79}}) {
    CgroupValues v2 = With("0", "0");
    v2.cpu_weight = weight;
    EXPECT_THAT(CompareCgroup({.cpu_shares = shares}, v2), IsEmpty()) << shares;
    v2.cpu_weight = weight + 3;
    EXPECT_EQ(CompareCgroup({.cpu_shares = shares}, v2).size(), 1U) << shares;
  }
}

TEST(ComparisonTest, NoQuotaHasSeveralForms) {
  CgroupValues values = With("0", "0");
  values.set.cpu_quota = -1;
  EXPECT_THAT(CompareCgroup({.cpu_quota = 0}, values), IsEmpty());
  EXPECT_THAT(CompareReport({.cpu_quota = -1}, {.cpu_quota = 0}), IsEmpty());
  EXPECT_THAT(CompareCgroup({.cpu_quota = 5000}, values),
              ElementsAre(Drift{Where::kCgroup, "cpu quota", "5000", "-1"}));
}

TEST(ComparisonTest, WhatTheRuntimeDoesNotReportIsNoDrift) {
  EXPECT_THAT(CompareReport({.cpus = Cpus("1"), .cpu_shares = 7}, {}), IsEmpty());
  EXPECT_THAT(CompareReport({.cpus = Cpus("1")}, {.cpus = Cpus("2")}),
              ElementsAre(Drift{Where::kRuntime, "cpuset.cpus", "1", "2"}));
}

TEST(ComparisonTest, IsTold) {
  EXPECT_EQ(Describe({Where::kCgroup, "cpuset.cpus", "1-2", ""}),
            "cpuset.cpus is not set in its cgroup, not 1-2");
  EXPECT_EQ(Describe({Where::kEffective, "cpuset.cpus.effective", "1-2", "1"}),
            "cpuset.cpus.effective is 1, not 1-2: a cgroup above leaves no more");
  EXPECT_EQ(Describe({Where::kRuntime, "cpu quota", "5", "6"}),
            "cpu quota is 6 at the runtime, not 5");
}

}  // namespace
}  // namespace resmgr
