// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/rdt_plan.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/testing/fake_resctrl.h"
#include "pkg/classes/testing/keeper_fixture.h"

namespace resmgr {
namespace {

using testing::HasSubstr;

// Trees of resctrl as machines with other caches and other mount options have them.
class RdtMachineTest : public test::KeeperTest {
 protected:
  using Masks = std::vector<std::pair<std::string, std::string>>;  // of resources

  // "L2 ff, L3 fffff split, MB percent; 8 groups" is what is read of a machine with these.
  std::string Read(const Masks& caches, bool bandwidth, const std::string& mount = "",
                   const std::string& all = "") {
    files_.tree.clear();
    test::FakeResctrl resctrl(files_);
    for (const auto& [resource, mask] : caches)
      resctrl.AddCache(resource, mask, 16);
    const std::string usual = mount.empty() ? "100" : "4294967295";
    if (bandwidth) resctrl.AddBandwidth(8, all.empty() ? usual : all);
    files_.tree["proc/mounts"] =
        fmt::format("resctrl /sys/fs/resctrl resctrl rw,relatime{} 0 0\n", mount);
    const StatusOr<RdtHost> read = ReadRdt(*keeper_);
    if (!read.ok()) return std::string(Message(read.status()));
    std::string text;
    const auto add = [&text](const std::string& more) {
      text.append(text.empty() ? "" : ", ").append(more);
    };
    const auto add_cache = [&add](const char* level, const std::optional<RdtCache>& cache) {
      if (!cache) return;
      EXPECT_EQ(cache->ids, (std::vector<uint32_t>{0, 1}));
      add(fmt::format("{} {:x}{}", level, cache->mask, cache->split ? " split" : ""));
    };
    add_cache("L2", read->machine.l2);
    add_cache("L3", read->machine.l3);
    if (read->machine.mb) {
      const RdtBandwidth::Unit unit = read->machine.mb->unit;
      const bool percent = unit == RdtBandwidth::Unit::kPercent;
      add(percent ? "MB percent" : unit == RdtBandwidth::Unit::kMbps ? "MB MBps" : "MB eighths");
    }
    return fmt::format("{}; {} groups", text, read->most_groups);
  }
};

TEST_F(RdtMachineTest, AllKindsOfMachinesAreRead) {
  EXPECT_EQ(Read({{"L3", "fffff"}}, true), "L3 fffff, MB percent; 8 groups");
  EXPECT_EQ(Read({{"L3", "fffff"}}, false), "L3 fffff; 16 groups");
  EXPECT_EQ(Read({{"L3CODE", "fffff"}, {"L3DATA", "fffff"}}, true),
            "L3 fffff split, MB percent; 8 groups");
  EXPECT_EQ(Read({}, true), "MB percent; 8 groups");
  EXPECT_EQ(Read({{"L3", "fffff"}}, true, ",mba_MBps"), "L3 fffff, MB MBps; 8 groups");
  EXPECT_EQ(Read({{"L2", "ff"}}, false), "L2 ff; 16 groups");
  EXPECT_EQ(Read({{"L2CODE", "ff"}, {"L2DATA", "ff"}}, false), "L2 ff split; 16 groups");
  EXPECT_EQ(Read({{"L2", "ff"}, {"L3", "7ff"}}, true), "L2 ff, L3 7ff, MB percent; 8 groups");
}

TEST_F(RdtMachineTest, TheUnitOfBandwidthIsKnownByTheRootsFirstValueOrTheMount) {
  EXPECT_EQ(Read({}, true, "", "2048"), "MB eighths; 8 groups");
  EXPECT_EQ(Read({}, true, "", "4096"), "MB eighths; 8 groups") << "newer processors of AMD";
  EXPECT_EQ(Read({}, true, ",mba_MBps", "90"), "MB MBps; 8 groups");
  EXPECT_EQ(Read({}, true, "", "4294967295"), "MB MBps; 8 groups");
  files_.unreadable = {"proc/mounts"};
  EXPECT_EQ(Read({}, true, ",mba_MBps"), "MB MBps; 8 groups");
  EXPECT_EQ(Read({}, true, ",mba_MBps", "90"), "cannot read proc/mounts");
}

TEST_F(RdtMachineTest, AMaskThatIsNoneIsNamed) {
  EXPECT_EQ(Read({{"L3", "ff0"}}, false),
            "sys/fs/resctrl/info/L3/cbm_mask is 0xff0, which is no mask from bit 0");
  EXPECT_EQ(Read({{"L3", "x"}}, false), "; 4294967295 groups") << "the schemata has no such value";
}

class RdtMonitorKindTest : public test::KeeperTest {
 protected:
  RdtMonitorKindTest() {
    resctrl_.AddCache("L3", "fffff", 16);
    files_.tree["sys/fs/resctrl/info/L3_MON/num_rmids"] = "8\n";
    files_.tree["sys/devices/system/cpu/online"] = "0-7\n";
    files_.tree["sys/fs/cgroup/a/cgroup.threads"] = "100\n101\n";
    files_.tree["sys/fs/cgroup/b/cgroup.threads"] = "200\n";
    // Directories without files are not in the tree.
    files_.tree["sys/fs/resctrl/mon_groups/.keep"] = "";
    files_.on_make = [this](const std::string& group) {
      resctrl_.AddGroup(group);
      if (group.find("/mon_groups/") == std::string::npos)
        files_.tree[group + "/mon_groups/.keep"] = "";
    };
    before_ = files_.tree;
    Configure("pod");
  }
  void Configure(std::string_view monitoring) {
    KeeperTest::Configure(
        fmt::format("{{rdt: {{Monitoring: {}, partitions: {{all: {{l3Allocation: 100%, classes: "
                    "{{gold: {{}}}}}}}}}}}}",
                    monitoring));
  }
  static ClassSubject Subject(const std::string& cgroup, const CpuSet& cpus = {}) {
    ClassSubject subject{.container = "ns/pod/" + cgroup,
                         .id = "id-" + cgroup,
                         .pod_uid = "uid-1",
                         .cgroup = "sys/fs/cgroup/" + cgroup};
    subject.cpus = cpus;
    subject.chosen.by_name["rdt"] = {.name = "gold", .source = "annotation x", .by_pod = true};
    return subject;
  }
  ClassReport Run(const std::vector<ClassSubject>& subjects,
                  const std::vector<ClassPool>& pools = {}) {
    return KeeperTest::Run({rdt_.get(), monitor_.get()}, subjects, pools);
  }
  static const ClassState& StateOf(const ClassReport& report) {
    return KeeperTest::StateOf(report, "(monitoring)");
  }
  std::string At(const std::string& file) const {
    const auto found = files_.tree.find(kGroup + file);
    return found == files_.tree.end() ? "none" : found->second;
  }

  const std::string kGroup = "sys/fs/resctrl/cri-resmgr.gold/mon_groups/cri-resmgr.uid-1/";
  test::FakeResctrl resctrl_{files_};
  const std::unique_ptr<ClassKind> rdt_ = MakeRdtKind({});
  const std::unique_ptr<ClassKind> monitor_ = MakeRdtMonitorKind();
};

TEST_F(RdtMonitorKindTest, APodHasAGroupWithTheTasksOfItsContainersUntilItEnds) {
  const ClassReport report = Run({Subject("a"), Subject("b")});
  EXPECT_TRUE(StateOf(report).active) << StateOf(report).reason;
  EXPECT_EQ(At("tasks"), "\n100\n101\n200\n");
  EXPECT_EQ(files_.tree.at("sys/fs/resctrl/cri-resmgr.gold/tasks"), "\n100\n101\n200\n")
      << "a task stays in its group of the class";
  const std::vector<std::string> written = files_.written;
  Run({Subject("a"), Subject("b")});
  EXPECT_EQ(files_.written, written) << "nothing is written twice";
  Run({});
  EXPECT_EQ(At("tasks"), "none");
}

TEST_F(RdtMonitorKindTest, TasksOfCgroupsBelowTheContainersAreMonitored) {
  files_.tree["sys/fs/cgroup/a/init/cgroup.threads"] = "102\n";
  Run({Subject("a")});
  EXPECT_EQ(At("tasks"), "\n100\n101\n102\n");
}

TEST_F(RdtMonitorKindTest, CpusOfAContainerAloneAreMonitoredWithoutTasks) {
  Run({Subject("a", CpuSet{2, 3})});
  EXPECT_EQ(At("cpus_list"), "2-3");
  EXPECT_EQ(At("tasks"), "\n");
}

// Such tasks are in the root group, and only a monitoring group there takes them.
TEST_F(RdtMonitorKindTest, TasksThatHaveAPoolsClassByItsCpusAreMonitoredInTheRootGroup) {
  std::vector<ClassSubject> subjects = {Subject("a"), Subject("b")};
  for (ClassSubject& subject : subjects) {
    subject.pool = "fast";
    subject.chosen.by_name["rdt"].by_pod = false;
  }
  const std::vector<ClassPool> pools = {
      {.name = "fast", .cpus = {2, 3}, .classes = {{"rdt", "gold"}}}};
  Run({subjects[0]});
  ASSERT_EQ(At("tasks"), "\n100\n101\n") << "the pool had no class yet";
  const ClassReport report = Run(subjects, pools);
  EXPECT_TRUE(StateOf(report).active) << StateOf(report).reason;
  EXPECT_EQ(files_.tree["sys/fs/resctrl/mon_groups/cri-resmgr.uid-1/tasks"], "\n100\n101\n200\n");
  EXPECT_EQ(At("tasks"), "none");
}

// A task that another program has put into its group stays there.
TEST_F(RdtMonitorKindTest, TasksInAGroupOfOthersAreNotMovedToBeMonitored) {
  resctrl_.AddGroup("sys/fs/resctrl/theirs");
  files_.tree["sys/fs/resctrl/theirs/tasks"] = "\n100\n";
  ClassSubject subject = Subject("a");
  subject.pool = "fast";
  subject.chosen.by_name["rdt"].by_pod = false;
  const ClassReport report =
      Run({subject}, {{.name = "fast", .cpus = {2, 3}, .classes = {{"rdt", "gold"}}}});
  EXPECT_FALSE(StateOf(report).active);
  EXPECT_EQ(files_.tree["sys/fs/resctrl/theirs/tasks"], "\n100\n");
}

// The kernel takes the CPUs from the monitoring groups of a group that gets other ones.
TEST_F(RdtMonitorKindTest, CpusAreMonitoredStillWhenTheClassGetsMore) {
  Configure("container");
  const std::string above = "sys/fs/resctrl/cri-resmgr.gold/mon_groups/cri-resmgr.";
  std::vector<ClassSubject> subjects = {Subject("a", CpuSet{2, 3})};
  Run(subjects);
  ClassReport report = Run(subjects, {{.name = "p", .cpus = {6}, .classes = {{"rdt", "gold"}}}});
  EXPECT_EQ(files_.tree["sys/fs/resctrl/cri-resmgr.gold/cpus_list"], "2-3,6");
  EXPECT_EQ(files_.tree[above + "id-a/cpus_list"], "2-3");
  EXPECT_THAT(report.notes, testing::IsEmpty());
  subjects.push_back(Subject("b", CpuSet{4}));
  report = Run(subjects);
  EXPECT_EQ(files_.tree[above + "id-a/cpus_list"], "2-3");
  EXPECT_EQ(files_.tree[above + "id-b/cpus_list"], "4");
  EXPECT_TRUE(StateOf(report).active) << StateOf(report).reason;
  EXPECT_THAT(report.notes, testing::IsEmpty());
}

// The kernel refuses a list with a CPU that is offline.
TEST_F(RdtMonitorKindTest, CpusThatAreOfflineAreNotMonitored) {
  files_.tree["sys/devices/system/cpu/online"] = "0-2,4-7\n";
  const ClassReport report = Run({Subject("a", CpuSet{2, 3})});
  EXPECT_EQ(At("cpus_list"), "2");
  EXPECT_TRUE(StateOf(report).active) << StateOf(report).reason;
}

TEST_F(RdtMonitorKindTest, WithoutAnIdThatIsLeftContainersHaveTheirClassAllTheSame) {
  files_.refuses[kGroup + "."] = ENOSPC;
  const ClassReport report = Run({Subject("a")});
  EXPECT_FALSE(StateOf(report).active);
  EXPECT_THAT(StateOf(report).reason, HasSubstr("No space left on device"));
  EXPECT_EQ(files_.tree.at("sys/fs/resctrl/cri-resmgr.gold/tasks"), "\n100\n101\n");
}

TEST_F(RdtMonitorKindTest, AMachineWithoutMonitoringHasNone) {
  files_.tree.erase("sys/fs/resctrl/info/L3_MON/num_rmids");
  const ClassReport report = Run({Subject("a")});
  EXPECT_THAT(StateOf(report).reason, HasSubstr("info/L3_MON/num_rmids"));
  EXPECT_EQ(At("tasks"), "none");
}

// Its journal was lost, and so were the names of its groups.
TEST_F(RdtMonitorKindTest, GroupsThatNoJournalHasAreRemovedOnceTheyAreEmpty) {
  const std::string above = "sys/fs/resctrl/cri-resmgr.gold/mon_groups/";
  Run({});
  for (const std::string& group :
       {above + "cri-resmgr.uid-1", above + "cri-resmgr.uid-2", above + "cri-resmgr.uid-3",
        above + "theirs", std::string("sys/fs/resctrl/mon_groups/cri-resmgr.uid-4")})
    resctrl_.AddGroup(group);
  files_.tree[above + "cri-resmgr.uid-3/tasks"] = "\n7\n";
  const auto has = [this](const std::string& group) {
    return files_.tree.contains(group + "/tasks");
  };
  Run({Subject("a")});
  EXPECT_EQ(At("tasks"), "\n100\n101\n") << "a pod's that lives";
  EXPECT_FALSE(has(above + "cri-resmgr.uid-2"));
  EXPECT_TRUE(has(above + "cri-resmgr.uid-3"));
  EXPECT_TRUE(has(above + "theirs"));
  EXPECT_FALSE(has("sys/fs/resctrl/mon_groups/cri-resmgr.uid-4"));
  // Its tasks have ended.
  files_.tree[kGroup + "tasks"] = "\n";
  Configure("none");
  Run({});
  EXPECT_EQ(At("tasks"), "none");
}

TEST_F(RdtMonitorKindTest, TheConfigurationSwitchesItOffAndOthersGroupsStay) {
  const std::string theirs = "sys/fs/resctrl/mon_groups/theirs/tasks";
  files_.tree[theirs] = "\n";
  Run({Subject("a")});
  ASSERT_NE(At("tasks"), "none");
  Configure("none");
  const ClassReport report = Run({Subject("a")});
  EXPECT_EQ(StateOf(report).reason, "there is no such class");
  EXPECT_EQ(At("tasks"), "none");
  EXPECT_TRUE(files_.tree.contains(theirs));
}

TEST_F(RdtMonitorKindTest, EachContainerHasAGroupWhereTheConfigurationSaysSo) {
  const std::string above = "sys/fs/resctrl/cri-resmgr.gold/mon_groups/cri-resmgr.";
  Run({Subject("a"), Subject("b")});
  Configure("container");
  const ClassReport report = Run({Subject("a"), Subject("b")});
  EXPECT_TRUE(StateOf(report).active) << StateOf(report).reason;
  EXPECT_EQ(files_.tree.at(above + "id-a/tasks"), "\n100\n101\n");
  EXPECT_EQ(files_.tree.at(above + "id-b/tasks"), "\n200\n");
  EXPECT_EQ(At("tasks"), "none") << "the pod's";
  Run({Subject("b")});
  EXPECT_FALSE(files_.tree.contains(above + "id-a/tasks"));
}

TEST_F(RdtMonitorKindTest, NamesThatAreNoFilesAndThreadsOutOfSightAreLeftOut) {
  ClassSubject subject = Subject("a");
  subject.pod_uid = "../x";
  Run({subject});
  files_.tree["sys/fs/cgroup/b/cgroup.threads"] = "0\n";
  Run({Subject("b")});
  EXPECT_EQ(At("tasks"), "\n");
}

}  // namespace
}  // namespace resmgr
