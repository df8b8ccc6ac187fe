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
            "cpuset.cpus.effective is 1: a cgroup above it leaves no more of 1-2");
  EXPECT_EQ(Describe({Where::kRuntime, "cpu quota", "5", "6"}),
            "cpu quota is 6 at the runtime, not 5");
}

}  // namespace
}  // namespace resmgr
