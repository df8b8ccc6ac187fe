// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/auditor.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A brain with a runtime in memory, and a folder in place of the cgroups.
class AuditorTest : public test::ManagerFixture {
 protected:
  AuditorTest() { cgroups_.Put("cgroup.controllers", ""); }

  // Sets the CPUs in the container's cgroup; pods of the test node have no parent cgroup.
  void PutCpus(const ContainerId& id, std::string_view cpus) {
    cgroups_.Put(fmt::format("{}/cpuset.cpus", id.value()), fmt::format("{}\n", cpus));
  }
  // The same below the pods' cgroup `above`, with its effective CPUs.
  void PutBelow(const std::string& above, const ContainerId& id, std::string_view cpus,
                std::string_view effective) {
    RemoveCgroup(id);
    const std::string directory = fmt::format("{}/{}/", above, id.value());
    cgroups_.Put(directory + "cpuset.cpus", fmt::format("{}\n", cpus));
    cgroups_.Put(directory + "cpuset.cpus.effective", fmt::format("{}\n", effective));
  }
  void RemoveCgroup(const ContainerId& id) const {
    std::filesystem::remove_all(cgroups_.File(std::string(id.value())));
  }
  // Runs a container whose cgroup has the decided values.
  ContainerId Run(std::string_view name, int64_t milli_cpu) {
    const QosClass qos = milli_cpu % 1000 == 0 ? QosClass::kGuaranteed : QosClass::kBurstable;
    ContainerId id = node_.Run(name, qos, milli_cpu);
    PutCpus(id, node_.Placed(id));
    return id;
  }

  void Ask(bool repair, std::optional<StatusOr<AuditReport>>& result) {
    auditor_->Run(repair, [&result](StatusOr<AuditReport> report) { result = std::move(report); });
  }
  // The problems as sentences with their advice.
  std::vector<std::string> Problems() const {
    std::vector<std::string> texts;
    for (const Problem& problem : auditor_->problems())
      texts.push_back(problem.message + (problem.next.empty() ? "" : "; " + problem.next));
    return texts;
  }
  StatusOr<AuditReport> Audit(bool repair = false) {
    std::optional<StatusOr<AuditReport>> result;
    Ask(repair, result);
    EXPECT_TRUE(RunAnswering([&] { return result.has_value(); }));
    return result ? *std::move(result) : Internal("no answer");
  }
  // Begins an audit and runs until it has asked the runtime.
  void AskRuntime(std::optional<StatusOr<AuditReport>>& result) {
    Ask(false, result);
    ASSERT_TRUE(node_.RunUntil([&] { return !runtime().lists.empty(); }));
  }
  // Runs until `done`; the runtime answers each request for a list.
  bool RunAnswering(const std::function<bool()>& done) {
    return node_.RunUntil([&] {
      if (!runtime().lists.empty()) runtime().AnswerList();
      return done();
    });
  }
  // Another program writes `cpus` into the container's cgroup, and again after the first such value
  // is gone.
  void WriteTwice(const ContainerId& id, std::string_view cpus) {
    const size_t others = Audit()->drifted;
    PutCpus(id, cpus);
    ASSERT_EQ(Audit()->drifted, others + 1);
    PutCpus(id, node_.Placed(id));
    ASSERT_EQ(Audit()->drifted, others);
    PutCpus(id, cpus);
    ASSERT_EQ(Audit()->drifted, others + 1);
  }
  static std::vector<std::string> Texts(const StatusOr<AuditReport>& report) {
    std::vector<std::string> texts;
    if (!report.ok()) return {std::string(Message(report.status()))};
    for (const AuditReport::Finding& finding : report->findings) {
      for (const Drift& drift : finding.drifts)
        texts.push_back(finding.container + ": " + Describe(drift));
      if (!finding.unread.empty()) texts.push_back(finding.container + ": " + finding.unread);
    }
    return texts;
  }
  void MakeAuditor(milliseconds patience = std::chrono::seconds(30)) {
    auditor_ = std::make_unique<Auditor>(Auditor::Options{
        .loop = node_.loop(),
        .manager = [this] { return active_ ? &brain_->manager() : nullptr; },
        .cgroups = CgroupReader(cgroups_.path(), "/proc", cgroups_.File("online")),
        .numbers_are_ours = [this] { return numbers_are_ours_; },
        .told =
            [this](const StatusOr<AuditReport>& result) {
              const bool nothing = result.status().code() == StatusCode::kFailedPrecondition;
              told_.push_back(result.ok() ? static_cast<int>(result->drifted)
                              : nothing   ? kNothingToCompare
                                          : kFailed);
            },
        .patience = patience,
        .soon = milliseconds(1),
        .soon_again = milliseconds(100),
        .left_alone = left_alone_});
  }
  void SetUp() override { MakeAuditor(); }

  TempDir cgroups_;
  milliseconds left_alone_ = std::chrono::minutes(5);
  bool active_ = true;
  test::TestNode* brain_ = &node_;  // whose manager is active
  bool numbers_are_ours_ = true;
  static constexpr int kFailed = -1;
  static constexpr int kNothingToCompare = -2;
  std::vector<int> told_;  // how many had drifted, or one of these two
  std::unique_ptr<Auditor> auditor_;
};

TEST_F(AuditorTest, FindsNothingWhereAllIsAsDecided) {
  Run("a", 2000);
  Run("shared", 100);
  const auto report = Audit();
  EXPECT_THAT(Texts(report), IsEmpty());
  EXPECT_EQ(report->checked, 2U);
  EXPECT_EQ(report->runtime_problem, "");
  EXPECT_THAT(told_, ElementsAre(0));
}

TEST_F(AuditorTest, AContainerWhoseCgroupIsNotFoundIsNotCompared) {
  Run("a", 2000);
  RemoveCgroup(Run("b", 1000));
  const auto report = Audit();
  EXPECT_THAT(Texts(report),
              ElementsAre(HasSubstr("the runtime tells no cgroup parent of its pod")));
  EXPECT_EQ(report->checked, 1U);
  EXPECT_EQ(report->unread, 1U);
}

TEST_F(AuditorTest, FindsWhatAnotherHasWrittenIntoACgroup) {
  const ContainerId id = Run("a", 2000);
  Run("b", 1000);
  PutCpus(id, "0-7");
  const auto report = Audit();
  EXPECT_THAT(Texts(report),
              ElementsAre("ns/a/a: cpuset.cpus is 0-7 in its cgroup, not " + node_.Placed(id)));
  EXPECT_EQ(report->checked, 2U);
  EXPECT_EQ(report->drifted, 1U);
  EXPECT_FALSE(report->findings[0].sent_again);
  EXPECT_THAT(runtime().updates, IsEmpty()) << "to look changes nothing";
}

TEST_F(AuditorTest, FindsWhatTheRuntimeHasNotedDifferently) {
  const ContainerId id = Run("a", 2000);
  runtime().Find(id)->resources.cpuset_cpus = "6";
  EXPECT_THAT(Texts(Audit()),
              ElementsAre("ns/a/a: cpuset.cpus is 6 at the runtime, not " + node_.Placed(id)));
}

// A stage's numbers win over the policy's, which must not be restored.
TEST_F(AuditorTest, NumbersThatWereSetLaterAreNoDrift) {
  const ContainerId id = Run("a", 2000);
  manager().set_later().SetByStage(id, {.cpu_quota = 150'000, .cpu_period = 100'000},
                                   /*accepted=*/true);
  runtime().Find(id)->resources.cpu_quota = 150'000;
  runtime().Find(id)->resources.cpu_period = 100'000;
  const auto report = Audit(true);
  EXPECT_THAT(Texts(report), IsEmpty());
  EXPECT_EQ(report->checked, 1U);
  EXPECT_THAT(runtime().updates, IsEmpty());
}

// Reports the update as dockerd's events do.
TEST_F(AuditorTest, LooksAtOnceWhereAnotherClientChangedSomething) {
  const ContainerId id = Run("a", 2000);
  const auto audits = [this](size_t count) {
    return RunAnswering([&] { return told_.size() == count; });
  };
  auditor_->RunSoon();
  auditor_->Configure({.interval = std::chrono::hours(1)});
  // The pause is between the begins of two audits.
  const auto first = std::chrono::steady_clock::now();
  auditor_->RunSoon();
  auditor_->RunSoon();
  ASSERT_TRUE(audits(1)) << "none without a clock, one for two";
  PutCpus(id, "0-7");
  auditor_->RunSoon();
  ASSERT_TRUE(audits(2));
  EXPECT_GE(std::chrono::steady_clock::now() - first, milliseconds(90)) << "a flood of events";
  EXPECT_THAT(told_, ElementsAre(0, 1));
}

// The audit under way may have read the cgroups before.
TEST_F(AuditorTest, LooksAgainWhereSomethingDriftsDuringAnAudit) {
  const ContainerId id = Run("a", 2000);
  auditor_->Configure({.interval = std::chrono::hours(1)});
  auditor_->Run(false, [&](const StatusOr<AuditReport>&) { PutCpus(id, "0-7"); });
  ASSERT_TRUE(node_.RunUntil([&] { return !runtime().lists.empty(); }));
  auditor_->RunSoon();
  ASSERT_TRUE(RunAnswering([&] { return told_.size() == 2; }));
  EXPECT_THAT(told_, ElementsAre(0, 1));
}

TEST_F(AuditorTest, RepairsByWhatWasDecided) {
  const ContainerId id = Run("a", 2000);
  const std::string decided = node_.Placed(id);
  runtime().history.clear();
  PutCpus(id, "0-7");
  const auto report = Audit(true);
  ASSERT_EQ(report->findings.size(), 1U);
  EXPECT_TRUE(report->findings[0].sent_again);
  ASSERT_EQ(runtime().updates.size(), 1U);
  EXPECT_EQ(runtime().updates[0].adjustment.cpus->ToString(), decided);
  runtime().AnswerAll();
  PutCpus(id, decided);
  EXPECT_THAT(Texts(Audit(true)), IsEmpty());
  EXPECT_THAT(runtime().updates, IsEmpty());
}

// Another program writes the cpuset every minute, as koordlet's reconciler does.
TEST_F(AuditorTest, AContainerThatDriftsAgainHasAnotherWriter) {
  const ContainerId id = Run("a", 2000);
  const std::string decided = node_.Placed(id);
  PutCpus(id, "0-7");
  ASSERT_EQ(Audit(true)->drifted, 1U);
  runtime().AnswerAll();
  EXPECT_THAT(Problems(), IsEmpty()) << "once";
  PutCpus(id, decided);
  ASSERT_EQ(Audit(true)->drifted, 0U);
  PutCpus(id, "0-3");
  ASSERT_EQ(Audit(true)->drifted, 1U);
  runtime().AnswerAll();
  ASSERT_EQ(Problems().size(), 1U);
  EXPECT_THAT(Problems()[0],
              testing::AllOf(HasSubstr("another program writes the cpuset of ns/a/a"),
                             HasSubstr("0-3 in its cgroup, not " + decided),
                             HasSubstr("found 2 times"), HasSubstr("CPUSetAllocator")));
  EXPECT_EQ(auditor_->problems()[0].kind, "cpuset-overridden");
  EXPECT_THAT(auditor_->problems()[0].objects, ElementsAre("ns/a/a"));
  PutCpus(id, decided);
  ASSERT_EQ(Audit()->drifted, 0U);
  EXPECT_THAT(Problems(), IsEmpty()) << "as decided";
  PutCpus(id, "0-3");
  ASSERT_EQ(Audit()->drifted, 1U);
  ASSERT_EQ(Problems().size(), 1U) << "not forgotten yet";
  EXPECT_THAT(Problems()[0], HasSubstr("found 3 times"));
}

// The daemon's own audits and an operator's see the same value.
TEST_F(AuditorTest, OneWriteThatSeveralAuditsFindHasNotBeenRepeated) {
  const ContainerId id = Run("a", 2000);
  PutCpus(id, "0-7");
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(Audit()->drifted, 1U);
  EXPECT_THAT(Problems(), IsEmpty());
  EXPECT_EQ(auditor_->drifted().size(), 1U);
  ASSERT_EQ(Audit(true)->drifted, 1U);
  runtime().AnswerAll();
  PutCpus(id, node_.Placed(id));
  ASSERT_EQ(Audit()->drifted, 0U);
  EXPECT_THAT(Problems(), IsEmpty());
  EXPECT_THAT(auditor_->drifted(), IsEmpty());
}

// The other program was faster than the next audit.
TEST_F(AuditorTest, AWriteAfterARepairIsAnotherOne) {
  const ContainerId id = Run("a", 2000);
  PutCpus(id, "0-7");
  ASSERT_EQ(Audit(true)->drifted, 1U);
  runtime().AnswerAll();
  EXPECT_THAT(Problems(), IsEmpty());
  ASSERT_EQ(Audit()->drifted, 1U);
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("found 2 times")));
}

TEST_F(AuditorTest, ACgroupThatCannotBeReadEndsNothing) {
  const ContainerId id = Run("a", 2000);
  WriteTwice(id, "0-7");
  RemoveCgroup(id);
  ASSERT_EQ(Audit()->unread, 1U);
  EXPECT_EQ(Problems().size(), 1U);
}

// Any difference counts, whichever program made it, unless it is a problem of its own or is being
// mended.
TEST_F(AuditorTest, WhatTheLastAuditFoundHasDrifted) {
  const ContainerId a = Run("a", 2000);
  const ContainerId b = Run("b", 2000);
  const std::string decided = node_.Placed(a);
  EXPECT_THAT(auditor_->drifted(), IsEmpty());
  PutCpus(a, "0-7");
  runtime().Find(b)->resources.cpuset_cpus = "6";
  ASSERT_EQ(Audit()->drifted, 2U);
  std::vector<Problem> drifted = auditor_->drifted();
  ASSERT_EQ(drifted.size(), 2U);
  for (const Problem& problem : drifted) {
    EXPECT_EQ(problem.kind, "drift");
    EXPECT_THAT(problem.message, HasSubstr(" has drifted: "));
    EXPECT_EQ(problem.objects.size(), 1U);
    EXPECT_EQ(problem.next, "cri-resmgr-ctl audit -repair");
  }
  // The cpuset is written again, which has a text of its own.
  PutCpus(a, node_.Placed(a));
  WriteTwice(a, "0-7");
  drifted = auditor_->drifted();
  ASSERT_EQ(drifted.size(), 1U);
  EXPECT_THAT(drifted[0].objects, ElementsAre("ns/b/b"));
  EXPECT_EQ(auditor_->problems().size(), 1U);
  active_ = false;
  EXPECT_THAT(auditor_->drifted(), IsEmpty()) << "nothing is decided";
}

TEST_F(AuditorTest, WhatIsMendedHasDriftedOnlyIfItDriftsAgain) {
  const ContainerId id = Run("a", 2000);
  runtime().Find(id)->resources.cpuset_cpus = "6";
  ASSERT_EQ(Audit(true)->drifted, 1U);
  EXPECT_THAT(auditor_->drifted(), IsEmpty());
  runtime().AnswerAll();
  runtime().Find(id)->resources.cpuset_cpus = "6";
  ASSERT_EQ(Audit(true)->drifted, 1U);
  EXPECT_EQ(auditor_->drifted().size(), 1U);
}

TEST_F(AuditorTest, AContainerThatIsLeftAloneForLongHasNoOtherWriter) {
  left_alone_ = milliseconds(1000);
  MakeAuditor();
  const ContainerId id = Run("a", 2000);
  WriteTwice(id, "0-7");
  ASSERT_EQ(Problems().size(), 1U);
  PutCpus(id, node_.Placed(id));
  std::this_thread::sleep_for(milliseconds(1001));
  ASSERT_EQ(Audit()->drifted, 0U);
  PutCpus(id, "0-7");
  ASSERT_EQ(Audit()->drifted, 1U);
  EXPECT_THAT(Problems(), IsEmpty()) << "counted from the start";
}

TEST_F(AuditorTest, AnotherWriterIsForgottenWithTheContainer) {
  const ContainerId id = Run("a", 2000);
  WriteTwice(id, "0-7");
  EXPECT_EQ(Problems().size(), 1U);
  active_ = false;
  EXPECT_THAT(Problems(), IsEmpty()) << "nothing is decided";
  active_ = true;
  node_.Stop(id);
  manager().ContainerRemoved(id);
  ASSERT_TRUE(Audit().ok());
  EXPECT_THAT(Problems(), IsEmpty());
}

// Each resource manager counts its containers from the same key on.
TEST_F(AuditorTest, AFindingIsNotOfTheContainerWithItsKeyInAnotherManager) {
  const ContainerId id = Run("a", 2000);
  WriteTwice(id, "0-7");
  ASSERT_NE(auditor_->FoundOf(id), "");
  test::TestNode other(test::S1Ht(), test::FirstFit);
  const ContainerId b = other.Run("b", QosClass::kGuaranteed, 2000);
  ASSERT_EQ(other.Known(b)->key, node_.Known(id)->key);
  brain_ = &other;
  EXPECT_EQ(auditor_->FoundOf(b), "");
  EXPECT_EQ(auditor_->FoundOf(id), "");
  EXPECT_THAT(Problems(), IsEmpty());
  brain_ = &node_;
  EXPECT_NE(auditor_->FoundOf(id), "");
}

TEST_F(AuditorTest, ACauseIsNoProblemOfWhereAContainerWasMovedTo) {
  const ContainerId id = Run("shared", 100);
  PutBelow("kubepods", id, node_.Placed(id), "0-3");
  ASSERT_EQ(Audit()->drifted, 1U);
  ASSERT_EQ(Problems().size(), 1U);
  ASSERT_NE(auditor_->FoundOf(id), "");
  // Takes CPUs from the shared one.
  ASSERT_TRUE(node_.Create("a", QosClass::kGuaranteed, 2000).ok());
  runtime().AnswerAll();
  EXPECT_THAT(Problems(), IsEmpty());
  EXPECT_EQ(auditor_->FoundOf(id), "");
}

// Audits by request only, or audits that fail.
TEST_F(AuditorTest, WhatWasFoundLongAgoIsNotToldAnyMore) {
  left_alone_ = milliseconds(1000);
  MakeAuditor();
  const ContainerId id = Run("a", 2000);
  const ContainerId below = Run("b", 100);
  PutBelow("kubepods", below, node_.Placed(below), "7");
  WriteTwice(id, "0-7");
  ASSERT_EQ(Problems().size(), 2U);
  ASSERT_NE(auditor_->FoundOf(below), "");
  std::this_thread::sleep_for(milliseconds(1001));
  EXPECT_THAT(Problems(), IsEmpty());
  EXPECT_EQ(auditor_->FoundOf(below), "");
}

// A value noted by the runtime, or taken by a cgroup above, does not count as a write past the
// runtime.
TEST_F(AuditorTest, OtherDriftsAreNoWritesPastTheRuntime) {
  const ContainerId id = Run("a", 2000);
  runtime().Find(id)->resources.cpuset_cpus = "6";
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(Audit()->drifted, 1U);
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(AuditorTest, WhatACgroupAboveTakesAwayIsNotSentAgain) {
  const ContainerId id = Run("a", 2000);
  cgroups_.Put(fmt::format("{}/cpuset.cpus.effective", id.value()), "1\n");
  const auto report = Audit(true);
  EXPECT_EQ(report->drifted, 1U);
  EXPECT_FALSE(report->findings[0].sent_again);
  EXPECT_THAT(runtime().updates, IsEmpty());
}

// cgroup v2: a partition of another program has the CPUs, and no file of the container shows it.
TEST_F(AuditorTest, APartitionOfOthersIsNamedAndNotRepaired) {
  const ContainerId id = Run("a", 2000);
  const std::string cpus = node_.Placed(id);
  const std::string others = (CpuSet::Range(0, 7) - CpuSet::Parse(cpus).value()).ToString();
  PutBelow("kubepods", id, cpus, others);
  cgroups_.Put("foo/cpuset.cpus.partition", "root\n");
  cgroups_.Put("foo/cpuset.cpus.effective", cpus + "\n");
  const std::string found = fmt::format(
      "cpuset.cpus.effective is {}, not {}, because none of these is left and the kernel gives "
      "it all of the cgroup above: CPUs {} belong to the partition of /foo: write member into its "
      "cpuset.cpus.partition",
      others, cpus, cpus);
  for (int i = 0; i < 3; ++i) {
    const auto report = Audit(/*repair=*/true);
    EXPECT_THAT(Texts(report), ElementsAre("ns/a/a: " + found));
    EXPECT_FALSE(report->findings[0].sent_again);
  }
  EXPECT_THAT(runtime().updates, IsEmpty());
  EXPECT_THAT(Problems(),
              ElementsAre("what was decided for container ns/a/a is not in force: " + found));
  EXPECT_EQ(auditor_->FoundOf(id), found);
  cgroups_.Put("foo/cpuset.cpus.partition", "member\n");
  PutBelow("kubepods", id, cpus, cpus);
  EXPECT_THAT(Texts(Audit()), IsEmpty());
  EXPECT_THAT(Problems(), IsEmpty());
  EXPECT_EQ(auditor_->FoundOf(id), "");
}

// A thousand containers have the same parent.
TEST_F(AuditorTest, ACauseOfManyContainersIsOneProblemAndOneLineOfTheLog) {
  for (const char* const name : {"a", "b", "c"}) {
    const ContainerId id = Run(name, 100);
    RemoveCgroup(id);
    std::filesystem::create_directories(cgroups_.File(fmt::format("kubepods/{}", id.value())));
  }
  cgroups_.Put("cgroup.controllers", "cpuset cpu\n");
  cgroups_.Put("cgroup.subtree_control", "cpuset cpu\n");
  cgroups_.Put("kubepods/cgroup.subtree_control", "cpu\n");
  testing::internal::CaptureStderr();
  const auto report = Audit(/*repair=*/true);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(report->drifted, 3U);
  EXPECT_THAT(runtime().updates, IsEmpty()) << "to send it again has no effect";
  ASSERT_EQ(Problems().size(), 1U);
  EXPECT_THAT(Problems()[0],
              HasSubstr("what was decided for containers ns/a/a and 2 more is not in force: "
                        "cpuset.cpus cannot be "));
  EXPECT_THAT(Problems()[0],
              HasSubstr(": the controller cpuset is not enabled in cgroup.subtree_control of "
                        "/kubepods: write +cpuset into it"));
  const size_t told = log.find("containers ns/a/a and 2 more have drifted");
  EXPECT_NE(told, std::string::npos) << log;
  EXPECT_EQ(log.find("drifted"), log.rfind("drifted")) << "once: " << log;
}

// One container has fewer CPUs, and the other one runs on CPUs of others.
TEST_F(AuditorTest, AContainerThatRunsElsewhereIsNamedByItself) {
  const ContainerId a = Run("a", 2000);
  const ContainerId b = Run("b", 2000);
  const CpuSet less = CpuSet::Parse(node_.Placed(a)).value() - CpuSet{2};
  PutBelow("kubepods", a, node_.Placed(a), less.ToString());
  PutBelow("kubepods", b, node_.Placed(b), less.ToString());
  for (const char* const file : {"cpuset.cpus", "cpuset.cpus.effective"})
    cgroups_.Put(fmt::format("kubepods/{}", file), less.ToString() + "\n");
  EXPECT_EQ(Audit()->drifted, 2U);
  EXPECT_THAT(Problems(), testing::UnorderedElementsAre(
                              testing::AllOf(HasSubstr("container ns/a/a is not in force"),
                                             testing::Not(HasSubstr("none of these is left"))),
                              testing::AllOf(HasSubstr("container ns/b/b is not in force"),
                                             HasSubstr("none of these is left"))));
}

TEST_F(AuditorTest, AMoveOfOursIsNoDrift) {
  const ContainerId shared = Run("shared", 100);
  std::optional<StatusOr<AuditReport>> result;
  AskRuntime(result);
  // Takes CPUs from the shared container, whose update has not been answered.
  ASSERT_TRUE(node_.Create("a", QosClass::kGuaranteed, 2000).ok());
  PutCpus(shared, "0");
  runtime().AnswerList();
  ASSERT_TRUE(node_.RunUntil([&] { return result.has_value(); }));
  EXPECT_THAT(Texts(*result), IsEmpty());
  EXPECT_EQ((*result)->changing, 1U);
  EXPECT_EQ((*result)->checked, 0U);
  // The audit does not look at it meanwhile.
  EXPECT_EQ(Audit()->changing, 1U);
}

TEST_F(AuditorTest, OneThatEndsMeanwhileIsLeftOut) {
  const ContainerId id = Run("a", 2000);
  std::optional<StatusOr<AuditReport>> result;
  AskRuntime(result);
  node_.Stop(id);
  runtime().AnswerList();
  ASSERT_TRUE(node_.RunUntil([&] { return result.has_value(); }));
  EXPECT_THAT(Texts(*result), IsEmpty());
  EXPECT_EQ((*result)->checked, 0U);
}

TEST_F(AuditorTest, ACgroupThatIsNotFoundIsTold) {
  node_.Run("a", QosClass::kGuaranteed, 2000);
  const auto report = Audit(true);
  EXPECT_THAT(Texts(report), ElementsAre(HasSubstr("its cgroup is not found")));
  EXPECT_EQ(report->drifted, 0U);
  EXPECT_THAT(runtime().updates, IsEmpty());
}

TEST_F(AuditorTest, ARuntimeThatDoesNotAnswerHoldsItUpForAWhileOnly) {
  MakeAuditor(milliseconds(500));
  const ContainerId id = Run("a", 2000);
  PutCpus(id, "7");
  std::optional<StatusOr<AuditReport>> result;
  Ask(false, result);
  ASSERT_TRUE(node_.RunUntil([&] { return result.has_value(); }));
  EXPECT_EQ((*result)->drifted, 1U);
  EXPECT_EQ((*result)->runtime_problem, "the runtime has not answered in time");
  // The late answer is of no audit.
  runtime().AnswerList();
  EXPECT_EQ(Audit()->drifted, 1U);
}

TEST_F(AuditorTest, ARuntimeThatFailsIsTold) {
  Run("a", 2000);
  std::optional<StatusOr<AuditReport>> result;
  AskRuntime(result);
  runtime().FailList(Unavailable("it is ill"));
  ASSERT_TRUE(node_.RunUntil([&] { return result.has_value(); }));
  EXPECT_EQ((*result)->runtime_problem, "it is ill");
}

TEST_F(AuditorTest, NumbersThatOtherStagesMayChangeAreNotCompared) {
  const ContainerId id = Run("a", 2000);
  runtime().Find(id)->resources.cpu_shares = 7;
  EXPECT_THAT(Texts(Audit()), IsEmpty()) << "the policy does not decide about them";
}

TEST_F(AuditorTest, NeedsAPolicyAndARuntime) {
  active_ = false;
  EXPECT_EQ(Audit().status().code(), StatusCode::kFailedPrecondition);
  active_ = true;
  manager().RuntimeDisconnected();
  EXPECT_EQ(Audit().status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(told_, ElementsAre(kNothingToCompare, kFailed));
}

TEST_F(AuditorTest, APolicyThatEndsMeanwhileEndsIt) {
  Run("a", 2000);
  std::optional<StatusOr<AuditReport>> result;
  AskRuntime(result);
  active_ = false;
  runtime().AnswerList();
  ASSERT_TRUE(node_.RunUntil([&] { return result.has_value(); }));
  EXPECT_EQ(result->status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(AuditorTest, ManyThatAskWaitForEachOther) {
  std::vector<std::optional<StatusOr<AuditReport>>> results(9);
  for (auto& result : results)
    Ask(false, result);
  ASSERT_TRUE(RunAnswering([&] {
    return std::ranges::all_of(results, [](const auto& result) { return result.has_value(); });
  }));
  for (size_t i = 0; i < 8; ++i)
    EXPECT_TRUE((*results[i]).ok());
  EXPECT_EQ(results[8]->status().code(), StatusCode::kResourceExhausted);
}

TEST_F(AuditorTest, AuditsByItself) {
  const ContainerId id = Run("a", 2000);
  PutCpus(id, "7");
  auditor_->Configure({.interval = milliseconds(5), .repair = true});
  ASSERT_TRUE(RunAnswering([&] { return !runtime().updates.empty(); }));
  runtime().AnswerAll();
  auditor_->Configure({.interval = milliseconds(0)});
  const size_t audits = told_.size();
  const auto until = std::chrono::steady_clock::now() + milliseconds(50);
  ASSERT_TRUE(RunAnswering([&] { return std::chrono::steady_clock::now() > until; }));
  EXPECT_LE(told_.size(), audits + 1) << "the one under way ends";
}

TEST_F(AuditorTest, EndsWhileItWaits) {
  Run("a", 2000);
  std::optional<StatusOr<AuditReport>> result;
  AskRuntime(result);
  auditor_.reset();
  runtime().AnswerList();
  MakeAuditor();
  EXPECT_TRUE(Audit().ok());
  EXPECT_FALSE(result.has_value());
}

// Takes each write.
class TakingWriter final : public CpusetWriter {
 public:
  explicit TakingWriter(EventLoop*& loop) : loop_(loop) {}
  void Write(Subject, Answer answer) override {
    loop_->Post([answer = std::move(answer)] { answer.done(OkStatus()); });
  }

 private:
  EventLoop*& loop_;
};

// The runtime reports its old notes, which does not count as drift.
TEST(AuditOfWrittenCpusetsTest, ComparesWithTheCgroupAlone) {
  EventLoop* loop = nullptr;
  TakingWriter writer(loop);
  ResourceManager::Options options = test::TestNode::FastOptions();
  options.cpuset_writer = &writer;
  options.refused_updates = RefusedUpdates::kWrite;
  options.last_retry = std::chrono::seconds(10);
  test::TestNode node(test::S1Ht(), test::FirstFit, options);
  loop = &node.loop();
  const ContainerId shared = node.Run("shared", QosClass::kBurstable, 100);
  ASSERT_TRUE(node.Create("app", QosClass::kGuaranteed, 1000).ok());
  const auto answer = [&] {
    while (!node.runtime.updates.empty())
      node.runtime.Answer(0, Internal("it will not"));
    while (!node.runtime.lists.empty())
      node.runtime.AnswerList();
  };
  const ContainerKey key = node.Known(shared)->key;
  ASSERT_TRUE(node.RunUntil([&] {
    answer();
    return node.manager().WrittenPastRuntime(key);
  }));
  ASSERT_EQ(node.runtime.CpusOf(shared), "0-7") << "by the runtime's word";

  TempDir cgroups;
  cgroups.Put("cgroup.controllers", "");
  Auditor auditor({.loop = node.loop(),
                   .manager = [&node] { return &node.manager(); },
                   .cgroups = CgroupReader(cgroups.path()),
                   .numbers_are_ours = [] { return true; },
                   .told = [](const StatusOr<AuditReport>&) {}});
  const auto audit = [&](std::string_view cpus) {
    cgroups.Put(fmt::format("{}/cpuset.cpus", shared.value()), fmt::format("{}\n", cpus));
    std::optional<AuditReport> result;
    auditor.Run(false, [&result](const StatusOr<AuditReport>& report) {
      result = report.value_or(AuditReport());
    });
    EXPECT_TRUE(node.RunUntil([&] {
      answer();
      return result.has_value();
    }));
    return result.value_or(AuditReport());
  };
  const AuditReport written = audit("0,2-7");
  EXPECT_EQ(written.checked, 1U);
  EXPECT_EQ(written.drifted, 0U);
  EXPECT_EQ(audit("0-7").drifted, 1U);
}

}  // namespace
}  // namespace resmgr
