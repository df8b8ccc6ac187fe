// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/scheduler_watch.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "pkg/node/brain_host.h"
#include "pkg/node/cpus_watch.h"
#include "pkg/node/testing/fake_door.h"
#include "pkg/policy/testing/test_snapshot.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/clock.h"
#include "pkg/topology/machine_source.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::RunFor;
using resmgr::test::RunUntil;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class WatchTest : public testing::Test {
 protected:
  BrainHost::Options HostOptions(Observer& observer) {
    return {.loop = loop_,
            .machine = machine_,
            .door = door_,
            .pipeline = pipeline_,
            .hints = hints_,
            .manager = {.observer = &observer}};
  }
  void ListTheRuntime() { door_.links().back()->Synchronize(); }

  const Machine machine_ = *LoadMachine("synthetic:core:4 pu:1");
  EventLoop loop_;
  LoopClock clock_{loop_};
  Pipeline pipeline_{clock_, nullptr};
  HintFinder hints_{loop_, {}};
  test::FakeDoor door_;
};

// CPU 0 is not the policy's to grant.
class GrantingPolicy final : public test::FirstFitPolicy {
 public:
  using FirstFitPolicy::FirstFitPolicy;
  std::vector<Zone> Zones(const Snapshot&) const override {
    return {{.name = "shared", .cpus = CpuSet{0, 1, 2, 3}}, {.name = "reserved", .cpus = {0}}};
  }
};

class SchedulerWatchTest : public WatchTest {
 protected:
  void StartGranting() {
    host_.Start(std::make_unique<GrantingPolicy>(machine_));
    watch_.Follow(host_);
  }
  bool Told(size_t views) {
    return RunUntil(loop_, [this, views] { return told_.size() >= views; });
  }
  Observer::Act AnAct() {
    return {.policy = host_.manager()->policy(),
            .snapshot = host_.manager()->snapshot(),
            .pod = pod_,
            .container = container_};
  }

  static constexpr milliseconds kGather{10};
  static constexpr milliseconds kPeriod{40};

  const Pod pod_{};
  const Container container_{};
  NodeMetrics metrics_;
  milliseconds slow_{0};  // that telling takes
  std::vector<std::optional<SchedulerView>> told_;
  SchedulerWatch watch_{{.loop = loop_,
                         .machine = machine_,
                         .tell =
                             [this](const SchedulerView& view) {
                               std::this_thread::sleep_for(slow_);
                               told_.push_back(view.absent() ? std::nullopt : std::optional(view));
                             },
                         .metrics = &metrics_,
                         .gather = kGather,
                         .period = kPeriod}};
  BrainHost host_{HostOptions(watch_)};
};

// Row N10, with the agent's part in agent/topology_writer_test.cc.
TEST_F(SchedulerWatchTest, UnderNullThereIsNoView) {
  host_.Start(nullptr);
  watch_.Follow(host_);
  watch_.NoteConfiguration({});
  watch_.NoteConfiguration({});
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_EQ(told_[0], std::nullopt);
}

TEST_F(SchedulerWatchTest, ThereIsNoViewWhereTheConfigurationSaysSo) {
  StartGranting();
  ListTheRuntime();
  watch_.NoteConfiguration({.publish = false});
  watch_.OnPlaced(AnAct());
  RunFor(loop_, 3 * kPeriod);
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_EQ(told_[0], std::nullopt);
  watch_.NoteConfiguration({});
  ASSERT_THAT(told_, SizeIs(2));
  EXPECT_NE(told_[1], std::nullopt);
}

// Otherwise a restart would report a full node to schedulers as empty.
TEST_F(SchedulerWatchTest, NothingIsToldBeforeTheRuntimeIsListed) {
  StartGranting();
  watch_.NoteConfiguration({});
  RunFor(loop_, 3 * kPeriod);
  EXPECT_THAT(told_, IsEmpty());
  ListTheRuntime();
  ASSERT_TRUE(Told(1));
  ASSERT_NE(told_[0], std::nullopt);
  ASSERT_EQ(told_[0]->zones_size(), 1);
  EXPECT_EQ(told_[0]->zones(0).amounts(0).name(), "cpu");
  EXPECT_EQ(told_[0]->zones(0).amounts(0).capacity(), 4);
  EXPECT_EQ(told_[0]->zones(0).amounts(0).allocatable(), 3);
  EXPECT_EQ(told_[0]->zones(0).amounts(0).available(), 3);
}

TEST_F(SchedulerWatchTest, PoolsAreToldWhereTheConfigurationSaysSo) {
  StartGranting();
  ListTheRuntime();
  watch_.NoteConfiguration({});
  ASSERT_TRUE(Told(1));
  EXPECT_EQ(told_[0]->pools_size(), 0);
  watch_.NoteConfiguration({.pools = true});
  ASSERT_TRUE(Told(2));
  ASSERT_EQ(told_[1]->pools_size(), 2);
  EXPECT_EQ(told_[1]->pools(0).name(), "shared");
  EXPECT_EQ(told_[1]->pools(0).cpus(), "0-3");
  EXPECT_EQ(told_[1]->pools(1).name(), "reserved");
  EXPECT_EQ(told_[1]->pools(1).cpus(), "0");
}

TEST_F(SchedulerWatchTest, WhatIsTheSameIsToldOnce) {
  StartGranting();
  ListTheRuntime();
  watch_.NoteConfiguration({});
  for (int i = 0; i < 5; ++i) {
    watch_.OnPlaced(AnAct());
    RunFor(loop_, 2 * kPeriod);
  }
  EXPECT_THAT(told_, SizeIs(1));
}

TEST_F(SchedulerWatchTest, ConfigurationsOneAfterTheOtherAreOneQuestionToo) {
  StartGranting();
  ListTheRuntime();
  watch_.NoteConfiguration({});
  ASSERT_THAT(told_, SizeIs(1));
  for (int i = 0; i < 100; ++i)
    watch_.NoteConfiguration({.alignment = i % 2 == 0 ? NrtAlignment::kRefuse : NrtAlignment()});
  EXPECT_THAT(told_, SizeIs(1));
  watch_.NoteConfiguration({.alignment = NrtAlignment::kRefuse});
  ASSERT_TRUE(Told(2));
  RunFor(loop_, 3 * kPeriod);
  ASSERT_THAT(told_, SizeIs(2));
  watch_.NoteConfiguration({.publish = false});
  ASSERT_THAT(told_, SizeIs(3)) << "at once";
  EXPECT_EQ(told_[2], std::nullopt);
}

// As on a machine with hundreds of CPUs: calls are not to wait for it once a second.
TEST_F(SchedulerWatchTest, AViewThatTookLongIsFollowedByALongPause) {
  StartGranting();
  ListTheRuntime();
  slow_ = milliseconds(20);
  watch_.NoteConfiguration({});
  ASSERT_THAT(told_, SizeIs(1));
  watch_.NoteConfiguration({.alignment = NrtAlignment::kRefuse});
  RunFor(loop_, milliseconds(600));
  EXPECT_THAT(told_, SizeIs(1));
  EXPECT_TRUE(Told(2));
}

// Row N7: changes of one moment are one view, and no two views are made within a period.
TEST_F(SchedulerWatchTest, ManyChangesAreOneQuestionToThePolicy) {
  StartGranting();
  ListTheRuntime();
  watch_.NoteConfiguration({});
  const auto made = [this] {
    for (const auto& family : metrics_.collectable()->Collect())
      if (family.name == "cri_resmgr_scheduler_views_total")
        return family.metric.at(0).counter.value;
    return -1.0;
  };
  EXPECT_EQ(made(), 1);
  for (int i = 0; i < 100; ++i) {
    watch_.OnPlaced(AnAct());
    watch_.OnRemoved(AnAct());
  }
  EXPECT_EQ(made(), 1);
  ASSERT_TRUE(RunUntil(loop_, [&] { return made() > 1; }));
  EXPECT_EQ(made(), 2);
}

class CpusWatchTest : public WatchTest {
 protected:
  void StartFirstFit() {
    host_.Start(std::make_unique<test::FirstFitPolicy>(machine_));
    watch_.Follow(host_);
  }

  static constexpr milliseconds kPeriod{20};
  static constexpr char kAllFree[] =
      R"({"version":1,"numa":[{"id":0,"allocatable":0,"exclusive":0,"free":0}]})";

  std::vector<std::string> told_;
  CpusWatch watch_{loop_, machine_, [this](std::string cpus) { told_.push_back(std::move(cpus)); },
                   kPeriod};
  BrainHost host_{HostOptions(watch_)};
};

TEST_F(CpusWatchTest, UnderNullThereIsNothingToShow) {
  host_.Start(nullptr);
  watch_.Follow(host_);
  watch_.NoteConfiguration();
  EXPECT_THAT(told_, ElementsAre(""));
}

// Otherwise a restart would show a full node as an empty one.
TEST_F(CpusWatchTest, NothingIsToldBeforeTheRuntimeIsListed) {
  StartFirstFit();
  watch_.NoteConfiguration();
  RunFor(loop_, 3 * kPeriod);
  EXPECT_THAT(told_, IsEmpty());
  ListTheRuntime();
  RunFor(loop_, 2 * kPeriod);
  EXPECT_THAT(told_, ElementsAre(kAllFree));
}

TEST_F(CpusWatchTest, ManyChangesAreToldOnceAPeriodLater) {
  StartFirstFit();
  ListTheRuntime();
  const Observer::Act act{.policy = host_.manager()->policy(),
                          .snapshot = host_.manager()->snapshot(),
                          .pod = Pod(),
                          .container = Container()};
  for (int i = 0; i < 100; ++i) {
    watch_.OnPlaced(act);
    watch_.OnReleased(act);
  }
  EXPECT_THAT(told_, IsEmpty());
  RunFor(loop_, 3 * kPeriod);
  EXPECT_THAT(told_, SizeIs(1));
}

TEST_F(CpusWatchTest, AnotherConfigurationIsToldAtOnce) {
  StartFirstFit();
  ListTheRuntime();
  watch_.NoteConfiguration();
  EXPECT_THAT(told_, ElementsAre(kAllFree));
  host_.SetPolicy(nullptr, [](const Status&) {});
  RunFor(loop_, milliseconds(1));
  watch_.NoteConfiguration();
  EXPECT_THAT(told_, ElementsAre(kAllFree, ""));
}

// CPU 0 is reserved, CPU 7 is not the policy's.
class ReservedAndShared final : public test::FirstFitPolicy {
 public:
  using FirstFitPolicy::FirstFitPolicy;
  std::vector<Zone> Zones(const Snapshot&) const override {
    return {{.name = "shared", .cpus = CpuSet{0, 1, 2, 3, 6}},
            {.name = "exclusive", .cpus = CpuSet{4, 5}},
            {.name = "reserved", .cpus = CpuSet{0}}};
  }
};

class NodeCpusTest : public testing::Test {
 protected:
  void Add(const CpuSet& exclusive, ContainerState state = ContainerState::kRunning) {
    Container& container = snapshot_.Add("pod", QosClass::kGuaranteed, 1000);
    container.state = state;
    container.placement.exclusive = exclusive;
  }

  const Machine machine_ = *LoadMachine("synthetic:package:2 numa:1 core:4 pu:1");
  const ReservedAndShared policy_{machine_};
  test::TestSnapshot snapshot_;
};

TEST_F(NodeCpusTest, CountsByNumaNode) {
  Add(CpuSet{4, 5});
  Add(CpuSet{});
  Add(CpuSet{2}, ContainerState::kExited);
  EXPECT_THAT(CpusByNumaNode(machine_, policy_, snapshot_),
              ElementsAre(NumaCpus{.node = 0, .allocatable = 3, .exclusive = 0, .free = 3},
                          NumaCpus{.node = 1, .allocatable = 3, .exclusive = 2, .free = 1}));
}

// A container that a former policy placed may have CPUs that this one has reserved.
TEST_F(NodeCpusTest, ExclusiveCpusThatAreReservedAreNoFreeOnes) {
  Add(CpuSet{0, 1});
  EXPECT_THAT(CpusByNumaNode(machine_, policy_, snapshot_),
              ElementsAre(NumaCpus{.node = 0, .allocatable = 3, .exclusive = 2, .free = 2},
                          NumaCpus{.node = 1, .allocatable = 3, .exclusive = 0, .free = 3}));
}

TEST_F(NodeCpusTest, IsCompactJson) {
  EXPECT_EQ(ToJson({{.node = 0, .allocatable = 3, .exclusive = 2, .free = 1},
                    {.node = 4, .allocatable = 8, .exclusive = 0, .free = 8}}),
            R"({"version":1,"numa":[{"id":0,"allocatable":3,"exclusive":2,"free":1},)"
            R"({"id":4,"allocatable":8,"exclusive":0,"free":8}]})");
  EXPECT_EQ(ToJson({}), R"({"version":1,"numa":[]})");
}

}  // namespace
}  // namespace resmgr
