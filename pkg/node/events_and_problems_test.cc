// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/node/pod_event_watch.h"
#include "pkg/node/problems_watch.h"
#include "pkg/node/refusals.h"
#include "pkg/policy/testing/test_snapshot.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/topology/machine_source.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::RunUntil;
using std::chrono::minutes;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class ActsTest : public testing::Test {
 protected:
  Container& Add(const std::string& name) {
    return snapshot_.Add(name, QosClass::kGuaranteed, 2000);
  }
  Observer::Act ActOf(const Container& container, std::string_view why = "",
                      std::span<const Shift> others = {}) {
    return {.policy = policy_,
            .snapshot = snapshot_,
            .pod = snapshot_.PodOf(container.key),
            .container = container,
            .why = why,
            .others = others};
  }

  const Machine machine_ = *LoadMachine("synthetic:core:4 pu:1");
  const test::FirstFitPolicy policy_{machine_};
  test::TestSnapshot snapshot_;
};

class PodEventWatchTest : public ActsTest {
 protected:
  PodEventWatchTest() {
    container_ = &Add("dsp");
    other_ = &Add("other");
    pod().uid = PodUid("uid-1");
    snapshot_.PodOf(other_->key).uid = PodUid("uid-2");
  }
  Pod& pod() { return snapshot_.PodOf(container_->key); }
  Observer::Act ActOf(std::string_view why = "", std::span<const Shift> others = {}) {
    return ActsTest::ActOf(*container_, why, others);
  }
  static Shift Exclusively(ContainerKey key, const CpuSet& from, const CpuSet& to) {
    return {.first = key,
            .from = {.cpus = from, .exclusive = from},
            .to = {.cpus = to, .exclusive = to}};
  }
  static Shift Shared(ContainerKey key) {
    return {.first = key,
            .containers = 3,
            .from = {.cpus = CpuSet{0, 1, 2}},
            .to = {.cpus = CpuSet{0, 1}}};
  }

  Container* container_ = nullptr;
  Container* other_ = nullptr;
  std::vector<PodEvent> told_;
  PodEventWatch watch_{[this](PodEvent event) { told_.push_back(std::move(event)); },
                       [] { return std::chrono::system_clock::from_time_t(1'767'323'045); }};
};

TEST_F(PodEventWatchTest, ARefusalIsAWarningOfItsPod) {
  watch_.OnRefused(ActOf(), ResourceExhausted("2 CPUs needed, 1 free"));
  watch_.OnRefused(ActOf("an update"), ResourceExhausted("3 CPUs needed, 1 free"));
  watch_.OnStartRefused(ActOf(), FailedPrecondition("CPU 1 is in use by ns/b/main"));
  ASSERT_THAT(told_, SizeIs(3));
  for (const PodEvent& event : told_) {
    EXPECT_TRUE(event.warning());
    EXPECT_EQ(event.reason(), "CPURefused");
    EXPECT_EQ(event.pod_namespace(), "ns");
    EXPECT_EQ(event.pod(), "dsp");
    EXPECT_EQ(event.uid(), "uid-1");
    EXPECT_EQ(event.count(), 1);
    EXPECT_EQ(event.last_seen(), 1'767'323'045'000);
  }
  EXPECT_EQ(told_[0].message(),
            "container dsp: its creation is refused by policy first-fit: 2 CPUs needed, 1 free");
  EXPECT_EQ(told_[1].message(),
            "container dsp: an update is refused by policy first-fit: 3 CPUs needed, 1 free");
  EXPECT_EQ(told_[2].message(),
            "container dsp: its start is refused: CPU 1 is in use by ns/b/main");
}

TEST_F(PodEventWatchTest, AMoveOfExclusiveCpusIsNormal) {
  watch_.OnMoved(ActOf("policy static takes over"),
                 Exclusively(container_->key, CpuSet{1, 2}, CpuSet{2, 3}));
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_FALSE(told_[0].warning());
  EXPECT_EQ(told_[0].reason(), "CPUsMoved");
  EXPECT_EQ(told_[0].message(),
            "container dsp: CPUs 1-2, exclusive -> CPUs 2-3, exclusive (policy static takes over)");
}

TEST_F(PodEventWatchTest, FewerExclusiveCpusAreALoss) {
  watch_.OnMoved(ActOf("policy null takes over"),
                 {.first = container_->key,
                  .from = {.cpus = CpuSet{1}, .exclusive = CpuSet{1}},
                  .to = {.cpus = CpuSet{0, 1}}});
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_TRUE(told_[0].warning());
  EXPECT_EQ(told_[0].reason(), "ExclusiveCpusLost");
}

TEST_F(PodEventWatchTest, MovesOfSharedContainersAreNone) {
  watch_.OnMoved(ActOf("asked for"), Shared(container_->key));
  const std::vector<Shift> others = {Shared(other_->key)};
  watch_.OnPlaced(ActOf("", others));
  watch_.OnReleased(ActOf("it ended", others));
  EXPECT_THAT(told_, IsEmpty());
}

// A reader of a pod's Events may have no right to see pods of other namespaces.
TEST_F(PodEventWatchTest, WhatMovesForTheSakeOfAnotherIsToldWithoutItsName) {
  const std::vector<Shift> others = {Exclusively(container_->key, CpuSet{1}, CpuSet{1, 2}),
                                     Exclusively(other_->key, CpuSet{2, 3}, CpuSet{3, 0}),
                                     Exclusively(ContainerKey{77}, CpuSet{5}, CpuSet{6})};
  watch_.OnUpdated(ActOf("", others));
  EXPECT_THAT(told_,
              ElementsAre(AllOf(testing::Property(&PodEvent::uid, "uid-2"),
                                testing::Property(&PodEvent::reason, "CPUsMoved"),
                                testing::Property(&PodEvent::message, Not(HasSubstr("dsp"))))));
}

TEST_F(PodEventWatchTest, APodThatNoKubeletMadeHasNone) {
  pod().uid = PodUid("");
  watch_.OnRefused(ActOf(), ResourceExhausted("no room"));
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(PodEventWatchTest, MessagesAreBoundedAndFitForATerminal) {
  container_->name = std::string(300, 'n');
  watch_.OnRefused(ActOf(), ResourceExhausted("{}", "\x1b[31m" + std::string(5000, '\n')));
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_LE(told_[0].message().size(), 1024U);
  EXPECT_THAT(told_[0].message(), HasSubstr("\\x1b[31m\\x0a"));
  EXPECT_THAT(told_[0].message(), Not(HasSubstr("\n")));
}

class RefusalsTest : public ActsTest {
 protected:
  // Starts the watch as a new daemon does.
  void Start() {
    refusals_ = std::make_unique<Refusals>(history_, [this] { return now_; });
  }
  // As if the history had restored it from a former daemon.
  void Restore(const std::string& container, Refusals::Time time) {
    history_.Restore({.time = time,
                      .event = History::Event::kRefused,
                      .container = container,
                      .place = std::make_shared<const Place>(),
                      .reason = std::make_shared<const std::string>(),
                      .asked = std::make_shared<const History::Asked>(),
                      .error = "needs 20"});
  }
  std::string NameOf(const Container& container) {
    return FullName(snapshot_.PodOf(container.key), container.name);
  }

  Refusals::Time now_{std::chrono::hours(1000)};
  History history_;
  std::unique_ptr<Refusals> refusals_;
};

TEST_F(RefusalsTest, AreProblemsForAnHour) {
  Start();
  const Container& web = Add("web");
  EXPECT_THAT(refusals_->problems(), IsEmpty());
  refusals_->OnRefused(ActOf(web), ResourceExhausted("needs 20"));
  now_ += minutes(5);
  refusals_->OnStartRefused(ActOf(web), FailedPrecondition("is in the way"));
  const std::vector<Problem> problems = refusals_->problems();
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_EQ(problems[0].kind, "refused");
  EXPECT_EQ(problems[0].since, now_ - minutes(5));
  EXPECT_EQ(problems[0].message, NameOf(web) + " was refused 2 times: is in the way");
  EXPECT_THAT(problems[0].objects, ElementsAre(NameOf(web)));
  EXPECT_EQ(problems[0].next, "cri-resmgr-ctl explain " + NameOf(web));
  now_ += minutes(59);
  EXPECT_THAT(refusals_->problems(), SizeIs(1));
  now_ += minutes(2);
  EXPECT_THAT(refusals_->problems(), IsEmpty());
}

TEST_F(RefusalsTest, AContainerThatGotAPlaceIsNone) {
  Start();
  const Container& web = Add("web");
  refusals_->OnRefusedByStage(ActOf(web), ResourceExhausted("a plugin"));
  refusals_->OnPlaced(ActOf(Add("other")));
  EXPECT_THAT(refusals_->problems(), SizeIs(1));
  refusals_->OnPlaced(ActOf(web));
  EXPECT_THAT(refusals_->problems(), IsEmpty());
  now_ += minutes(1);
  refusals_->OnRefusedByStage(ActOf(web), ResourceExhausted("again"));
  ASSERT_THAT(refusals_->problems(), SizeIs(1));
  EXPECT_EQ(refusals_->problems()[0].since, now_ - minutes(1)) << "it was never really placed";
}

TEST_F(RefusalsTest, ManyAreNamedInOne) {
  Start();
  for (int i = 0; i < 8; ++i) {
    now_ += minutes(1);
    refusals_->OnRefused(ActOf(Add("web" + std::to_string(i))), ResourceExhausted("no room"));
  }
  const std::vector<Problem> problems = refusals_->problems();
  ASSERT_THAT(problems, SizeIs(6));
  EXPECT_THAT(problems[0].message, HasSubstr("web7 was refused 1 time: no room"));
  EXPECT_EQ(problems[5].message, "and 3 containers more were refused in the last hour");
  EXPECT_THAT(problems[5].objects, SizeIs(3));
  for (size_t i = 0; i < 2 * Refusals::kMost; ++i)
    refusals_->OnRefused(ActOf(Add("flood" + std::to_string(i))), ResourceExhausted("no room"));
  EXPECT_EQ(refusals_->all().size(), Refusals::kMost);
}

TEST_F(RefusalsTest, SurviveARestart) {
  Restore("default/old/main", now_ - minutes(61));
  Restore("default/web/main", now_ - minutes(30));
  Restore("default/later/main", now_ + minutes(30));
  Start();
  EXPECT_THAT(refusals_->all(), SizeIs(1));
  const std::vector<Problem> problems = refusals_->problems();
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_EQ(problems[0].message, "default/web/main was refused 1 time: needs 20");
  EXPECT_EQ(problems[0].since, now_ - minutes(30));
}

TEST(ProblemsWatchTest, CountsEachKindAndTellsThoseThatAreNew) {
  EventLoop loop;
  std::vector<Problem> problems;
  ProblemsWatch::Counts counts;
  std::vector<PodEvent> told;
  int looks = 0;
  const ProblemsWatch watch({.loop = loop,
                             .problems = [&] { return problems; },
                             .count =
                                 [&](const ProblemsWatch::Counts& now) {
                                   counts = now;
                                   ++looks;
                                 },
                             .tell = [&](PodEvent event) { told.push_back(std::move(event)); },
                             .period = std::chrono::milliseconds(1)});
  const auto look = [&] {
    const int before = looks;
    return RunUntil(loop, [&] { return looks > before; });
  };
  ASSERT_TRUE(look());
  EXPECT_EQ(counts.size(), kProblemKinds.size()) << "alerts need the series of each kind";
  EXPECT_EQ(counts["drift"], 0U);
  problems = {{.kind = "drift", .message = "a", .next = "cri-resmgr-ctl audit"},
              {.kind = "drift", .message = "b"},
              {.kind = "cpu-manager-on", .message = "c"}};
  ASSERT_TRUE(look());
  ASSERT_TRUE(look());
  EXPECT_EQ(counts["drift"], 2U);
  ASSERT_EQ(told.size(), 2U) << "one for each kind, once";
  EXPECT_EQ(told[0].reason(), "ProblemCpuManagerOn");
  EXPECT_EQ(told[1].reason(), "ProblemDrift");
  EXPECT_EQ(told[1].message(),
            "a (and 1 more); try: cri-resmgr-ctl audit; see docs/troubleshooting.md#drift");
  EXPECT_EQ(told[1].pod(), "") << "of the node";
  EXPECT_TRUE(told[1].warning());
  problems.clear();
  ASSERT_TRUE(look());
  EXPECT_EQ(counts["drift"], 0U);
  problems = {{.kind = "drift", .message = "again"}};
  ASSERT_TRUE(look());
  EXPECT_EQ(told.size(), 3U);
}

TEST(ProblemsWatchTest, AnEventIsNotLongerThanTheApiServerTakes) {
  const PodEvent event =
      NodeEventOf({.kind = "refused", .message = std::string(5000, 'x'), .next = "y"}, 1);
  EXPECT_LE(event.message().size(), 1024U);
  EXPECT_THAT(event.message(), EndsWith("; see docs/troubleshooting.md#refused"));
}

// Each kind leads to a section of the page.
TEST(RunbookTest, HasASectionForEachKind) {
  std::ifstream file(RESMGR_SOURCE_DIR "/docs/troubleshooting.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const std::string_view kind : kProblemKinds)
    EXPECT_THAT(page, HasSubstr("\n### " + std::string(kind) + "\n"));
}

}  // namespace
}  // namespace resmgr
