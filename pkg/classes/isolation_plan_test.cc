// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/isolation_plan.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/class_worker.h"
#include "pkg/classes/interrupt_plan.h"
#include "pkg/classes/partition_steps.h"
#include "pkg/classes/testing/cpuset_kernel.h"
#include "pkg/classes/testing/keeper_fixture.h"
#include "test/support/sanitizer.h"

namespace resmgr {
namespace {

using test::CpusetKernel;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Isolation = IsolationConfig;

// A machine with CPUs 0-7 and three interrupts.
class IsolationPlanTest : public test::KeeperTest {
 protected:
  IsolationPlanTest() {
    auto& tree = files_.tree;
    tree["sys/devices/system/cpu/online"] = "0-7\n";
    tree["proc/irq/default_smp_affinity"] = "ff\n";
    tree["proc/irq/1/smp_affinity"] = "ff\n";
    tree["proc/irq/24/smp_affinity"] = "08\n";
    tree["proc/irq/25/smp_affinity"] = "f0\n";
    tree["proc/interrupts"] =
        "            CPU0       CPU1\n"
        "   1:          0          9   IO-APIC   1-edge      i8042\n"
        "  24:          7          0  PCI-MSIX-0000:00:03.0   1-edge      eth0-rx-0\n"
        "  25:          7          0  PCI-MSIX-0000:00:04.0   1-edge      nvme0q1\n"
        " NMI:          0          0   Non-maskable interrupts\n";
    tree["sys/devices/virtual/workqueue/cpumask"] = "ff\n";
    for (int cpu = 0; cpu < 8; ++cpu) {
      const std::string directory = fmt::format("sys/devices/system/cpu/cpu{}/", cpu);
      tree[directory + "power/pm_qos_resume_latency_us"] = "0\n";
      tree[directory + "cpufreq/scaling_governor"] = "schedutil\n";
      tree[directory + "cpufreq/scaling_available_governors"] = "performance schedutil\n";
      tree[directory + "cpufreq/related_cpus"] =
          fmt::format("{} {}\n", cpu / 2 * 2, cpu / 2 * 2 + 1);
    }
    tree["sys/fs/cgroup/cgroup.controllers"] = "cpu cpuset\n";
    tree["sys/fs/cgroup/kubepods/poduid/cpu.max"] = "200000 100000\n";
    before_ = tree;
  }
  static ClassSubject Subject(const CpuSet& cpus, const Isolation& isolation) {
    return {.container = fmt::format("ns/pod/c{}", cpus.First()),
            .id = fmt::format("id{}", cpus.First()),
            .pod_uid = "uid",
            .cgroup_parent = "/kubepods/poduid",
            .cpus = cpus,
            .quota_lifted = true,
            .chosen = {.isolation = {.isolation = isolation, .source = "classes.isolation"}}};
  }
  ClassReport Apply(const std::vector<ClassSubject>& subjects) {
    return Run({kind_.get()}, subjects);
  }
  std::string At(const std::string& path) const { return files_.tree.at(path); }

  const Isolation interrupts_{.interrupts = Isolation::Interrupts::kIsolate};
  const std::unique_ptr<ClassKind> kind_ = MakeIsolationKind({});
};

TEST_F(IsolationPlanTest, InterruptsAreFoundWithTheirNames) {
  const std::vector<Interrupt> found = FindInterrupts(files_);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[1].text, "PCI-MSIX-0000:00:03.0   1-edge      eth0-rx-0");
  EXPECT_EQ(found[1].ToString(), "24 (eth0-rx-0)");
  EXPECT_TRUE(IsControllable(found[1], {"eth*"}));
  EXPECT_TRUE(IsControllable(found[1], {"24"}));
  EXPECT_TRUE(IsControllable(found[1], {"PCI-MSIX*"}));
  EXPECT_FALSE(IsControllable(found[1], {"eth", "2"}));
}

TEST_F(IsolationPlanTest, InterruptsLeaveTheContainersCpusAndComeBack) {
  const ClassReport report = Apply({Subject({2, 3}, interrupts_)});
  EXPECT_EQ(At("proc/irq/default_smp_affinity"), "f3");
  EXPECT_EQ(At("proc/irq/1/smp_affinity"), "f3");
  EXPECT_EQ(At("proc/irq/24/smp_affinity"), "f3") << "it was on their CPU alone";
  EXPECT_EQ(At("proc/irq/25/smp_affinity"), "f0\n");
  ASSERT_EQ(report.classes.size(), 1U);
  EXPECT_TRUE(report.classes[0].active);
  EXPECT_THAT(report.classes[0].containers, ElementsAre("ns/pod/c2"));
  EXPECT_EQ(report.containers.at("id2")[0].in_force, "2 interrupts moved");

  Apply({Subject({2, 3}, interrupts_), Subject({4, 5}, interrupts_)});
  EXPECT_EQ(At("proc/irq/1/smp_affinity"), "c3");
  EXPECT_EQ(At("proc/irq/25/smp_affinity"), "c0");
  Apply({Subject({4, 5}, interrupts_)});
  EXPECT_EQ(At("proc/irq/1/smp_affinity"), "cf");
  EXPECT_EQ(At("proc/irq/24/smp_affinity"), "08\n");
  Apply({});
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(IsolationPlanTest, ManagedInterruptsAreNamedAndTheOthersMove) {
  for (const int error : {EIO, EPERM}) {
    files_.refuses["proc/irq/24/smp_affinity"] = error;
    const ClassReport report = Apply({Subject({2, 3}, interrupts_)});
    EXPECT_TRUE(report.classes[0].active) << error;
    EXPECT_EQ(report.classes[0].reason, "the kernel does not let these be moved: 24 (eth0-rx-0)");
    EXPECT_EQ(At("proc/irq/1/smp_affinity"), "f3");
    files_.refuses.clear();
    Apply({});
    EXPECT_EQ(files_.tree, before_);
  }
}

TEST_F(IsolationPlanTest, OtherRefusalsMakeTheClassInactive) {
  files_.refuses["proc/irq/24/smp_affinity"] = EROFS;
  const ClassReport report = Apply({Subject({2, 3}, interrupts_)});
  EXPECT_FALSE(report.classes[0].active);
  EXPECT_THAT(report.classes[0].reason, HasSubstr("cannot write f3 to proc/irq/24/smp_affinity"));
}

TEST_F(IsolationPlanTest, OnlyControllableInterruptsMove) {
  config_.controllable = {"i8042"};
  Apply({Subject({2, 3}, interrupts_)});
  EXPECT_EQ(At("proc/irq/1/smp_affinity"), "f3");
  EXPECT_EQ(At("proc/irq/24/smp_affinity"), "08\n");
}

TEST_F(IsolationPlanTest, NoMaskIsEverEmpty) {
  const ClassReport report = Apply({Subject(CpuSet::Parse("0-7").value(), interrupts_)});
  EXPECT_EQ(files_.tree, before_);
  EXPECT_FALSE(report.classes[0].active);
  EXPECT_THAT(report.classes[0].reason, HasSubstr("would have no CPU"));
}

TEST_F(IsolationPlanTest, LatencyGovernorWorkqueuesAndQuota) {
  const Isolation all{.workqueues = Isolation::Workqueues::kIsolate,
                      .quota = Isolation::Quota::kLift,
                      .max_latency = "10",
                      .governor = "performance"};
  const ClassReport report = Apply({Subject({2, 3}, all)});
  EXPECT_EQ(At("sys/devices/virtual/workqueue/cpumask"), "f3");
  EXPECT_EQ(At("sys/fs/cgroup/kubepods/poduid/cpu.max"), "max 100000");
  for (const int cpu : {2, 3}) {
    const std::string directory = fmt::format("sys/devices/system/cpu/cpu{}/", cpu);
    EXPECT_EQ(At(directory + "power/pm_qos_resume_latency_us"), "10");
    EXPECT_EQ(At(directory + "cpufreq/scaling_governor"), "performance");
  }
  ASSERT_EQ(report.classes.size(), 4U);
  for (const ClassState& one : report.classes)
    EXPECT_TRUE(one.active) << one.kind << ": " << one.reason;
  EXPECT_EQ(report.classes[1].name, "10us");
  const std::vector<ContainerClass>& mine = report.containers.at("id2");
  EXPECT_EQ(mine[1].kind, "idle");
  EXPECT_EQ(mine[1].in_force, "10");
  EXPECT_EQ(mine[1].way, "by CPU");
  EXPECT_EQ(mine[3].way, "after creation");
  Apply({});
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(IsolationPlanTest, ACpuThatSharesItsClockKeepsItsGovernor) {
  const ClassReport report = Apply({Subject({3}, {.governor = "performance"})});
  EXPECT_THAT(report.classes[0].reason, HasSubstr("CPU 3 has its clock in common with CPU 2"));
  // The clock of a CPU that is offline serves no other container.
  files_.tree["sys/devices/system/cpu/online"] = "0-1,3-7\n";
  EXPECT_TRUE(Apply({Subject({3}, {.governor = "performance"})}).classes[0].active);
  EXPECT_EQ(At("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor"), "performance");
  files_.tree["sys/devices/system/cpu/online"] = before_.at("sys/devices/system/cpu/online");
  EXPECT_THAT(Apply({Subject({2, 3}, {.governor = "ondemand"})}).classes[0].reason,
              HasSubstr("has no governor ondemand: it has performance schedutil"));
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(IsolationPlanTest, WhatTheMachineLacksIsInactiveWithTheFile) {
  config_.isolation = {.workqueues = Isolation::Workqueues::kIsolate,
                       .max_latency = "n/a",
                       .governor = "performance"};
  EXPECT_TRUE(std::ranges::all_of(Apply({}).classes, &ClassState::active));
  files_.tree.erase("sys/devices/virtual/workqueue/cpumask");
  files_.tree.erase("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  const ClassReport report = Apply({});
  ASSERT_EQ(report.classes.size(), 3U);
  EXPECT_THAT(report.classes[0].reason, HasSubstr("cpu0/cpufreq/scaling_governor"));
  EXPECT_TRUE(report.classes[1].active);
  EXPECT_THAT(report.classes[2].reason, HasSubstr("workqueue/cpumask"));
  EXPECT_THAT(report.classes[2].containers, IsEmpty());
}

class PartitionTest : public IsolationPlanTest {
 protected:
  PartitionTest() {
    for (const char* const cgroup : {"kubepods", "kubepods/poduid", kFirst, kSecond})
      Put(cgroup, "exclusive", "\n");
    for (const char* const cgroup : {kFirst, kSecond})
      Put(cgroup, "partition", "member\n");
    before_ = files_.tree;
  }
  static std::string File(std::string_view cgroup, std::string_view name) {
    return fmt::format("sys/fs/cgroup/{}/cpuset.cpus.{}", cgroup, name);
  }
  void Put(std::string_view cgroup, std::string_view name, const std::string& text) {
    files_.tree[File(cgroup, name)] = text;
  }
  static ClassSubject In(std::string_view cgroup, const CpuSet& cpus) {
    ClassSubject subject = Subject(cpus, {.partition = Isolation::Partition::kIsolated});
    subject.cgroup = fmt::format("sys/fs/cgroup/{}", cgroup);
    return subject;
  }

  static constexpr const char* kFirst = "kubepods/poduid/a";
  static constexpr const char* kSecond = "kubepods/poduid/z";
};

TEST_F(PartitionTest, TakesItsCpusFromAboveAndGivesThemBackFromBelow) {
  const ClassReport report = Apply({In(kFirst, {2, 3}), In(kSecond, {4})});
  ASSERT_EQ(report.classes.size(), 1U);
  EXPECT_TRUE(report.classes[0].active) << report.classes[0].reason;
  EXPECT_EQ(At(File("kubepods", "exclusive")), "2-4");
  EXPECT_EQ(At(File("kubepods/poduid", "exclusive")), "2-4");
  EXPECT_EQ(At(File(kFirst, "exclusive")), "2-3");
  EXPECT_EQ(At(File(kFirst, "partition")), "isolated");
  EXPECT_LT(WrittenAt(File("kubepods", "exclusive") + " 2-4"),
            WrittenAt(File("kubepods/poduid", "exclusive") + " 2-4"));
  EXPECT_LT(WrittenAt(File(kSecond, "exclusive") + " 4"),
            WrittenAt(File(kFirst, "partition") + " isolated"));
  Apply({In(kSecond, {4})});
  EXPECT_EQ(At(File("kubepods", "exclusive")), "4");
  EXPECT_EQ(At(File(kFirst, "partition")), "member\n");
  files_.written.clear();
  Apply({});
  EXPECT_EQ(files_.tree, before_);
  EXPECT_EQ(WrittenAt(File(kSecond, "partition") + " member\n"), 0U);
  EXPECT_LT(WrittenAt(File(kSecond, "exclusive") + " \n"),
            WrittenAt(File("kubepods", "exclusive") + " \n"));
}

TEST_F(PartitionTest, WhatTheKernelFindsInvalidIsInactiveWithItsReasonAndGivenBack) {
  files_.keeps = [](std::string_view, std::string_view text) {
    return text == "isolated" ? std::string(
                                    "isolated invalid (Cpu list in cpuset.cpus not "
                                    "exclusive)\n")
                              : std::string(text);
  };
  const ClassReport report = Apply({In(kFirst, {2, 3})});
  EXPECT_FALSE(report.classes[0].active);
  EXPECT_THAT(report.classes[0].reason, HasSubstr("not exclusive"));
  Apply({});
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(PartitionTest, AContainerKeepsItsSharedCpus) {
  ClassSubject subject = In(kFirst, {2, 3});
  subject.shares = true;
  const ClassReport report = Apply({subject});
  EXPECT_THAT(report.classes[0].reason, HasSubstr("shared CPUs as well"));
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(PartitionTest, OldKernelsHaveNone) {
  files_.tree.erase(File("kubepods/poduid", "exclusive"));
  before_ = files_.tree;
  const ClassReport report = Apply({In(kFirst, {2, 3})});
  EXPECT_THAT(report.classes[0].reason, HasSubstr("needs Linux 6.7"));
  ClassSubject without = Subject({2}, {.partition = Isolation::Partition::kRoot});
  EXPECT_TRUE(Apply({without}).classes[0].active) << "its cgroup comes with the start";
  without.running = true;
  EXPECT_THAT(Apply({without}).classes[0].reason, HasSubstr("no cgroup of version 2"));
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(IsolationPlanTest, TheConfiguredClassHasOneNameWithAndWithoutContainers) {
  config_.isolation.interrupts = Isolation::Interrupts::kHousekeeping;
  const auto is_housekeeping = ElementsAre(testing::Field(&ClassState::name, "housekeeping"));
  EXPECT_THAT(Apply({}).classes, is_housekeeping);
  EXPECT_THAT(Apply({Subject({2, 3}, config_.isolation)}).classes, is_housekeeping);
}

TEST_F(IsolationPlanTest, OnlyAPodsOwnCgroupLosesItsQuota) {
  const Isolation lift{.quota = Isolation::Quota::kLift};
  ClassSubject subject = Subject({2, 3}, lift);
  for (const char* const parent : {"/kubepods", "", "/", "/kubepods/../poduid", "/podother"}) {
    subject.cgroup_parent = parent;
    EXPECT_FALSE(Apply({subject}).classes[0].active) << parent;
  }
  EXPECT_EQ(files_.tree, before_);
  subject = Subject({2, 3}, lift);
  subject.quota_lifted = false;
  EXPECT_THAT(Apply({subject}).classes[0].reason, HasSubstr("the policy keeps"));

  files_.tree["sys/fs/cgroup/kubepods.slice/kubepods-poda_b.slice/cpu.max"] = "5 10\n";
  subject = Subject({2, 3}, lift);
  subject.pod_uid = "a-b";
  subject.cgroup_parent = "kubepods-poda_b.slice";
  EXPECT_TRUE(Apply({subject}).classes[0].active);
  EXPECT_EQ(At("sys/fs/cgroup/kubepods.slice/kubepods-poda_b.slice/cpu.max"), "max 10");

  files_.tree.erase("sys/fs/cgroup/cgroup.controllers");
  files_.tree["sys/fs/cgroup/cpu/kubepods/poduid/cpu.cfs_quota_us"] = "200000\n";
  Apply({Subject({2, 3}, lift)});
  EXPECT_EQ(At("sys/fs/cgroup/cpu/kubepods/poduid/cpu.cfs_quota_us"), "-1");
}

// Partitions of cpusets that appear, move and end, on cgroups with the kernel's rules.

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
    PlanIsolation({.subjects = subjects, .pools = {}, .config = {}, .host = keeper_}, plan);
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
    PlanIsolation({.subjects = Subjects(), .pools = {}, .config = {}, .host = keeper_}, plan);
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
  constexpr int kRounds = test::kSanitized ? 150 : 400;
  for (int round = 0; round < kRounds; ++round) {
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
