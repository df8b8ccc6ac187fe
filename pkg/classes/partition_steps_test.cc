// SPDX-License-Identifier: Apache-2.0
// Partitions of cpusets that appear, move and end, on cgroups with the kernel's rules.
#include "pkg/classes/partition_steps.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/class_report.h"
#include "pkg/classes/isolation_plan.h"
#include "pkg/classes/testing/cpuset_kernel.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using test::CpusetKernel;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kPodA = "kubepods/poda";
constexpr const char* kPodB = "kubepods/podb";

class PartitionStepsTest : public testing::Test {
 protected:
  PartitionStepsTest() {
    for (const char* const name : {"kubepods", kPodA, kPodB})
      kernel_.cgroups[name];
  }
  static std::string File(const std::string& cgroup, std::string_view name) {
    return fmt::format("{}{}/cpuset.cpus.{}", CpusetKernel::kRoot, cgroup, name);
  }
  // A container that its runtime gave these CPUs.
  void Run(const std::string& cgroup, const CpuSet& cpus) {
    kernel_.SetCpus(cgroup, cpus);
    runs_[cgroup] = cpus;
  }
  void End(const std::string& cgroup) {
    kernel_.cgroups.erase(cgroup);
    if (runs_.erase(cgroup) > 0) Apply();
  }
  std::vector<ClassSubject> Subjects() const {
    std::vector<ClassSubject> subjects;
    for (const auto& [cgroup, cpus] : runs_) {
      subjects.push_back(
          {.container = cgroup,
           .id = cgroup,
           .cgroup = std::string(CpusetKernel::kRoot) + cgroup,
           .cpus = cpus,
           .chosen = {
               .isolation = {.isolation = {.partition = IsolationConfig::Partition::kIsolated}}}});
    }
    return subjects;
  }
  ClassReport Apply() {
    const std::vector<ClassSubject> subjects = Subjects();
    ClassPlan plan;
    PlanIsolation(subjects, {}, keeper_, plan);
    return MakeReport(plan, subjects, KeepInSteps(plan.values, keeper_));
  }
  void ExpectAllIsolated() {
    const ClassReport report = Apply();
    for (const ClassState& one : report.classes)
      EXPECT_TRUE(one.active) << one.reason;
    for (const auto& [cgroup, cpus] : runs_) {
      EXPECT_EQ(kernel_.cgroups.at(cgroup).state, "isolated") << cgroup;
      EXPECT_EQ(kernel_.Effective(cgroup), cpus) << cgroup;
    }
    EXPECT_EQ(kernel_.refused, 0);
    EXPECT_THAT(report.notes, IsEmpty());
  }

  TempDir directory_;
  CpusetKernel kernel_;
  std::map<std::string, CpuSet> runs_;
  ClassJournal journal_{directory_.path() + "/classes", ""};
  HostKeeper keeper_{kernel_, journal_};
};

TEST_F(PartitionStepsTest, AMoveToOtherCpusDoesNotEndThePartition) {
  Run("kubepods/poda/x", {2, 3});
  Run("kubepods/podb/y", {8});
  ExpectAllIsolated();
  for (const CpuSet& cpus : {CpuSet{4, 5}, CpuSet{5, 6}, CpuSet{6}, CpuSet{6, 7, 9}}) {
    Run("kubepods/poda/x", cpus);
    ExpectAllIsolated();
  }
  EXPECT_EQ(kernel_.ended, 0);
  EXPECT_EQ(kernel_.cgroups.at("kubepods").exclusive, (CpuSet{6, 7, 8, 9}));
}

TEST_F(PartitionStepsTest, TwoThatSwapTheirCpusBothHaveThemAndOneEndsForAMoment) {
  for (const char* const pod : {kPodA, kPodB}) {
    const std::string first = "kubepods/poda/x";
    const std::string second = fmt::format("{}/y", pod);
    Run(first, {2, 3});
    Run(second, {4, 5});
    ExpectAllIsolated();
    kernel_.ended = 0;
    Run(first, {4, 5});
    Run(second, {2, 3});
    ExpectAllIsolated();
    EXPECT_EQ(kernel_.ended, 1);
    End(first);
    End(second);
  }
}

TEST_F(PartitionStepsTest, AChainMovesFromItsFreeEnd) {
  Run("kubepods/poda/x", {2});
  Run("kubepods/poda/y", {3});
  Run("kubepods/podb/z", {4});
  ExpectAllIsolated();
  Run("kubepods/poda/x", {3});
  Run("kubepods/poda/y", {4});
  Run("kubepods/podb/z", {5});
  ExpectAllIsolated();
  EXPECT_EQ(kernel_.ended, 0);
}

TEST_F(PartitionStepsTest, ThatWhichIsReadyNeedsNoSteps) {
  Run("kubepods/poda/x", {2, 3});
  std::vector<HostValue> wanted = {{File("kubepods", "exclusive"), "2-3"},
                                   {File(kPodA, "exclusive"), "2-3"},
                                   {File("kubepods/poda/x", "exclusive"), "2-3"},
                                   {File("kubepods/poda/x", "partition"), "isolated"}};
  EXPECT_THAT(PartitionSteps(wanted, kernel_), IsEmpty()) << "a new one grows from above";
  ExpectAllIsolated();
  EXPECT_THAT(PartitionSteps(wanted, kernel_), IsEmpty());
}

TEST_F(PartitionStepsTest, ExclusiveCpusOfOthersAboveStay) {
  kernel_.cgroups.at("kubepods").exclusive = {12, 13};
  Run("kubepods/poda/x", {2, 3});
  ExpectAllIsolated();
  Run("kubepods/poda/x", {4, 5});
  ExpectAllIsolated();
  EXPECT_EQ(kernel_.cgroups.at("kubepods").exclusive, (CpuSet{4, 5, 12, 13}));
  End("kubepods/poda/x");
  EXPECT_EQ(kernel_.cgroups.at("kubepods").exclusive, (CpuSet{12, 13}));
}

// Before Linux 6.11 cgroups above need the CPUs in cpuset.cpus, too, which the kubelet leaves
// empty.
TEST_F(PartitionStepsTest, OlderKernelsNeedTheCpusOfCgroupsAbove) {
  kernel_.bound_to_cpus = true;
  kernel_.version = "6.8.0-45-generic\n";
  Run("kubepods/poda/x", {2, 3});
  ExpectAllIsolated();
  EXPECT_EQ(kernel_.cgroups.at(kPodA).cpus, CpuSet::Range(0, 15));
  End("kubepods/poda/x");
  EXPECT_EQ(kernel_.cgroups.at(kPodA).cpus, CpuSet());
  EXPECT_EQ(kernel_.refused, 0);
}

TEST_F(PartitionStepsTest, BelowAPartitionItIsALocalOneOnAnyKernel) {
  for (const bool newer : {true, false}) {
    kernel_.has_exclusive = newer;
    kernel_.cgroups.at("kubepods").cpus = CpuSet::Range(0, 7);
    kernel_.cgroups.at("kubepods").state = "root";
    kernel_.cgroups.at(kPodA).state = "root";
    kernel_.cgroups.at(kPodA).cpus = {2, 3, 4};
    Run("kubepods/poda/x", {2, 3});
    EXPECT_TRUE(Apply().classes.at(0).active);
    EXPECT_EQ(kernel_.cgroups.at("kubepods/poda/x").state, "isolated");
    EXPECT_EQ(kernel_.cgroups.at(kPodA).exclusive, CpuSet());
    End("kubepods/poda/x");
  }
}

TEST_F(PartitionStepsTest, AllOtherValuesKeepWhatTheySayInEachStep) {
  Run("kubepods/poda/x", {2, 3});
  ExpectAllIsolated();
  const HostValue other = {
      .path = "proc/irq/30/smp_affinity", .text = "f3", .together = "all", .first = "ff"};
  const std::vector<HostValue> wanted = {{File("kubepods", "exclusive"), "4-5"},
                                         {File(kPodA, "exclusive"), "4-5"},
                                         {File("kubepods/poda/x", "exclusive"), "4-5"},
                                         {File("kubepods/poda/x", "partition"), "isolated"},
                                         other};
  const std::vector<std::vector<HostValue>> steps = PartitionSteps(wanted, kernel_);
  ASSERT_FALSE(steps.empty());
  for (const std::vector<HostValue>& step : steps)
    EXPECT_THAT(step, Contains(other));
}

// Another program's cgroup took the CPUs: the kernel ends the partition, and the file still begins
// with the written word.
TEST_F(PartitionStepsTest, AnInvalidPartitionDiffersAndIsMadeAgain) {
  Run("kubepods/poda/x", {2, 3});
  ExpectAllIsolated();
  ClassPlan plan;
  const auto differences = [&] {
    plan = {};
    PlanIsolation(Subjects(), {}, keeper_, plan);
    return keeper_.Compare(plan.values);
  };
  EXPECT_THAT(differences(), IsEmpty());
  kernel_.cgroups.at("kubepods/poda/x").state =
      "isolated invalid (Cpu list in cpuset.cpus not exclusive)";
  const HostDifference expected{.path = File("kubepods/poda/x", "partition"),
                                .wanted = "isolated",
                                .now = "isolated invalid (Cpu list in cpuset.cpus not exclusive)"};
  EXPECT_THAT(differences(), ElementsAre(expected));
  EXPECT_THAT(Apply().notes,
              ElementsAre(File("kubepods/poda/x", "partition") +
                          " reads isolated invalid (Cpu list in cpuset.cpus not exclusive): it "
                          "gets isolated again"));
  EXPECT_THAT(differences(), IsEmpty());
  ExpectAllIsolated();
}

TEST_F(PartitionStepsTest, WithoutExclusiveCpusOnlyBelowAPartition) {
  kernel_.has_exclusive = false;
  Run("kubepods/poda/x", {2, 3});
  const ClassReport report = Apply();
  EXPECT_THAT(report.classes.at(0).reason, HasSubstr("needs Linux 6.7"));
  EXPECT_EQ(kernel_.cgroups.at("kubepods/poda/x").state, "member");
}

// For any containers and any moves, each partition has its CPUs after each decision, no write is
// refused, and at the end the kernel's files are as they were.
TEST_F(PartitionStepsTest, AnyMovesLeaveValidPartitions) {
  std::minstd_rand random(7);
  constexpr int kCpus = 12;
  const std::vector<std::string> names = {"kubepods/poda/u", "kubepods/poda/v", "kubepods/podb/w",
                                          "kubepods/podb/x", "kubepods/podb/y"};
  for (int round = 0; round < 400; ++round) {
    for (const std::string& name : names)
      if (random() % 6 == 0) End(name);
    CpuSet free = CpuSet::Range(0, kCpus - 1);
    std::vector<std::string> moving;
    for (const std::string& name : names) {
      if (runs_.contains(name) && random() % 3 == 0) {
        free = free - runs_[name];
      } else if (runs_.contains(name) || random() % 2 == 0) {
        moving.push_back(name);
      }
    }
    for (const std::string& name : moving) {
      CpuSet own;
      for (unsigned count = random() % 2 + 1; count > 0; --count) {
        int cpu = free.First();
        for (unsigned skip = random() % 5; skip > 0 && free.NextAfter(cpu) >= 0; --skip)
          cpu = free.NextAfter(cpu);
        own.Add(cpu);
        free.Remove(cpu);
      }
      Run(name, own);
    }
    ExpectAllIsolated();
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  for (const std::string& name : names)
    End(name);
  for (const auto& [name, cgroup] : kernel_.cgroups)
    EXPECT_EQ(cgroup.exclusive, CpuSet()) << name;
}

}  // namespace
}  // namespace resmgr
