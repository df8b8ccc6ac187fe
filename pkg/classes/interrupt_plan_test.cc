// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/interrupt_plan.h"

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/base/parse.h"
#include "pkg/classes/class_worker.h"
#include "pkg/classes/cpu_machine.h"
#include "pkg/classes/cpu_mask.h"
#include "pkg/classes/irqbalance.h"
#include "pkg/classes/testing/keeper_fixture.h"

namespace resmgr {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// CPUs 0-15, as in nri-plugins' test25.
class InterruptPlanTest : public test::KeeperTest {
 protected:
  InterruptPlanTest() {
    auto& tree = files_.tree;
    tree["sys/devices/system/cpu/online"] = "0-15\n";
    tree["proc/irq/default_smp_affinity"] = "ffff\n";
    tree["proc/interrupts"] =
        "            CPU0\n"
        "   4:          0   IO-APIC    4-edge      ttyS0\n"
        "   8:          1   IO-APIC    8-edge      rtc0\n"
        "   9:          0   IO-APIC    9-fasteoi   acpi\n";
    for (const int number : {4, 8, 9})
      tree[Path(number)] = "ffff\n";
    for (int cpu = 0; cpu < 16; ++cpu)
      tree[CpuFile(cpu, "topology/thread_siblings_list")] =
          fmt::format("{}-{}\n", cpu / 2 * 2, cpu / 2 * 2 + 1);
    before_ = tree;
  }
  static std::string Path(int number) { return fmt::format("proc/irq/{}/smp_affinity", number); }
  static ClassPool Pool(const CpuSet& cpus, ClassNames classes) {
    return {
        .name = fmt::format("b[{}]", cpus.First()), .cpus = cpus, .classes = std::move(classes)};
  }
  static ClassSubject Subject(const CpuSet& cpus, IsolationConfig::Interrupts interrupts) {
    ClassSubject subject{.container = "ns/pod/c", .id = "id", .cpus = cpus};
    subject.chosen.isolation.isolation.interrupts = interrupts;
    return subject;
  }
  ClassReport Apply(const std::vector<ClassPool>& pools,
                    const std::vector<ClassSubject>& subjects = {}) {
    return Run({kind_.get()}, subjects, pools);
  }
  std::string At(int number) const { return std::string(Trim(files_.tree.at(Path(number)))); }

  const std::unique_ptr<ClassKind> kind_ = MakeIsolationKind({});
};

TEST_F(InterruptPlanTest, ClaimedOnesRunThereAlone) {
  Apply({Pool({2, 3}, {{"irq-claim", "ttyS0\nrtc0"}})});
  EXPECT_EQ(At(4) + " " + At(8) + " " + At(9), "000c 000c ffff");
  Apply({Pool({2, 3}, {{"irq-claim", "ttyS0"}}), Pool({6}, {{"irq-claim", "tty*\n8"}})});
  EXPECT_EQ(At(4) + " " + At(8) + " " + At(9), "004c 0040 ffff") << "of all that claim it";
  Apply({});
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(InterruptPlanTest, TheyStayAwayFromIsolatedPools) {
  Apply({Pool({2, 3}, {{"irq", "isolate"}})});
  EXPECT_EQ(At(4) + " " + At(9), "fff3 fff3");
  Apply({Pool({2, 3}, {{"irq", "isolate"}, {"irq-claim", "rtc0\nttyS"}})});
  EXPECT_EQ(At(4) + " " + At(8), "fff3 000c") << "\"ttyS\" without a star matches nothing";
  Apply({});
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(InterruptPlanTest, SinksTakeAllThatIsNotClaimed) {
  Apply({Pool({5}, {{"irq", "sink"}})});
  EXPECT_EQ(At(4) + " " + At(8) + " " + At(9), "0020 0020 0020");
  Apply({Pool({5}, {{"irq", "sink"}}), Pool({2, 3}, {{"irq-claim", "ttyS0\nrtc0"}})});
  EXPECT_EQ(At(4) + " " + At(8) + " " + At(9), "000c 000c 0020");
  Apply({Pool({2, 3}, {{"irq-claim", "ttyS0\nrtc0"}})});
  EXPECT_EQ(At(9), "ffff") << "the sink is gone";
  Apply({});
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(InterruptPlanTest, OnlyControllableOnesAreClaimed) {
  config_.controllable = {"acpi"};
  Apply({Pool({2, 3}, {{"irq-claim", "ttyS0"}, {"irq", "isolate"}})});
  EXPECT_EQ(At(4) + " " + At(9), "ffff fff3");
}

TEST_F(InterruptPlanTest, AClaimWithoutEffectIsNoted) {
  const auto noted = [this](const std::string& claim) {
    const ClassReport report = Apply({Pool({2, 3}, {{"irq-claim", claim}})});
    EXPECT_EQ(report.classes.at(0).name, "claim");
    EXPECT_TRUE(report.classes.at(0).active);
    return report.classes.at(0).reason;
  };
  EXPECT_EQ(noted("rtc0\ntty*"), "");
  EXPECT_EQ(noted("rtc0\nttyS\neth*"), "no interrupt matches eth*, ttyS");
  config_.controllable = {"rtc*"};
  EXPECT_EQ(noted("rtc0\nttyS0\n9\neth0"),
            "no interrupt matches eth0; no controllable interrupt matches 9, ttyS0");
  Apply({});
  files_.refuses[Path(8)] = EPERM;
  EXPECT_EQ(noted("rtc*\neth0"),
            "no interrupt matches eth0; the kernel does not let these be moved: 8 (rtc0)");
}

// The kernel answers ERANGE for a mask with any CPU that it cannot have, and EINVAL for an empty
// one.
TEST_F(InterruptPlanTest, MasksHaveCpusThatAreOnlineAlone) {
  files_.tree["sys/devices/system/cpu/online"] = "0-11\n";
  files_.on_write = [this](const std::string& path, std::string_view text) {
    const StatusOr<CpuSet> cpus = ParseCpuMask(text);
    const bool wrong = !cpus.ok() || cpus->empty() || !cpus->IsSubsetOf(CpuSet::Range(0, 15));
    files_.refuses[path] = wrong ? ERANGE : 0;
  };
  for (const CpuSet& cpus : {CpuSet{10, 20}, CpuSet{10, 13}}) {
    for (const ClassNames& classes :
         {ClassNames{{"irq-claim", "ttyS0"}}, ClassNames{{"irq", "sink"}}}) {
      const ClassReport report = Apply({Pool(cpus, classes)});
      EXPECT_EQ(At(4), "0400") << report.classes.at(0).reason;
      EXPECT_TRUE(report.classes.at(0).active) << report.classes.at(0).reason;
    }
    Apply({Pool(cpus, {{"irq", "isolate"}})});
    EXPECT_FALSE(ParseCpuMask(At(4))->Contains(10));
  }
  Apply({Pool({12, 20}, {{"irq-claim", "ttyS0"}})});
  EXPECT_EQ(At(4), "ffff") << "no CPU of the claim is online";
}

// The examples of nri-plugins' documentation.
TEST_F(InterruptPlanTest, ContainersClaimAndMaskSingleInterrupts) {
  const auto wants = [](const CpuSet& cpus, const InterruptWish& wish) {
    ClassSubject subject{
        .container = "ns/pod/c", .id = fmt::format("{}", cpus.First()), .cpus = cpus};
    subject.chosen.isolation.affinity = wish;
    EXPECT_TRUE(subject.chosen.any());
    return subject;
  };
  const ClassSubject pump = wants({2, 3}, {.claim = {"*ttyS0*"}, .mask = {"*"}});
  const ClassSubject rest = wants({6}, {.claim = {"*"}, .mask = {"*ttyS0*"}, .mask_wins = true});
  const ClassReport report = Apply({}, {pump, rest});
  EXPECT_EQ(At(4) + " " + At(8) + " " + At(9), "000c 0040 0040");
  EXPECT_EQ(report.containers.at("2").at(0).name, "affinity");
  EXPECT_EQ(report.containers.at("2").at(0).in_force, "3 interrupts moved");
  EXPECT_TRUE(report.containers.at("6").at(0).active);
  Apply({}, {wants({2, 3}, {.mask = {"*"}})});
  EXPECT_EQ(At(4) + " " + At(8) + " " + At(9), "fff3 fff3 fff3");
  EXPECT_EQ(files_.tree.at("proc/irq/default_smp_affinity"), "ffff\n");
  Apply({}, {wants({2, 3}, {.claim = {"4", "8"}, .mask = {"rtc0"}, .mask_wins = true})});
  EXPECT_EQ(At(4) + " " + At(8) + " " + At(9), "000c fff3 ffff");
  // Beside pools: a sink gives way to a mask, and a claim of a pool counts, too.
  Apply({Pool({2, 5}, {{"irq", "sink"}}), Pool({7}, {{"irq-claim", "rtc0"}})},
        {wants({2}, {.claim = {"8"}, .mask = {"acpi"}})});
  EXPECT_EQ(At(4) + " " + At(8) + " " + At(9), "0024 0084 0020");
  Apply({});
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(InterruptPlanTest, HousekeepingKeepsTheFirstCore) {
  const ClassReport report =
      Apply({}, {Subject({4, 5, 6, 7}, IsolationConfig::Interrupts::kHousekeeping)});
  EXPECT_EQ(At(9), "ff3f");
  EXPECT_EQ(report.containers.at("id").at(0).name, "housekeeping");
  Apply({});
  EXPECT_EQ(files_.tree, before_);
}

// The interrupt begins with our affinity, and has no former value.
TEST_F(InterruptPlanTest, OneThatIsPluggedInMeanwhileGetsTheMachinesAffinityLater) {
  const auto isolated = Subject({2, 3}, IsolationConfig::Interrupts::kIsolate);
  Apply({}, {isolated});
  files_.tree[Path(30)] = "fff3\n";
  files_.tree[Path(31)] = "0001\n";
  Apply({}, {isolated});
  EXPECT_EQ(At(30), "fff3");
  Apply({}, {isolated});
  Apply({});
  EXPECT_EQ(At(30), "ffff");
  EXPECT_EQ(At(31), "0001") << "its driver chose it";
  EXPECT_EQ(At(9), "ffff");
  EXPECT_TRUE(journal_->entries().empty());
}

TEST_F(InterruptPlanTest, ANumberThatIsUsedAgainIsALaterInterrupt) {
  const auto isolated = Subject({2, 3}, IsolationConfig::Interrupts::kIsolate);
  Apply({}, {isolated});
  files_.tree.erase(Path(9));
  Apply({}, {isolated});
  files_.tree[Path(9)] = "fff3\n";
  Apply({}, {isolated});
  Apply({});
  EXPECT_EQ(At(9), "ffff");
}

TEST_F(InterruptPlanTest, AComparisonDoesNotMakeAnInterruptKnown) {
  const std::vector<ClassSubject> isolated = {
      Subject({2, 3}, IsolationConfig::Interrupts::kIsolate)};
  Apply({}, isolated);
  files_.tree[Path(30)] = "fff3\n";
  ClassPlan compared;
  kind_->Plan({.subjects = isolated, .pools = {}, .config = config_, .host = *keeper_}, compared);
  EXPECT_THAT(keeper_->Compare(compared.values), IsEmpty());
  Apply({}, isolated);
  Apply({});
  EXPECT_EQ(At(30), "ffff");
}

TEST_F(InterruptPlanTest, OneThatWasThereWithThatAffinityKeepsIt) {
  files_.tree[Path(9)] = "fff3\n";
  before_ = files_.tree;
  const auto isolated = Subject({2, 3}, IsolationConfig::Interrupts::kIsolate);
  Apply({}, {isolated});
  Apply({}, {isolated});
  Apply({});
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(InterruptPlanTest, IrqbalanceIsToldAndGetsItsCpusBack) {
  constexpr const char* kSocket = "run/irqbalance/irqbalance77.sock";
  files_.tree[kSocket] = "8000\n";
  before_ = files_.tree;
  Apply({}, {Subject({2, 3}, IsolationConfig::Interrupts::kIsolate)});
  EXPECT_EQ(files_.tree.at(kSocket), "800c");
  Apply({}, {Subject({3}, IsolationConfig::Interrupts::kIsolate)});
  EXPECT_EQ(files_.tree.at(kSocket), "8008");
  Apply({});
  EXPECT_EQ(files_.tree, before_);
  config_.balance = false;
  Apply({}, {Subject({2, 3}, IsolationConfig::Interrupts::kIsolate)});
  EXPECT_EQ(files_.tree.at(kSocket), "8000\n");
}

TEST_F(InterruptPlanTest, IrqbalanceLeavesInterruptsAloneForWhichCpusAreChosen) {
  constexpr const char* kSocket = "run/irqbalance/irqbalance77.sock";
  const std::string list = std::string(kSocket) + "/interrupts";
  files_.tree[kSocket] = "0\n";
  files_.tree[list] = "7\n";
  before_ = files_.tree;
  const ClassReport report = Apply({Pool({2, 3}, {{"irq-claim", "ttyS0\nrtc0"}})});
  EXPECT_EQ(files_.tree.at(list), "4 7 8\n") << "beside that of the administrator";
  EXPECT_EQ(files_.tree.at(kSocket), "0\n") << "others may run there";
  EXPECT_TRUE(report.classes.at(0).active);
  Apply({Pool({2, 3}, {{"irq-claim", "ttyS0"}})});
  EXPECT_EQ(files_.tree.at(list), "4 7\n");
  // A container that masks one of them, and one that is alone on its CPUs.
  ClassSubject masks = Subject({6}, IsolationConfig::Interrupts::kIsolate);
  masks.chosen.isolation.affinity = {.mask = {"rtc0"}};
  Apply({}, {masks});
  EXPECT_EQ(files_.tree.at(list), "7 8\n");
  EXPECT_EQ(files_.tree.at(kSocket), "40");
  // Where there is a sink, everything else may be moved within it.
  Apply({Pool({5, 6}, {{"irq", "sink"}}), Pool({2, 3}, {{"irq-claim", "ttyS0"}})});
  EXPECT_EQ(files_.tree.at(list), "4 7\n");
  EXPECT_EQ(files_.tree.at(kSocket), "ff9f");
  Apply({});
  EXPECT_EQ(files_.tree, before_);
  config_.balance = false;
  Apply({Pool({2, 3}, {{"irq-claim", "ttyS0"}})});
  EXPECT_EQ(files_.tree.at(list), "7\n");
}

TEST_F(InterruptPlanTest, WhatIrqbalanceHasNoRoomForIsNoted) {
  const std::string list = "run/irqbalance/irqbalance77.sock/interrupts";
  files_.tree["run/irqbalance/irqbalance77.sock"] = "0\n";
  files_.tree[list] = "\n";
  for (int number = 1000; number < 1060; ++number)
    files_.tree[Path(number)] = "ffff\n";
  before_ = files_.tree;
  const ClassReport report = Apply({Pool({2, 3}, {{"irq-claim", "1*"}})});
  EXPECT_LE(files_.tree.at(list).size(), 240U);
  EXPECT_THAT(files_.tree.at(list), testing::StartsWith("1000 1001 "));
  EXPECT_TRUE(report.classes.at(0).active);
  EXPECT_EQ(report.classes.at(0).reason,
            "irqbalance has no room for these and may move them: 1048, 1049, 1050, 1051, 1052 and "
            "7 more");
  Apply({});
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(InterruptPlanTest, IrqbalanceThatCannotBeToldIsNamed) {
  const std::string list = "run/irqbalance/irqbalance77.sock/interrupts";
  files_.tree["run/irqbalance/irqbalance77.sock"] = "0\n";
  files_.tree[list] = "\n";
  files_.refuses[list] = EAGAIN;
  const ClassReport report = Apply({Pool({2, 3}, {{"irq-claim", "ttyS0"}})});
  EXPECT_FALSE(report.classes.at(0).active);
  EXPECT_THAT(report.classes.at(0).reason, HasSubstr(list));
  EXPECT_EQ(At(4), "000c");
}

TEST_F(InterruptPlanTest, WithoutIrqbalanceItsFileIsWrittenIfItIsNamed) {
  constexpr const char* kFile = "etc/default/irqbalance";
  files_.tree[kFile] = "# of the distribution\nIRQBALANCE_ARGS=\"\"\n";
  before_ = files_.tree;
  const auto isolated = Subject({2, 3}, IsolationConfig::Interrupts::kIsolate);
  Apply({}, {isolated});
  EXPECT_EQ(files_.tree.at(kFile), before_.at(kFile));
  config_.balance_file = "/etc/default/irqbalance";
  Apply({}, {isolated});
  EXPECT_THAT(files_.tree.at(kFile), HasSubstr("IRQBALANCE_ARGS=\"\"\n"
                                               "IRQBALANCE_BANNED_CPULIST=2-3\n"));
  Apply({});
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(InterruptPlanTest, AnAdministratorsEditsOfIrqbalancesFileStay) {
  constexpr const char* kFile = "etc/default/irqbalance";
  const std::string lines = "# mine\nIRQBALANCE_BANNED_CPUS=\"8000\"\nA=1\n";
  files_.tree[kFile] = lines;
  config_.balance_file = "/etc/default/irqbalance";
  const auto isolated = Subject({2, 3}, IsolationConfig::Interrupts::kIsolate);
  Apply({}, {isolated});
  files_.tree[kFile] += "B=2\n";
  Apply({}, {isolated});
  EXPECT_THAT(files_.tree.at(kFile), HasSubstr("A=1\n"));
  EXPECT_THAT(files_.tree.at(kFile), HasSubstr("B=2\n"));
  EXPECT_THAT(files_.tree.at(kFile), HasSubstr("IRQBALANCE_BANNED_CPULIST=2-3,15\n"));
  Apply({}, {Subject({3}, IsolationConfig::Interrupts::kIsolate)});
  EXPECT_THAT(files_.tree.at(kFile), HasSubstr("B=2\n"));
  EXPECT_THAT(files_.tree.at(kFile), HasSubstr("IRQBALANCE_BANNED_CPULIST=3,15\n"));
  Apply({});
  EXPECT_EQ(files_.tree.at(kFile), lines + "B=2\n");
}

// It has read the CPUs from its environment file, so they are not a ban of its own.
TEST_F(InterruptPlanTest, AnIrqbalanceThatBeganWithThisFileGetsItsCpusBack) {
  constexpr const char* kFile = "etc/default/irqbalance";
  constexpr const char* kSocket = "run/irqbalance/irqbalance77.sock";
  config_.balance_file = "/etc/default/irqbalance";
  const auto isolated = Subject({2, 3}, IsolationConfig::Interrupts::kIsolate);
  const auto begins = [&] {
    files_.tree.erase(kSocket);
    files_.tree[kFile] = "IRQBALANCE_BANNED_CPULIST=15\n";
    Apply({}, {isolated});
    files_.tree[kSocket] = "800c\n";
  };
  begins();
  Apply({}, {isolated});
  EXPECT_EQ(files_.tree.at(kSocket), "800c\n");
  EXPECT_EQ(files_.tree.at(kFile), "IRQBALANCE_BANNED_CPULIST=15\n");
  Apply({});
  EXPECT_EQ(Trim(files_.tree.at(kSocket)), "8000");
  // The container has ended before this daemon sees the socket.
  begins();
  Apply({});
  Apply({});
  EXPECT_EQ(Trim(files_.tree.at(kSocket)), "8000");
  EXPECT_EQ(files_.tree.at(kFile), "IRQBALANCE_BANNED_CPULIST=15\n");
  EXPECT_TRUE(journal_->entries().empty());
}

TEST_F(InterruptPlanTest, AFileOfIrqbalanceThatCannotBeReadIsTold) {
  const auto isolated = Subject({2, 3}, IsolationConfig::Interrupts::kIsolate);
  config_.balance_file = "/etc/default/irqbalence";
  const ClassReport report = Apply({}, {isolated});
  EXPECT_TRUE(report.classes.at(0).active);
  EXPECT_THAT(report.classes.at(0).reason, HasSubstr("irqbalance may use all CPUs once it runs: "
                                                     "there is no"));
  // The file is of no importance while irqbalance takes its settings.
  files_.tree["run/irqbalance/irqbalance77.sock"] = "0\n";
  EXPECT_EQ(Apply({}, {isolated}).classes.at(0).reason, "");
}

}  // namespace
}  // namespace resmgr
