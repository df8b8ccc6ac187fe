// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/observer.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "pkg/resmgr/observers.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "test/support/machines/machines.h"
#include "test/support/seed.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Must;
using test::TestNode;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;
using enum QosClass;

// The fixture reads the log from "[resmgr] " on.
class LogObserverTest : public test::ManagerFixture {
 protected:
  LogObserverTest() {
    SetLogWriter([this](std::string_view line) {
      const size_t at = line.find("[resmgr] ");
      if (at == std::string_view::npos) return;
      line.remove_prefix(at + std::string_view("[resmgr] ").size());
      if (line.ends_with('\n')) line.remove_suffix(1);
      lines_.emplace_back(line);
    });
  }
  ~LogObserverTest() override {
    ConfigureLogging({});
    SetLogWriter(nullptr);
  }

  // Since the last question.
  std::vector<std::string> Lines() { return std::exchange(lines_, {}); }

  std::vector<std::string> lines_;
};

TEST_F(LogObserverTest, EveryActIsOneLine) {
  node_.Run("web", kBurstable, 100);
  EXPECT_THAT(Lines(), ElementsAre("placed ns/web/web: CPUs 0-7, shared (first-fit)"));
  node_.Run("db", kBurstable, 100);
  Lines();
  const ContainerId dsp = node_.Run("dsp", kGuaranteed, 1000);
  EXPECT_THAT(Lines(),
              ElementsAre("placed ns/dsp/dsp: CPU 1, exclusive (first-fit); moved 2 shared "
                          "containers 0-7 -> 0,2-7"));
  const auto update = Must(manager().AdmitUpdate(dsp, TestNode::Resources(2000)));
  manager().UpdateSucceeded(update);
  EXPECT_THAT(Lines(), ElementsAre("moved ns/dsp/dsp: CPU 1, exclusive -> CPUs 1-2, exclusive (its "
                                   "resources changed); moved 2 shared containers 0,2-7 -> 0,3-7"));
  node_.Stop(dsp);
  EXPECT_THAT(Lines(), ElementsAre("released ns/dsp/dsp: CPUs 1-2, exclusive (it ended); moved 2 "
                                   "shared containers 0,3-7 -> 0-7"));
}

TEST_F(LogObserverTest, ARefusalIsOneWarning) {
  EXPECT_FALSE(node_.Create("large", kGuaranteed, 9000).ok());
  EXPECT_THAT(Lines(), ElementsAre(AllOf(HasSubstr("refused ns/large/large: "),
                                         HasSubstr("needs 9 CPUs, 7 are free"))));
  const ContainerId app = node_.Run("app", kGuaranteed, 1000);
  Lines();
  EXPECT_FALSE(manager().AdmitUpdate(app, TestNode::Resources(9000)).ok());
  EXPECT_THAT(Lines(), ElementsAre(HasSubstr("refused an update of ns/app/app: ")));
}

TEST_F(LogObserverTest, ACreationThatFailsGivesItsPlaceBack) {
  const PodSandboxId pod = node_.AddPod("app", kGuaranteed);
  const auto admission = Must(manager().AdmitCreate(TestNode::Request(pod, "main", 2000)));
  Lines();
  manager().CreateFailed(admission.key);
  EXPECT_THAT(Lines(),
              ElementsAre("released ns/app/main: CPUs 1-2, exclusive (it was not created)"));
}

TEST_F(LogObserverTest, AChangeOfThePolicyTellsItsMoves) {
  const ContainerId app = node_.Run("app", kGuaranteed, 1000);
  node_.Run("web", kBurstable, 100);
  node_.Run("db", kBurstable, 100);
  Lines();
  auto next = std::make_unique<test::FirstFitPolicy>(node_.machine());
  next->spoil = [&](Plan& plan) {
    plan.changes.clear();
    node_.manager().snapshot().ForEachContainer([&plan](const Pod&, const Container& container) {
      plan.Change(container.key).cpus = CpuSet{0, 1, 2};
    });
  };
  manager().policy_changes().Set(std::move(next), [](const Status&) {});
  EXPECT_THAT(
      Lines(),
      ElementsAre(HasSubstr("policy first-fit takes over 3 containers"),
                  HasSubstr("moved container ns/app/app CPU 1, exclusive -> CPUs 0-2, shared "
                            "(policy first-fit takes over)"),
                  "moved 2 shared containers 0,2-7 -> 0-2 (policy first-fit takes over)"));
}

TEST_F(LogObserverTest, WhatAListFindsIsOneLineEach) {
  node_.Run("web", kBurstable, 100);
  const ContainerId dsp = node_.Run("dsp", kGuaranteed, 2000);
  Lines();
  node_.Restart();
  EXPECT_THAT(Lines(), ElementsAre("adopted ns/dsp/dsp: CPUs 1-2, exclusive (first-fit)",
                                   "adopted ns/web/web: CPUs 0,3-7, shared (first-fit)",
                                   "the runtime holds 2 pods and 2 containers"));
  node_.Reconnect();
  EXPECT_THAT(Lines(), ElementsAre("the runtime holds 2 pods and 2 containers"))
      << "they are known";
  node_.Crash(dsp);
  node_.Reconnect();
  EXPECT_THAT(Lines(), ElementsAre("released ns/dsp/dsp: CPUs 1-2, exclusive (it ended)",
                                   HasSubstr("0,3-7 -> 0-7 (by what the runtime holds)"),
                                   "the runtime holds 2 pods and 2 containers"));
}

TEST_F(LogObserverTest, WhatTheRuntimeHasNoMoreIsReleased) {
  const ContainerId dsp = node_.Run("dsp", kGuaranteed, 2000);
  Lines();
  runtime().Remove(dsp);
  node_.Reconnect();
  EXPECT_THAT(Lines(), ElementsAre("released ns/dsp/dsp: CPUs 1-2, exclusive (it is gone)",
                                   "the runtime holds 1 pod and 0 containers"));
}

TEST_F(LogObserverTest, WhatAListFindsOfManyIsOneLine) {
  node_.Run("dsp", kGuaranteed, 2000);
  for (int i = 0; i < 20; ++i)
    node_.Run(fmt::format("web{}", i), kBurstable, 100);
  Lines();
  node_.Restart();
  EXPECT_THAT(Lines(), ElementsAre("adopted 21 containers: 1 with exclusive CPUs 1-2 (first-fit)",
                                   "the runtime holds 21 pods and 21 containers"));
  ConfigureLogging({.debug = SourceFilter::All()});
  node_.Restart();
  EXPECT_THAT(Lines(), ::testing::Contains(HasSubstr("adopted ns/web7/web7: CPUs 0,3-7, shared")));
  ConfigureLogging({});
  Lines();
  runtime().held.containers.clear();
  node_.Reconnect();
  EXPECT_THAT(Lines(), ElementsAre("released 21 containers: 1 with exclusive CPUs 1-2 (they ended "
                                   "or are gone)",
                                   "the runtime holds 21 pods and 0 containers"));
}

TEST_F(LogObserverTest, NamesCannotForgeLines) {
  node_.Run("x\n[resmgr] placed ns/y/y: CPU 1", kBurstable, 100);
  EXPECT_THAT(Lines(), ElementsAre(HasSubstr("placed ns/x\\x0a[resmgr] placed")));
}

TEST_F(LogObserverTest, NothingIsSaidBelowTheLevel) {
  ConfigureLogging({.level = LogLevel::kError});
  node_.Run("web", kBurstable, 100);
  node_.Stop(node_.Run("app", kGuaranteed, 1000));
  EXPECT_FALSE(node_.Create("large", kGuaranteed, 9000).ok());
  EXPECT_THAT(Lines(), IsEmpty());
}

class ExplainingPolicy : public test::FirstFitPolicy {
 public:
  using FirstFitPolicy::FirstFitPolicy;
  std::vector<std::string> Explain(ContainerKey) const override { return {"all CPUs: 8 free"}; }
};

TEST_F(LogObserverTest, DebuggingAddsTheCandidates) {
  TestNode node(test::S1Ht(),
                [](const Machine& machine) { return std::make_unique<ExplainingPolicy>(machine); });
  node.Run("web", kBurstable, 100);
  for (const std::string& line : Lines())
    EXPECT_EQ(line.find("all CPUs: 8 free"), std::string::npos);
  ConfigureLogging({.debug = SourceFilter::All()});
  node.Run("db", kBurstable, 100);
  EXPECT_THAT(Lines(), ::testing::Contains(EndsWith("all CPUs: 8 free")));
}

TEST(PlaceTextTest, SaysWhatIsShared) {
  EXPECT_EQ(Describe(Place{}), "any CPU");
  EXPECT_EQ(Describe(Place{.cpus = CpuSet{1, 2}, .mems = NodeSet{0}}),
            "CPUs 1-2, shared, memory node 0");
  EXPECT_EQ(Describe(Place{.cpus = CpuSet{1, 2, 3}, .exclusive = CpuSet{2}}),
            "CPUs 1-3, of which 2 is exclusive");
}

// The brain counts its acts.

class CountsTest : public testing::Test {
 protected:
  static ResourceManager::Options Options(Metrics& metrics) {
    ResourceManager::Options options = TestNode::FastOptions();
    options.metrics = &metrics;
    return options;
  }

  // "policy_decisions ok" and so on.
  double Count(const std::string& family, const std::string& result) {
    for (const auto& found : metrics_.collectable()->Collect()) {
      if (found.name != "cri_resmgr_" + family) continue;
      for (const auto& metric : found.metric) {
        if (metric.label.size() == 1 && metric.label[0].value == result) {
          return metric.counter.value;
        }
      }
    }
    ADD_FAILURE() << "no " << family << " " << result;
    return -1;
  }

  Metrics metrics_{"1", {}};
  TestNode node_{test::S1Ht(),  // CPUs 0-7
                 test::FirstFit, Options(metrics_)};
};

TEST_F(CountsTest, Decisions) {
  const ContainerId id = node_.Run("app", QosClass::kGuaranteed, 2000);
  EXPECT_FALSE(node_.Create("large", QosClass::kGuaranteed, 64'000).ok());
  const auto update = Must(node_.manager().AdmitUpdate(id, TestNode::Resources(3000)));
  node_.manager().UpdateSucceeded(update);
  EXPECT_EQ(Count("policy_decisions_total", "ok"), 2);
  EXPECT_EQ(Count("policy_decisions_total", "refused"), 1);
}

TEST_F(CountsTest, UpdatesAndHeldStarts) {
  node_.Run("shared", QosClass::kBurstable, 100);
  const ContainerId app = *node_.Create("app", QosClass::kGuaranteed, 2000);
  const test::AskedStart start(node_.manager(), app);
  EXPECT_EQ(Count("held_starts_total", "waited"), 1);
  node_.runtime.Answer(0, Internal("the disk is on fire"));
  ASSERT_TRUE(node_.AnswerNextList());
  EXPECT_EQ(Count("container_updates_total", "failed"), 1);
  ASSERT_TRUE(node_.RunUntil([&] { return start.answered(); }));
  EXPECT_EQ(Count("held_starts_total", "refused"), 1);
  ASSERT_TRUE(node_.RunUntil([&] { return !node_.runtime.updates.empty(); }));
  node_.runtime.Answer(0);
  EXPECT_EQ(Count("container_updates_total", "pushed"), 1);
}

Placement On(const CpuSet& cpus, const CpuSet& exclusive = {}) {
  Placement placement;
  placement.cpus = cpus | exclusive;
  placement.exclusive = exclusive;
  return placement;
}

TEST(ShiftsTest, OneThatStaysIsNoShift) {
  Shifts shifts;
  shifts.NoteShared(ContainerKey{1}, On({1, 2}), {.cpus = {1, 2}, .containers = {}});
  shifts.Note(ContainerKey{2}, On({1}, {3}), On({1}, {3}));
  EXPECT_THAT(shifts.all(), IsEmpty());
}

TEST(ShiftsTest, NothingOfTheLastDecisionIsCounted) {
  Shifts shifts;
  const SharedChange change{.cpus = {1}, .containers = {}};
  shifts.NoteShared(ContainerKey{1}, On({1, 2}), change);
  shifts.Clear();
  shifts.NoteShared(ContainerKey{2}, On({1, 2}), change);
  ASSERT_EQ(shifts.all().size(), 1U);
  EXPECT_EQ(shifts.all()[0].first, ContainerKey{2});
  EXPECT_EQ(shifts.all()[0].containers, 1U);
}

// Makes a few changes, whose containers come from few places, some with exclusive CPUs of their
// own: each is counted once, together with those that have the same shared CPUs before and after.
TEST(ShiftsTest, CountsThoseThatMoveAlike) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937_64 random(seed);
  const std::vector<CpuSet> places = {{1, 2}, {1, 2, 300}, {1}};
  const std::vector<SharedChange> changes = {{.cpus = {1, 2}, .containers = {}},
                                             {.cpus = {1, 700}, .containers = {}}};
  for (int round = 0; round < 200; ++round) {
    Shifts shifts;
    std::map<std::pair<std::string, std::string>, size_t> expected;
    for (uint64_t key = 1; key <= 30; ++key) {
      const CpuSet& from = places[random() % places.size()];
      const SharedChange& change = changes[random() % changes.size()];
      const CpuSet exclusive = random() % 4 == 0 ? CpuSet{8} : CpuSet();
      shifts.NoteShared(ContainerKey{key}, On(from, exclusive), change);
      if (from != change.cpus) ++expected[{from.ToString(), change.cpus.ToString()}];
    }
    std::map<std::pair<std::string, std::string>, size_t> counted;
    for (const Shift& shift : shifts.all())
      counted[{shift.from.cpus->ToString(), shift.to.cpus->ToString()}] += shift.containers;
    ASSERT_EQ(counted, expected) << "round " << round;
    ASSERT_EQ(shifts.all().size(), expected.size()) << "round " << round;
  }
}

// Observers are told the values in force, and how long a container exists.

class Recorder final : public Observer {
 public:
  void OnInForce(const Act& act, const Place& place) override {
    told.push_back(fmt::format("{} cpus={} exclusive={}", act.container.name,
                               place.cpus ? place.cpus->ToString() : "any",
                               place.exclusive.ToString()));
  }
  void OnRemoved(const Act& act) override { removed.push_back(act.container.name); }
  void OnListed(const Snapshot& all) override {
    listed.clear();
    all.ForEachContainer(
        [this](const Pod&, const Container& container) { listed.push_back(container.name); });
  }
  std::vector<std::string> Take() { return std::exchange(told, {}); }

  std::vector<std::string> told;
  std::vector<std::string> removed;
  std::vector<std::string> listed;
};

class InForceTest : public testing::Test {
 protected:
  Recorder recorder_;
  test::CrashingFileSystem files_{1};  // outlives the node, whose state is written on a thread
  TestNode node_{test::S1Ht(),         // CPUs 0-7
                 test::FirstFit, TestNode::Observed(recorder_)};
};

TEST_F(InForceTest, ACreationIsToldWhenItSucceeded) {
  const CreateRequest request = TestNode::Request(node_.AddPod("dsp", kGuaranteed), "dsp", 2000);
  const Admission admission = *node_.manager().AdmitCreate(CreateRequest(request));
  EXPECT_THAT(recorder_.told, IsEmpty()) << "it is decided only";
  node_.Created(request, admission);
  EXPECT_THAT(recorder_.told, ElementsAre("dsp cpus=1-2 exclusive=1-2"));
}

TEST_F(InForceTest, ACreationThatFailsIsNot) {
  const CreateRequest request = TestNode::Request(node_.AddPod("dsp", kGuaranteed), "dsp", 2000);
  const Admission admission = *node_.manager().AdmitCreate(CreateRequest(request));
  node_.manager().CreateFailed(admission.key);
  EXPECT_THAT(recorder_.told, IsEmpty());
}

TEST_F(InForceTest, ACreationWithoutResourcesFollowsInAnUpdate) {
  CreateRequest request = TestNode::Request(node_.AddPod("web", kBurstable), "web", 100);
  request.has_resources = false;
  request.resources = {};
  ASSERT_TRUE(node_.Create(request).ok());
  EXPECT_THAT(recorder_.Take(), ElementsAre("web cpus=any exclusive="));
  node_.runtime.AnswerAll();
  EXPECT_THAT(recorder_.told, ElementsAre("web cpus=0-7 exclusive="));
}

TEST_F(InForceTest, AMoveIsToldWhenTheRuntimeHasDoneIt) {
  node_.Run("web", kBurstable, 100);
  recorder_.Take();
  const ContainerId dsp = *node_.Create("dsp", kGuaranteed, 2000);
  EXPECT_THAT(recorder_.Take(), ElementsAre("dsp cpus=1-2 exclusive=1-2"));
  node_.runtime.AnswerAll();
  EXPECT_THAT(recorder_.Take(), ElementsAre("web cpus=0,3-7 exclusive="));
  node_.Remove(dsp);
  EXPECT_THAT(recorder_.told, IsEmpty());
  node_.runtime.AnswerAll();
  EXPECT_THAT(recorder_.told, ElementsAre("web cpus=0-7 exclusive="));
}

TEST_F(InForceTest, AMoveThatFailsIsToldAfterALaterTry) {
  node_.Run("web", kBurstable, 100);
  *node_.Create("dsp", kGuaranteed, 2000);
  recorder_.Take();
  node_.runtime.Answer(0, Unavailable("busy"));
  EXPECT_THAT(recorder_.told, IsEmpty());
  ASSERT_TRUE(node_.RunUntil([this] { return !node_.runtime.updates.empty(); }));
  node_.runtime.AnswerAll();
  EXPECT_THAT(recorder_.told, ElementsAre("web cpus=0,3-7 exclusive="));
}

TEST_F(InForceTest, AnUpdateOfTheKubeletIsToldWhenItSucceeded) {
  const ContainerId dsp = node_.Run("dsp", kGuaranteed, 2000);
  recorder_.Take();
  const Admission failed = *node_.manager().AdmitUpdate(dsp, TestNode::Resources(1000));
  node_.manager().UpdateFailed(failed);
  EXPECT_THAT(recorder_.Take(), Not(Contains("dsp cpus=1 exclusive=1")));
  node_.runtime.AnswerAll();
  recorder_.Take();
  const Admission admission = *node_.manager().AdmitUpdate(dsp, TestNode::Resources(1000));
  EXPECT_THAT(recorder_.told, IsEmpty());
  node_.runtime.Apply(dsp, admission.adjustment);
  node_.manager().UpdateSucceeded(admission);
  EXPECT_THAT(recorder_.told, ElementsAre("dsp cpus=1 exclusive=1"));
}

TEST_F(InForceTest, ARestartedDaemonTellsWhereEachContainerRuns) {
  node_.KeepState(files_);
  node_.Run("dsp", kGuaranteed, 2000);
  node_.Run("web", kBurstable, 100);
  node_.FlushState();
  recorder_.Take();
  node_.Restart();
  // Each container is reported once by the list, and the sharing one again: the list shows no other
  // container on its CPUs, but they are not exclusive.
  EXPECT_THAT(recorder_.told,
              UnorderedElementsAre("dsp cpus=1-2 exclusive=1-2",
                                   "web cpus=0,3-7 exclusive=", "web cpus=0,3-7 exclusive="));
}

TEST_F(InForceTest, WhatIsUnknownIsNotTold) {
  node_.Run("web", kBurstable, 100);
  *node_.Create("dsp", kGuaranteed, 2000);
  recorder_.Take();
  // The update is under way when the connection is lost, and was carried out unseen.
  node_.Reconnect();
  EXPECT_THAT(recorder_.Take(), Each(StartsWith("dsp ")));
  node_.runtime.AnswerAll();
  EXPECT_THAT(recorder_.told, ElementsAre("web cpus=0,3-7 exclusive="));
}

TEST_F(InForceTest, ARemovalIsToldHoweverItBecomesKnown) {
  const ContainerId removed = node_.Run("removed", kBurstable, 100);
  const ContainerId exited = node_.Run("exited", kBurstable, 100);
  const ContainerId vanished = node_.Run("vanished", kBurstable, 100);
  const ContainerId missing = node_.Run("missing", kBurstable, 100);
  const PodSandboxId pod = node_.Known(exited)->pod_id;
  node_.Stop(exited);
  EXPECT_THAT(recorder_.removed, IsEmpty()) << "its files may still be wanted";
  node_.Remove(removed);
  EXPECT_THAT(recorder_.removed, ElementsAre("removed"));
  node_.runtime.Remove(exited);
  node_.manager().PodRemoved(pod);
  EXPECT_THAT(recorder_.removed, ElementsAre("removed", "exited"));
  node_.runtime.Remove(vanished);
  node_.Reconnect();
  EXPECT_THAT(recorder_.removed, ElementsAre("removed", "exited", "vanished"));
  // The answer to an update is the first report.
  node_.runtime.Remove(missing);
  *node_.Create("dsp", kGuaranteed, 2000);
  node_.runtime.AnswerAll();
  EXPECT_THAT(recorder_.removed, ElementsAre("removed", "exited", "vanished", "missing"));
}

TEST_F(InForceTest, ACompleteListHasAllContainers) {
  const ContainerId exited = node_.Run("exited", kBurstable, 100);
  node_.Stop(exited);
  node_.Run("web", kBurstable, 100);
  const CreateRequest request = TestNode::Request(node_.AddPod("new", kBurstable), "new", 100);
  ASSERT_TRUE(node_.manager().AdmitCreate(CreateRequest(request)).ok());
  node_.Reconnect();
  EXPECT_THAT(recorder_.listed, UnorderedElementsAre("exited", "web", "new"));
}

TEST_F(InForceTest, AListThatIsNotCompleteIsNotTold) {
  node_.Run("web", kBurstable, 100);
  recorder_.listed = {"none"};
  node_.runtime.unclear = true;
  node_.Reconnect();
  EXPECT_THAT(recorder_.listed, ElementsAre("none"));
}

}  // namespace
}  // namespace resmgr
