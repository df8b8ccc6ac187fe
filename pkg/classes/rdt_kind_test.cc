// SPDX-License-Identifier: Apache-2.0
// Classes of caches and memory bandwidth on trees of files that behave as resctrl.
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/class_kind.h"
#include "pkg/classes/class_worker.h"
#include "pkg/classes/testing/classed_pod.h"
#include "pkg/classes/testing/fake_resctrl.h"
#include "pkg/classes/testing/keeper_fixture.h"

namespace resmgr {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kTwoClasses =
    "{fast: {l3Allocation: 60%, mbAllocation: [100%], classes: {gold: {}}},"
    " slow: {l3Allocation: 40%, mbAllocation: [100%],"
    "        classes: {silver: {mbAllocation: [66%]}}}}";

class RdtKindTest : public test::KeeperTest {
 protected:
  RdtKindTest() {
    resctrl_.AddCache("L3", "fffff", 16);
    resctrl_.AddBandwidth(8);
    files_.tree["sys/devices/system/cpu/online"] = "0-7\n";
    files_.tree["sys/fs/cgroup/c/cgroup.threads"] = "100\n101\n";
    before_ = files_.tree;
    Start();
    Configure(kTwoClasses);
  }
  void Start() {
    KeeperTest::Start();
    kind_ = MakeRdtKind({.directory = directory_.path() + "/classes",
                         .door = [this] { return CreationWays{.rdt_groups = rdt_groups_}; }});
  }
  void Configure(std::string_view partitions, std::string_view more = "") {
    KeeperTest::Configure(fmt::format("{{rdt: {{{}partitions: {}}}}}", more, partitions));
  }
  static ClassSubject Subject(const std::string& name, const CpuSet& cpus = {}) {
    ClassSubject subject{.container = "ns/pod/c", .id = "id", .cgroup = "sys/fs/cgroup/c"};
    subject.cpus = cpus;
    subject.chosen.by_name["rdt"] = {.name = name, .source = "annotation x", .by_pod = true};
    return subject;
  }
  ClassReport Run(const std::vector<ClassSubject>& subjects = {},
                  const std::vector<ClassPool>& pools = {}) {
    return KeeperTest::Run({kind_.get()}, subjects, pools);
  }
  std::string At(const std::string& path) const {
    const auto found = files_.tree.find("sys/fs/resctrl/" + path);
    return found == files_.tree.end() ? "none" : found->second;
  }
  std::vector<std::string> Groups() const {
    std::vector<std::string> groups;
    for (const auto& [path, text] : files_.tree)
      if (path.starts_with("sys/fs/resctrl/cri-resmgr.") && path.ends_with("/mode"))
        groups.push_back(path);
    return groups;
  }

  test::FakeResctrl resctrl_{files_};
  bool rdt_groups_ = false;  // the runtime knows them
  std::unique_ptr<ClassKind> kind_;
};

TEST_F(RdtKindTest, GroupsAreMadeAndGivenBack) {
  ClassReport report = Run();
  EXPECT_TRUE(StateOf(report, "gold").active) << StateOf(report, "gold").reason;
  EXPECT_EQ(At("cri-resmgr.gold/schemata"), "L3:0=fff;1=fff\nMB:0=100;1=100\n");
  EXPECT_EQ(At("cri-resmgr.silver/schemata"), "L3:0=ff000;1=ff000\nMB:0=70;1=70\n");
  EXPECT_EQ(At("schemata"), before_.at("sys/fs/resctrl/schemata")) << "no class is the root's";
  files_.written.clear();
  report = Run();
  EXPECT_TRUE(StateOf(report, "silver").active) << "the kernel rounds up";
  EXPECT_TRUE(files_.written.empty()) << files_.written[0];
  Start();
  config_ = {};
  Run();
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(RdtKindTest, TheRootsMasksAreGivenBack) {
  Configure("{p: {l3Allocation: 50%, classes: {'': {}}}}");
  Run();
  EXPECT_EQ(At("schemata"), "L3:0=3ff;1=3ff\nMB:0=100;1=100\n");
  Start();
  config_ = {};
  Run();
  EXPECT_EQ(ParseSchemata(At("schemata")), ParseSchemata(before_.at("sys/fs/resctrl/schemata")));
}

// The root's value from before this daemon's first write has the cache that is gone.
TEST_F(RdtKindTest, ClassesAndTheRootsMasksOutliveACacheWhoseCpusGoOffline) {
  Configure("{p: {l3Allocation: 50%, classes: {'': {}, gold: {}}}}");
  Run();
  resctrl_.EndDomain(1);
  ClassReport report = Run();
  for (const char* const name : {"gold", "system/default"})
    EXPECT_TRUE(StateOf(report, name).active) << StateOf(report, name).reason;
  Configure("{p: {l3Allocation: 25%, classes: {'': {}, gold: {}}}}");
  report = Run();
  EXPECT_TRUE(StateOf(report, "gold").active) << StateOf(report, "gold").reason;
  EXPECT_EQ(At("schemata"), "L3:0=1f\nMB:0=100\n");
  config_ = {};
  EXPECT_THAT(Run().not_given_back, testing::IsEmpty());
  EXPECT_EQ(At("schemata"), "L3:0=fffff\nMB:0=100\n");
}

TEST_F(RdtKindTest, OneClassLessIsOneGroupLess) {
  Run();
  Configure("{fast: {l3Allocation: 60%, classes: {gold: {}}}}");
  Run();
  EXPECT_EQ(At("cri-resmgr.silver/mode"), "none");
  EXPECT_EQ(At("cri-resmgr.gold/schemata"), "L3:0=fff;1=fff\nMB:0=100;1=100\n");
}

TEST_F(RdtKindTest, WhatShrinksIsWrittenBeforeWhatGrows) {
  Configure(
      "{a: {l3Allocation: '0x000ff', classes: {gold: {}}},"
      " b: {l3Allocation: '0xfff00', classes: {silver: {}}}}");
  Run();
  Configure(
      "{a: {l3Allocation: '0x0ffff', classes: {gold: {}}},"
      " b: {l3Allocation: '0xf0000', classes: {silver: {}}}}");
  files_.written.clear();
  Run();
  EXPECT_LT(WrittenAt("sys/fs/resctrl/cri-resmgr.silver/schemata "
                      "L3:0=f0000;1=f0000\nMB:0=100;1=100\n"),
            WrittenAt("sys/fs/resctrl/cri-resmgr.gold/schemata "
                      "L3:0=ffff;1=ffff\nMB:0=100;1=100\n"));
  EXPECT_EQ(At("cri-resmgr.gold/schemata"), "L3:0=ffff;1=ffff\nMB:0=100;1=100\n");
}

TEST_F(RdtKindTest, ARefusalLeavesNothingHalfDoneAndNamesTheKernelsReason) {
  Configure(
      "{a: {l3Allocation: 50%, classes: {gold: {}}},"
      " b: {l3Allocation: 50%, classes: {'': {}}}}");
  const std::map<std::string, int> faults = {{"sys/fs/resctrl/cri-resmgr.gold/schemata", EINVAL},
                                             {"sys/fs/resctrl/cri-resmgr.gold/.", ENOSPC},
                                             {"sys/fs/resctrl/schemata", EIO}};
  for (const auto& [path, error] : faults) {
    files_.refuses = {{path, error}};
    files_.tree["sys/fs/resctrl/info/last_cmd_status"] = "Non-consecutive bits in mask\n";
    const ClassReport report = Run({Subject("gold")});
    EXPECT_THAT(report.containers.at("id")[0].reason, HasSubstr("Non-consecutive bits")) << path;
    EXPECT_THAT(Groups(), testing::IsEmpty()) << path;
    EXPECT_EQ(ParseSchemata(At("schemata")), ParseSchemata(before_["sys/fs/resctrl/schemata"]))
        << path;
  }
  files_.refuses.clear();
  EXPECT_TRUE(StateOf(Run(), "gold").active);
  EXPECT_EQ(At("cri-resmgr.gold/schemata"), "L3:0=3ff;1=3ff\nMB:0=100;1=100\n");
}

// Others may have made groups since the budget was checked.
TEST_F(RdtKindTest, AGroupForWhichNoIdIsLeftIsToldInTheKernelsWords) {
  files_.refuses = {{"sys/fs/resctrl/cri-resmgr.gold/.", ENOSPC}};
  EXPECT_THAT(StateOf(Run({Subject("gold")}), "gold").reason, HasSubstr("No space left on device"));
  EXPECT_THAT(Groups(), testing::IsEmpty());
  files_.tree["sys/fs/resctrl/info/last_cmd_status"] = "Out of CLOSIDs\n";
  EXPECT_THAT(StateOf(Run({Subject("gold")}), "gold").reason,
              testing::AllOf(HasSubstr("No space left on device"), HasSubstr("Out of CLOSIDs")));
}

TEST_F(RdtKindTest, AGroupThatTheKernelRefusesIsToldWithoutAnyContainer) {
  const std::map<std::string, std::pair<int, const char*>> refusals = {
      {"sys/fs/resctrl/cri-resmgr.gold/.", {ENOSPC, "No space left on device"}},
      {"sys/fs/resctrl/cri-resmgr.gold/schemata", {EINVAL, "Invalid argument"}}};
  for (const auto& [path, refusal] : refusals) {
    files_.refuses = {{path, refusal.first}};
    const ClassReport report = Run();
    for (const char* const name : {"gold", "silver"}) {
      EXPECT_FALSE(StateOf(report, name).active) << path << ": " << name << " is of the same set";
      EXPECT_THAT(StateOf(report, name).reason, HasSubstr(refusal.second)) << path;
      EXPECT_FALSE(StateOf(report, name).absent) << path << ": the machine has what it needs";
    }
  }
  files_.refuses.clear();
  EXPECT_TRUE(StateOf(Run(), "gold").active);
}

// The CPUs of a pool are in its group whether or not it has containers.
TEST_F(RdtKindTest, CpusThatTheKernelRefusesAreToldOfThePoolAndOfItsMembersAlone) {
  files_.refuses = {{"sys/fs/resctrl/cri-resmgr.gold/cpus_list", EINVAL}};
  const std::vector<ClassPool> pools = {
      {.name = "fast", .cpus = {2, 3}, .classes = {{"rdt", "gold"}}}};
  EXPECT_THAT(StateOf(Run({}, pools), "gold").reason, HasSubstr("cpus_list"));
  EXPECT_TRUE(StateOf(Run({}, pools), "silver").active);
  ClassSubject member = Subject("gold");
  member.id = "member";
  member.pool = "fast";
  member.chosen.by_name["rdt"].by_pod = false;
  const ClassReport report = Run({member, Subject("gold")}, pools);
  EXPECT_THAT(report.containers.at("member")[0].reason, HasSubstr("cpus_list"));
  EXPECT_TRUE(report.containers.at("id")[0].active) << "its tasks are in the group";
}

TEST_F(RdtKindTest, AReadOnlyTreeIsNamed) {
  files_.refuses = {{"sys/fs/resctrl/cri-resmgr.gold/.", EROFS}};
  const ClassReport report = Run({Subject("gold")});
  EXPECT_THAT(StateOf(report, "gold").reason, HasSubstr("Read-only file system"));
  EXPECT_FALSE(report.containers.at("id")[0].active);
}

TEST_F(RdtKindTest, GroupsOfOthersAreListedAndNeverTouched) {
  resctrl_.AddGroup("sys/fs/resctrl/Guaranteed");
  resctrl_.AddGroup("sys/fs/resctrl/non_goresctrl.Group");
  before_ = files_.tree;
  const ClassReport report = Run();
  EXPECT_EQ(StateOf(report, "(others)").reason,
            "groups that are not touched: Guaranteed, non_goresctrl.Group");
  for (const std::string& line : files_.written) {
    EXPECT_THAT(line, Not(HasSubstr("Guaranteed")));
    EXPECT_THAT(line, Not(HasSubstr("non_goresctrl")));
  }
  config_ = {};
  Run();
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(RdtKindTest, TheBudgetOfGroupsIsCheckedFirst) {
  for (int i = 0; i < 6; ++i)
    resctrl_.AddGroup(fmt::format("sys/fs/resctrl/other{}", i));
  const ClassReport report = Run();
  EXPECT_EQ(StateOf(report, "gold").reason,
            "resctrl has 8 groups at most: the configuration needs 3 with the root, and others "
            "have 6");
  EXPECT_TRUE(files_.written.empty());
}

TEST_F(RdtKindTest, BitsThatAGroupOfOthersHasAloneAreNotAskedFor) {
  resctrl_.AddGroup("sys/fs/resctrl/locked");
  files_.tree["sys/fs/resctrl/locked/mode"] = "exclusive\n";
  files_.tree["sys/fs/resctrl/locked/schemata"] = "L3:0=1;1=1\n";
  EXPECT_THAT(StateOf(Run(), "gold").reason,
              HasSubstr("has bits that the group locked of others has alone (1)"));
  EXPECT_TRUE(files_.written.empty());
}

TEST_F(RdtKindTest, GroupsOfOursThatAreNotConfiguredGoWhenTheyAreEmpty) {
  resctrl_.AddGroup("sys/fs/resctrl/cri-resmgr.old");
  resctrl_.AddGroup("sys/fs/resctrl/cri-resmgr.used");
  files_.tree["sys/fs/resctrl/cri-resmgr.used/tasks"] = "7\n";
  EXPECT_EQ(StateOf(Run(), "used").reason,
            "refusing to remove non-empty resctrl group cri-resmgr.used");
  EXPECT_EQ(At("cri-resmgr.old/mode"), "none");
  Configure(kTwoClasses, "Force: true, ");
  Run();
  EXPECT_EQ(At("cri-resmgr.used/mode"), "none");
}

TEST_F(RdtKindTest, WithoutResctrlAClassIsInactiveWithTheFile) {
  files_.tree.erase("sys/fs/resctrl/schemata");
  const ClassReport report = Run({Subject("gold")});
  EXPECT_THAT(StateOf(report, "gold").reason, HasSubstr("there is no sys/fs/resctrl/schemata"));
  EXPECT_TRUE(StateOf(report, "gold").absent);
  EXPECT_TRUE(files_.written.empty());
}

TEST_F(RdtKindTest, TasksComeIntoTheGroupOfTheirClass) {
  const ClassReport report = Run({Subject("gold")});
  EXPECT_EQ(At("cri-resmgr.gold/tasks"), "\n100\n101\n");
  const ContainerClass& mine = report.containers.at("id")[0];
  EXPECT_TRUE(mine.active) << mine.reason;
  EXPECT_EQ(mine.way, "by tasks");
  EXPECT_EQ(mine.in_force, "L3:0=fff;1=fff MB:0=100;1=100 of 2 tasks");
  files_.tree["sys/fs/cgroup/c/cgroup.threads"] = "100\n101\n102\n";
  files_.written.clear();
  Run({Subject("gold")});
  EXPECT_THAT(files_.written, testing::ElementsAre("sys/fs/resctrl/cri-resmgr.gold/tasks 102"));
  // The container lives on without a class.
  Run();
  EXPECT_EQ(At("cri-resmgr.gold/tasks"), "\n");
  EXPECT_EQ(At("tasks"), "\n100\n101\n102\n");
}

TEST_F(RdtKindTest, TasksOfCgroupsThatAContainerMakesComeAlong) {
  files_.tree["sys/fs/cgroup/c/cgroup.threads"] = "100\n";
  files_.tree["sys/fs/cgroup/c/init/cgroup.threads"] = "101\n";
  files_.tree["sys/fs/cgroup/c/system.slice/a.service/cgroup.threads"] = "102\n";
  files_.tree["sys/fs/cgroup/c/system.slice/cgroup.threads"] = "";
  EXPECT_THAT(Run({Subject("gold")}).containers.at("id")[0].in_force, HasSubstr("of 3 tasks"));
  EXPECT_EQ(At("cri-resmgr.gold/tasks"), "\n100\n101\n102\n");
  Run({Subject("silver")});
  EXPECT_EQ(At("cri-resmgr.gold/tasks"), "\n");
  EXPECT_EQ(At("cri-resmgr.silver/tasks"), "\n100\n101\n102\n");
}

TEST_F(RdtKindTest, AClassThatEndsWhileNoDaemonRunsIsTakenAway) {
  ClassSubject other = Subject("silver");
  other.id = "other";
  other.cgroup = "sys/fs/cgroup/d";
  files_.tree["sys/fs/cgroup/d/cgroup.threads"] = "200\n";
  Run({Subject("gold"), other});
  Start();
  Run({other});
  EXPECT_EQ(At("cri-resmgr.gold/tasks"), "\n");
  EXPECT_EQ(At("cri-resmgr.silver/tasks"), "\n200\n");
  EXPECT_EQ(At("tasks"), "\n100\n101\n");
  // One that has its class by its CPUs now must not keep the tasks of another one.
  Start();
  other.chosen.by_name["rdt"].name = "gold";
  other.cpus = {2, 3};
  Run({other});
  EXPECT_EQ(At("cri-resmgr.silver/tasks"), "\n");
}

TEST_F(RdtKindTest, TasksThatTheRuntimeHasMovedStay) {
  Run({Subject("gold")});
  Configure(kTwoClasses, "Assign: runtime, ");
  Run();
  EXPECT_EQ(At("cri-resmgr.gold/tasks"), "\n100\n101\n");
}

TEST_F(RdtKindTest, AReadErrorThatPassesTakesNoContainerOutOfItsGroup) {
  Run({Subject("gold")});
  const std::map<std::string, std::string> tree = files_.tree;
  for (const char* const file : {"sys/fs/resctrl/schemata", "sys/fs/cgroup/c/cgroup.threads",
                                 "sys/fs/resctrl/cri-resmgr.gold/schemata"}) {
    files_.unreadable = {file};
    EXPECT_FALSE(StateOf(Run({Subject("gold")}), "gold").active) << file;
    EXPECT_EQ(files_.tree, tree) << file;
    files_.unreadable.clear();
    EXPECT_TRUE(StateOf(Run({Subject("gold")}), "gold").active) << file;
    EXPECT_EQ(files_.tree, tree) << file;
  }
  Run();
  EXPECT_THAT(At("tasks"), HasSubstr("100")) << "without a class it is in the root group";
}

TEST_F(RdtKindTest, ATaskThatEndsMeanwhileIsNoFaultAndOthersAre) {
  files_.refuses = {{"sys/fs/resctrl/cri-resmgr.gold/tasks", ESRCH}};
  EXPECT_TRUE(Run({Subject("gold")}).containers.at("id")[0].active);
  files_.refuses = {{"sys/fs/resctrl/cri-resmgr.gold/tasks", EPERM}};
  files_.tree["sys/fs/resctrl/info/last_cmd_status"] = "Can't move task to different group\n";
  const ClassReport report = Run({Subject("gold")});
  EXPECT_THAT(report.containers.at("id")[0].reason, HasSubstr("Can't move task"));
}

TEST_F(RdtKindTest, OwnCpusBringTheClassWithoutTasks) {
  ClassReport report = Run({Subject("gold", {2, 3})});
  EXPECT_EQ(At("cri-resmgr.gold/cpus_list"), "2-3");
  EXPECT_EQ(At("cri-resmgr.gold/tasks"), "\n");
  EXPECT_EQ(report.containers.at("id")[0].way, "by CPU");
  EXPECT_TRUE(report.containers.at("id")[0].active);
  ClassSubject subject = Subject("gold", {2, 3});
  subject.shares = true;
  EXPECT_EQ(Run({subject}).containers.at("id")[0].way, "by tasks");
  EXPECT_EQ(At("cri-resmgr.gold/cpus_list"), "\n");
}

TEST_F(RdtKindTest, APoolsCpusHaveItsClassButThoseOfContainersWithAnother) {
  ClassSubject own = Subject("silver", {3});
  ClassSubject member = Subject("gold");
  member.id = "member";
  member.pool = "fast";
  member.chosen.by_name["rdt"].by_pod = false;
  const std::vector<ClassPool> pools = {
      {.name = "fast", .cpus = {2, 3, 4}, .classes = {{"rdt", "gold"}}}};
  const ClassReport report = Run({own, member}, pools);
  EXPECT_EQ(At("cri-resmgr.gold/cpus_list"), "2,4");
  EXPECT_EQ(At("cri-resmgr.silver/cpus_list"), "3");
  EXPECT_EQ(report.containers.at("member")[0].way, "by CPU");
  EXPECT_EQ(At("cri-resmgr.gold/tasks"), "\n");
}

TEST_F(RdtKindTest, ACpuOfAPoolWithinAnotherIsInTheGroupOfTheInnerOne) {
  const std::vector<ClassPool> pools = {
      {.name = "around", .cpus = {0, 1, 2, 3}, .classes = {{"rdt", "gold"}}},
      {.name = "inner", .cpus = {2, 3}, .classes = {{"rdt", "silver"}}}};
  Run({}, pools);
  EXPECT_EQ(At("cri-resmgr.gold/cpus_list"), "0-1");
  EXPECT_EQ(At("cri-resmgr.silver/cpus_list"), "2-3");
}

TEST_F(RdtKindTest, AThreadWithoutANumberHereIsNeverMoved) {
  files_.tree["sys/fs/cgroup/c/cgroup.threads"] = "0\n0\n";
  const ClassReport report = Run({Subject("gold")});
  EXPECT_EQ(At("cri-resmgr.gold/tasks"), "\n") << "0 is the writer itself";
  EXPECT_THAT(report.containers.at("id")[0].reason, HasSubstr("PID namespace"));
}

TEST_F(RdtKindTest, AStartWaitsForTasksAlone) {
  EXPECT_TRUE(kind_->HoldsStart(Subject("gold"), config_));
  ClassSubject own = Subject("gold", {2, 3});
  EXPECT_FALSE(kind_->HoldsStart(own, config_)) << "its CPUs have the class";
  own.shares = true;
  EXPECT_TRUE(kind_->HoldsStart(own, config_));
  Configure(kTwoClasses, "Assign: tasks, ");
  EXPECT_TRUE(kind_->HoldsStart(Subject("gold", {2, 3}), config_));
}

TEST_F(RdtKindTest, OnlyByCpusNeedsOwnCpus) {
  Configure(kTwoClasses, "Assign: cpus, ");
  const ClassReport report = Run({Subject("gold")});
  EXPECT_EQ(report.containers.at("id")[0].reason, "the container has no CPUs for itself alone");
  EXPECT_EQ(At("cri-resmgr.gold/tasks"), "\n");
}

TEST_F(RdtKindTest, TheRuntimeGetsTheNameOfTheGroup) {
  Configure(kTwoClasses, "Assign: runtime, ");
  Adjustment adjustment;
  const ChosenClasses chosen = Subject("gold").chosen;
  kind_->AtCreation(chosen, config_, true, adjustment);
  ASSERT_NE(adjustment.wide(), nullptr);
  EXPECT_EQ(adjustment.wide()->rdt_class, "cri-resmgr.gold");
  EXPECT_FALSE(kind_->HoldsStart({.chosen = chosen}, config_));
  Run({Subject("gold")});
  EXPECT_EQ(At("cri-resmgr.gold/tasks"), "\n");
  Configure(kTwoClasses);
  Adjustment none;
  kind_->AtCreation(chosen, config_, true, none);
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(kind_->HoldsStart({.chosen = chosen}, config_));
}

TEST_F(RdtKindTest, ARuntimeThatKnowsGroupsStartsContainersInThem) {
  rdt_groups_ = true;
  const ChosenClasses chosen = Subject("gold").chosen;
  const auto group = [&] {
    Adjustment adjustment;
    kind_->AtCreation(chosen, config_, true, adjustment);
    return adjustment.wide() == nullptr ? "" : adjustment.wide()->rdt_class.value_or("");
  };
  EXPECT_EQ(group(), "") << "there is none yet, and the runtime would refuse it";
  Run();
  EXPECT_EQ(group(), "cri-resmgr.gold");
  // Its exec'ed commands and what an older runtime has started are looked for all the same.
  Run({Subject("gold")});
  EXPECT_THAT(At("cri-resmgr.gold/tasks"), HasSubstr("100\n101\n"));
  Configure(kTwoClasses, "Assign: tasks, ");
  EXPECT_EQ(group(), "");
  Configure(kTwoClasses);
  EXPECT_EQ(group(), "cri-resmgr.gold");
  const ClassesConfig before = std::exchange(config_, {});
  Run();
  config_ = before;
  EXPECT_EQ(group(), "") << "the groups have been given back";
}

TEST_F(RdtKindTest, AContainerThatStartedInItsGroupIsToldApartFromOneWhoseTasksWereMoved) {
  std::vector<ClassSubject> all;
  const auto way = [&](const std::string& id) {
    ClassSubject one = Subject("gold");
    one.id = id;
    if (std::ranges::find(all, id, &ClassSubject::id) == all.end()) all.push_back(one);
    // On the loop.
    const test::ClassedPod classed;
    ChosenClasses chosen;
    EXPECT_TRUE(kind_->Choose(classed.container(), config_, chosen).ok());
    return Run(all).containers.at(id)[0].way;
  };
  rdt_groups_ = true;
  EXPECT_EQ(way("moved"), "by tasks") << "it was created before there was a group";
  EXPECT_EQ(way("moved"), "by tasks");
  EXPECT_EQ(way("started"), "started in its group");
  files_.tree["sys/fs/cgroup/c/cgroup.threads"] = "100\n101\n102\n";
  EXPECT_EQ(way("started"), "started in its group") << "a command of exec was moved";
  EXPECT_THAT(At("cri-resmgr.gold/tasks"), HasSubstr("102"));
  // The next process finds the tasks of both there, and one of a command of exec elsewhere.
  Start();
  EXPECT_EQ(way("moved"), "by tasks");
  files_.tree["sys/fs/cgroup/c/cgroup.threads"] = "100\n101\n102\n103\n";
  EXPECT_EQ(way("started"), "started in its group");
  Start();
  files_.tree["sys/fs/cgroup/c/cgroup.threads"] = "100\n101\n102\n103\n104\n";
  EXPECT_EQ(way("started"), "started in its group");
  EXPECT_EQ(way("moved"), "by tasks");
  // At a door that does not, the tasks of a container were moved by an earlier process.
  rdt_groups_ = false;
  EXPECT_EQ(way("another"), "by tasks");
}

TEST_F(RdtKindTest, MBpsByTheMountAndEighthsByTheRootsValue) {
  files_.tree["proc/mounts"] =
      "sysfs /sys sysfs rw 0 0\nresctrl /sys/fs/resctrl resctrl rw,relatime,mba_MBps 0 0\n";
  files_.tree["sys/fs/resctrl/schemata"] = "    MB:0=4294967295\n    L3:0=fffff\n";
  Configure("{p: {mbAllocation: [50%, 1000MBps], classes: {gold: {}}}}");
  EXPECT_TRUE(StateOf(Run(), "gold").active);
  EXPECT_THAT(At("cri-resmgr.gold/schemata"), HasSubstr("MB:0=1000"));
  files_.tree["proc/mounts"] = "";
  files_.tree["sys/fs/resctrl/info/MB/bandwidth_gran"] = "1\n";
  files_.tree["sys/fs/resctrl/info/MB/min_bandwidth"] = "1\n";
  resctrl_.step = 1;
  files_.tree["sys/fs/resctrl/schemata"] = "    MB:0=2048\n    L3:0=fffff\n";
  Run();
  EXPECT_THAT(At("cri-resmgr.gold/schemata"), HasSubstr("MB:0=8;"));
}

TEST_F(RdtKindTest, AKillBetweenAnyTwoStepsIsMadeGoodByTheNextProcess) {
  const std::vector<ClassSubject> subjects = {Subject("gold", {2, 3})};
  const auto work = [&] {
    Configure(kTwoClasses);
    Run(subjects);
    Configure("{p: {l3Allocation: 50%, classes: {gold: {}, '': {}}}}");
    Run(subjects);
  };
  test::KillBetweenSteps(files_, work, [&](int steps) {
    Start();
    config_ = {};
    Run();
    EXPECT_THAT(Groups(), testing::IsEmpty()) << steps;
    EXPECT_EQ(ParseSchemata(At("schemata")), ParseSchemata(before_["sys/fs/resctrl/schemata"]))
        << steps;
  });
}

TEST_F(RdtKindTest, AnExistingContainerWithAnUnknownClassHasThatOfItsPool) {
  config_.namespaces["rdt"] = {"*"};
  test::ClassedPod classed{.of_pool = {{"rdt", "gold"}}};
  classed.pod.namespace_name = "ns";
  classed.pod.annotations = StringMap({{"rdtclass.resource-policy.nri.io", "bronze"}});
  classed.placement.pool = "fast";
  ChosenClasses chosen;
  const Status status = kind_->Choose(classed.container(), config_, chosen);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  ASSERT_NE(chosen.Find("rdt"), nullptr);
  EXPECT_EQ(chosen.Find("rdt")->name, "gold");
}

}  // namespace
}  // namespace resmgr
