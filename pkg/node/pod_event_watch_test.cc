// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/pod_event_watch.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/policy/testing/test_snapshot.h"
#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/topology/machine_source.h"

namespace resmgr {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class PodEventWatchTest : public testing::Test {
 protected:
  PodEventWatchTest() {
    container_ = &snapshot_.Add("dsp", QosClass::kGuaranteed, 2000);
    other_ = &snapshot_.Add("other", QosClass::kGuaranteed, 2000);
    pod().uid = PodUid("uid-1");
    snapshot_.PodOf(other_->key).uid = PodUid("uid-2");
  }
  Pod& pod() { return snapshot_.PodOf(container_->key); }
  Observer::Act ActOf(std::string_view why = "", std::span<const Shift> others = {}) {
    return {.policy = policy_,
            .snapshot = snapshot_,
            .pod = pod(),
            .container = *container_,
            .why = why,
            .others = others};
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

  const Machine machine_ = *LoadMachine("synthetic:core:4 pu:1");
  const test::FirstFitPolicy policy_{machine_};
  test::TestSnapshot snapshot_;
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
    EXPECT_TRUE(event.warning);
    EXPECT_EQ(event.reason, "CPURefused");
    EXPECT_EQ(event.pod_namespace, "ns");
    EXPECT_EQ(event.pod, "dsp");
    EXPECT_EQ(event.uid, "uid-1");
    EXPECT_EQ(event.count, 1);
    EXPECT_EQ(std::chrono::system_clock::to_time_t(event.last), 1'767'323'045);
  }
  EXPECT_EQ(told_[0].message,
            "container dsp: its creation is refused by policy first-fit: 2 CPUs needed, 1 free");
  EXPECT_EQ(told_[1].message,
            "container dsp: an update is refused by policy first-fit: 3 CPUs needed, 1 free");
  EXPECT_EQ(told_[2].message, "container dsp: its start is refused: CPU 1 is in use by ns/b/main");
}

TEST_F(PodEventWatchTest, AMoveOfExclusiveCpusIsNormal) {
  watch_.OnMoved(ActOf("policy static takes over"),
                 Exclusively(container_->key, CpuSet{1, 2}, CpuSet{2, 3}));
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_FALSE(told_[0].warning);
  EXPECT_EQ(told_[0].reason, "CPUsMoved");
  EXPECT_EQ(told_[0].message,
            "container dsp: CPUs 1-2, exclusive -> CPUs 2-3, exclusive (policy static takes over)");
}

TEST_F(PodEventWatchTest, FewerExclusiveCpusAreALoss) {
  watch_.OnMoved(ActOf("policy null takes over"),
                 {.first = container_->key,
                  .from = {.cpus = CpuSet{1}, .exclusive = CpuSet{1}},
                  .to = {.cpus = CpuSet{0, 1}}});
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_TRUE(told_[0].warning);
  EXPECT_EQ(told_[0].reason, "ExclusiveCpusLost");
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
  EXPECT_THAT(told_, ElementsAre(AllOf(testing::Field(&PodEvent::uid, "uid-2"),
                                       testing::Field(&PodEvent::reason, "CPUsMoved"),
                                       testing::Field(&PodEvent::message, Not(HasSubstr("dsp"))))));
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
  EXPECT_LE(told_[0].message.size(), 1024U);
  EXPECT_THAT(told_[0].message, HasSubstr("\\x1b[31m\\x0a"));
  EXPECT_THAT(told_[0].message, Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace resmgr
