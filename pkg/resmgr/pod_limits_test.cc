// SPDX-License-Identifier: Apache-2.0
// Pods with resources of their own (KEP-2837), and annotations that say something else than
// requests.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/resmgr/testing/state_files.h"
#include "pkg/resmgr/testing/test_node.h"
#include "test/support/captured_log.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::FirstFit;
using test::S1Ht;
using test::TestNode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using enum QosClass;

LinuxResources Limited(int64_t milli_cpu, int64_t limit) {
  LinuxResources resources = TestNode::Resources(milli_cpu);
  resources.cpu_period = kDefaultCpuPeriod;
  resources.cpu_quota = QuotaFromMilliCpu(MilliCpu{limit});
  return resources;
}

class PodLimitsTest : protected test::StateFiles, public test::ManagerFixture {
 protected:
  void AddPod(std::string_view name, QosClass qos, int64_t milli_cpu) {
    pod_ = node_.AddPod(name, qos);
    manager().PodResourcesChanged(pod_, {}, Limited(milli_cpu, milli_cpu));
  }
  ContainerId Run(std::string_view name, const LinuxResources& resources, uint32_t attempt = 0) {
    CreateRequest request = TestNode::Request(pod_, name, 0, attempt);
    request.resources = resources;
    ContainerId id = *node_.Create(request);
    runtime().AnswerAll();
    node_.Start(id);
    return id;
  }
  int64_t RequestOf(const ContainerId& id) {
    return node_.Known(id)->requirements.cpu_request.value;
  }

  PodSandboxId pod_;
};

TEST_F(PodLimitsTest, ContainersThatHaveOnlyTheirPodsCpusShare) {
  AddPod("batch", kGuaranteed, 4000);
  const ContainerId a = Run("a", Limited(4000, 4000));
  EXPECT_EQ(node_.Exclusive(a), "1-4") << "it may be alone";
  const ContainerId b = Run("b", Limited(4000, 4000));
  const ContainerId c = Run("c", Limited(4000, 4000));
  for (const ContainerId& id : {a, b, c}) {
    EXPECT_EQ(node_.Exclusive(id), "");
    EXPECT_EQ(runtime().CpusOf(id), "0-7");
  }
  EXPECT_EQ(RequestOf(a) + RequestOf(b) + RequestOf(c), 4000);
}

TEST_F(PodLimitsTest, WhatHasItsOwnCpusKeepsThem) {
  AddPod("batch", kGuaranteed, 4000);
  const ContainerId shares = Run("shares", Limited(4000, 4000));
  const ContainerId own = Run("own", Limited(1000, 1000));
  EXPECT_EQ(node_.Exclusive(shares), "");
  EXPECT_EQ(RequestOf(shares), 3000);
  EXPECT_EQ(node_.Exclusive(own), "1");
  const ContainerId limited_by_pod = Run("limited-by-pod", Limited(1000, 4000));
  EXPECT_EQ(node_.Exclusive(limited_by_pod), "");
}

TEST_F(PodLimitsTest, RoomIsMadeBeforeANewOneIsPlaced) {
  AddPod("batch", kGuaranteed, 7000);
  const ContainerId shares = Run("shares", Limited(7000, 7000));
  EXPECT_EQ(node_.Exclusive(shares), "1-7");
  const ContainerId own = Run("own", Limited(6000, 6000));
  EXPECT_EQ(node_.Exclusive(own), "1-6");
  EXPECT_EQ(runtime().CpusOf(shares), "0,7");
}

TEST_F(PodLimitsTest, TheNextAttemptAndAnEndedContainerDoNotCount) {
  AddPod("plain", kGuaranteed, 4000);
  const ContainerId init = Run("init", Limited(4000, 4000));
  node_.Stop(init);
  const ContainerId main = Run("main", Limited(4000, 4000));
  EXPECT_EQ(node_.Exclusive(main), "1-4");
  const ContainerId again = Run("main", Limited(4000, 4000), 1);
  EXPECT_EQ(node_.Exclusive(again), "1-4");
}

// The containers of a pod with two that have only its CPUs, where the first has them.
class SharedPodTest : public PodLimitsTest {
 protected:
  SharedPodTest() {
    node_.KeepState(files_);
    AddPod("batch", kGuaranteed, 4000);
    a_ = Run("a", Limited(4000, 4000));
    b_ = Run("b", Limited(4000, 4000));
    EXPECT_EQ(RequestOf(a_), 4000);
    EXPECT_EQ(RequestOf(b_), 0);
  }

  ContainerId a_;
  ContainerId b_;
};

TEST_F(SharedPodTest, OneThatEndsLeavesItsShareToTheOthers) {
  const auto ends = std::to_array<void (*)(TestNode&, const ContainerId&)>({
      [](TestNode& node, const ContainerId& id) { node.Stop(id); },
      [](TestNode& node, const ContainerId& id) { node.Remove(id); },
      [](TestNode& node, const ContainerId& id) {
        node.Crash(id);
        EXPECT_TRUE(node.ListAgain());
      },
      [](TestNode& node, const ContainerId& id) {
        node.Crash(id);
        node.Reconnect();
      },
  });
  ContainerId holder = a_;
  ContainerId other = b_;
  for (const auto& end : ends) {
    ASSERT_EQ(RequestOf(holder), 4000);
    end(node_, holder);
    EXPECT_EQ(RequestOf(other), 4000);
    holder = std::exchange(other, Run("next-" + std::string(holder.value()), Limited(4000, 4000)));
    EXPECT_EQ(RequestOf(other), 0);
  }
}

TEST_F(SharedPodTest, TheShareOfOneThatEndsWithTheDaemonIsLeftToTheOthers) {
  node_.FlushState();
  node_.Crash(a_);
  node_.Restart();
  EXPECT_EQ(RequestOf(b_), 4000);
  a_ = Run("a", Limited(4000, 4000), 1);
  EXPECT_EQ(RequestOf(a_) + RequestOf(b_), 4000);
}

TEST_F(SharedPodTest, TheNextAttemptHasTheShareOfTheFormerOne) {
  node_.Stop(a_);
  ASSERT_EQ(RequestOf(b_), 4000);
  a_ = Run("a", Limited(4000, 4000), 1);
  EXPECT_EQ(RequestOf(a_), 4000);
  EXPECT_EQ(RequestOf(b_), 0);
  node_.Stop(b_);
  b_ = Run("b", Limited(4000, 4000), 1);
  EXPECT_EQ(RequestOf(a_), 4000);
  EXPECT_EQ(RequestOf(b_), 0);
  // The kubelet replaces one whose end is not known here yet.
  a_ = Run("a", Limited(4000, 4000), 2);
  EXPECT_EQ(RequestOf(a_), 4000);
  EXPECT_EQ(RequestOf(b_), 0);
}

TEST_F(SharedPodTest, AnAttemptThatIsNotCreatedLeavesTheShareToTheOthers) {
  node_.Stop(a_);
  node_.Stop(b_);
  CreateRequest request = TestNode::Request(pod_, "a", 0, 1);
  request.resources = Limited(4000, 4000);
  const Admission next = *manager().AdmitCreate(CreateRequest(request));
  const ContainerId other = Run("b", Limited(1000, 4000), 1);
  b_ = Run("c", Limited(4000, 4000));
  ASSERT_EQ(RequestOf(b_), 0);
  manager().CreateFailed(next.key);
  EXPECT_EQ(RequestOf(b_), 3000);
  EXPECT_EQ(RequestOf(other), 1000);
}

TEST_F(PodLimitsTest, APodThatGrewIsKnownFromTheCreationToo) {
  AddPod("plain", kGuaranteed, 4000);
  const ContainerId a = Run("a", Limited(2000, 2000));
  CreateRequest request = TestNode::Request(pod_, "b", 0);
  request.resources = Limited(4000, 4000);
  request.pod_resources = Limited(6000, 6000);
  const ContainerId b = *node_.Create(request);
  EXPECT_EQ(node_.Exclusive(b), "3-6");
  EXPECT_EQ(node_.Exclusive(a), "1-2");
}

TEST_F(PodLimitsTest, AResizedPodGivesItsContainersMore) {
  AddPod("batch", kGuaranteed, 4000);
  const ContainerId a = Run("a", Limited(4000, 4000));
  const ContainerId b = Run("b", Limited(4000, 4000));
  const Admission grown = *manager().AdmitUpdate(b, Limited(6000, 6000));
  EXPECT_EQ(node_.Exclusive(b), "") << "what is its pod's stays its pod's";
  manager().UpdateSucceeded(grown);
  manager().PodResourcesChanged(pod_, {}, Limited(6000, 6000));
  EXPECT_EQ(RequestOf(a) + RequestOf(b), 6000);
}

TEST_F(PodLimitsTest, AResizeWithinAPodChangesTheShareOfOthers) {
  AddPod("batch", kGuaranteed, 7000);
  const ContainerId shares = Run("shares", Limited(7000, 7000));
  const ContainerId own = Run("own", Limited(1000, 1000));
  ASSERT_EQ(RequestOf(shares), 6000);
  const Admission grown = *manager().AdmitUpdate(own, Limited(6000, 6000));
  EXPECT_EQ(RequestOf(shares), 1000);
  manager().UpdateFailed(grown);
  EXPECT_EQ(RequestOf(own), 1000);
  EXPECT_EQ(RequestOf(shares), 6000);
  manager().UpdateSucceeded(*manager().AdmitUpdate(own, Limited(6000, 6000)));
  runtime().AnswerAll();
  EXPECT_EQ(node_.Exclusive(own), "1-6");
  const Admission shrunk = *manager().AdmitUpdate(own, Limited(2000, 2000));
  EXPECT_EQ(RequestOf(shares), 5000);
  manager().UpdateFailed(shrunk);
  EXPECT_EQ(node_.Exclusive(own), "1-6");
  EXPECT_EQ(RequestOf(shares), 1000);
}

TEST_F(PodLimitsTest, AResizeThatIsRefusedChangesNoShare) {
  node_.Run("other", kGuaranteed, 2000);
  AddPod("batch", kGuaranteed, 7000);
  const ContainerId own = Run("own", Limited(1000, 1000));
  const ContainerId shares = Run("shares", Limited(7000, 7000));
  EXPECT_FALSE(manager().AdmitUpdate(own, Limited(6000, 6000)).ok()) << "five CPUs are left";
  EXPECT_EQ(RequestOf(shares), 6000);
  EXPECT_EQ(RequestOf(own), 1000);
}

TEST_F(PodLimitsTest, AdoptedContainersAreNotTakenForExclusiveByThePodsCpuset) {
  AddPod("batch", kGuaranteed, 4000);
  const ContainerId a = Run("a", Limited(4000, 4000));
  const ContainerId b = Run("b", Limited(4000, 4000));
  for (const ContainerId& id : {a, b})
    runtime().Find(id)->resources.cpuset_cpus = "4-7";
  runtime().held.pods.back().resources = Limited(4000, 4000);
  node_.Restart();
  runtime().AnswerAll();
  for (const ContainerId& id : {a, b})
    EXPECT_EQ(node_.Exclusive(id), "");
  EXPECT_EQ(RequestOf(a) + RequestOf(b), 4000);
}

// Nothing is saved of a container that has exited, such as an init container.
TEST_F(PodLimitsTest, ARestartDividesNothingAnewForOneThatHasExited) {
  node_.KeepState(files_);
  AddPod("batch", kBurstable, 4000);
  const ContainerId init = Run("init", Limited(4000, 4000));
  node_.Stop(init);
  const ContainerId shares = Run("shares", Limited(4000, 4000));
  const ContainerId own = Run("own", Limited(1000, 1000));
  node_.Stop(own);
  ASSERT_EQ(RequestOf(shares), 4000);
  node_.FlushState();
  node_.Restart();
  EXPECT_EQ(RequestOf(shares), 4000);
}

// A daemon that starts knows the ids of containers, but not their order.
TEST_F(PodLimitsTest, TheShareOfAPodStaysWithItsContainerAfterARestart) {
  node_.KeepState(files_);
  AddPod("batch", kGuaranteed, 4000);
  const ContainerId b = Run("b", Limited(4000, 4000));
  const ContainerId a = Run("a", Limited(4000, 4000));
  ASSERT_LT(a, b);
  node_.FlushState();
  node_.Restart();
  Run("c", Limited(1000, 1000));
  EXPECT_EQ(RequestOf(b), 3000);
  EXPECT_EQ(RequestOf(a), 0);
}

TEST_F(PodLimitsTest, AResizeThatAKillLeftOpenLeavesOthersWhatItDidNotTake) {
  node_.KeepState(files_);
  AddPod("batch", kGuaranteed, 7000);
  const ContainerId shares = Run("shares", Limited(7000, 7000));
  const ContainerId own = Run("own", Limited(2000, 2000));
  for (const auto& [asked, left] : {std::pair{6000, 1000}, std::pair{1000, 6000}}) {
    ASSERT_EQ(RequestOf(shares), 5000);
    ASSERT_TRUE(manager().AdmitUpdate(own, Limited(asked, asked)).ok());
    ASSERT_EQ(RequestOf(shares), left);
    node_.Restart();
    EXPECT_EQ(RequestOf(own), 2000) << "the runtime does not have the update of " << asked;
    EXPECT_EQ(RequestOf(shares), 5000);
    runtime().AnswerAll();
  }
}

TEST_F(PodLimitsTest, AResizeThatArrivedBeforeAKillHasItsShare) {
  node_.KeepState(files_);
  AddPod("batch", kGuaranteed, 7000);
  const ContainerId shares = Run("shares", Limited(7000, 7000));
  const ContainerId own = Run("own", Limited(2000, 2000));
  const Admission grown = *manager().AdmitUpdate(own, Limited(6000, 6000));
  runtime().Apply(own, grown.adjustment);
  Merge(runtime().Find(own)->resources, Limited(6000, 6000));
  node_.Restart();
  EXPECT_EQ(RequestOf(own), 6000);
  EXPECT_EQ(RequestOf(shares), 1000);
  // One that is not on the disk.
  Merge(runtime().Find(own)->resources, Limited(3000, 3000));
  node_.Restart();
  EXPECT_EQ(RequestOf(own), 3000);
  EXPECT_EQ(RequestOf(shares), 4000);
}

// The pod and its containers were resized, and nothing of it is on the disk.
TEST_F(PodLimitsTest, ResizesThatWereNotSavedLeaveTheShareOfAPodWithItsContainer) {
  constexpr std::string_view kAnnotations[] = {"", R"({"containers":{"a":{},"b":{}}})"};
  for (const std::string_view annotation : kAnnotations) {
    SCOPED_TRACE(annotation);
    node_.KeepState(files_);
    pod_ = node_.AddPod(annotation.empty() ? "plain" : "annotated", kGuaranteed);
    if (!annotation.empty()) {
      runtime().held.pods.back().annotations.Set("intel.com/resources", annotation);
      manager().PodCreated(runtime().held.pods.back());
    }
    manager().PodResourcesChanged(pod_, {}, Limited(4000, 4000));
    const ContainerId b = Run("b", Limited(4000, 4000));
    const ContainerId a = Run("a", Limited(4000, 4000));
    ASSERT_EQ(RequestOf(b), 4000);
    ASSERT_EQ(RequestOf(a), 0);
    node_.FlushState();
    manager().PodResourcesChanged(pod_, {}, Limited(6000, 6000));
    for (const ContainerId& id : {a, b})
      Merge(runtime().Find(id)->resources, Limited(6000, 6000));
    node_.Restart();
    EXPECT_EQ(RequestOf(b), 6000);
    EXPECT_EQ(RequestOf(a), 0);
  }
}

TEST_F(PodLimitsTest, AContainerThatGetsMoreIsNotSaidToGetLess) {
  AddPod("batch", kGuaranteed, 7000);
  const ContainerId shares = Run("shares", Limited(7000, 7000));
  const ContainerId own = Run("own", Limited(6000, 6000));
  policy().spoil = [&](Plan& plan) {
    if (RequestOf(shares) == 5000) plan.Change(node_.Known(shares)->key).cpus = CpuSet{0};
  };
  const test::CapturedLog log;
  manager().UpdateSucceeded(*manager().AdmitUpdate(own, Limited(2000, 2000)));
  EXPECT_THAT(log.Text(), HasSubstr("moved shared container ns/batch/shares 0,3-7 -> 0 "
                                    "(the resources of its pod are divided anew)"));
}

TEST_F(PodLimitsTest, AResizeOutlivesTheContainerAndItsAnnotation) {
  pod_ = PodSandboxId("resized");
  Pod pod;
  pod.id = pod_;
  pod.name = "resized";
  pod.qos = kGuaranteed;
  pod.annotations.Set("intel.com/resources",
                      R"({"containers":{"main":{"limits":{"cpu":2,"memory":"1Gi"}}}})");
  runtime().held.pods.push_back(pod);
  manager().PodCreated(pod);
  LinuxResources two = Limited(2000, 2000);
  two.memory_limit = int64_t{1} << 30;
  const ContainerId first = Run("main", two);
  EXPECT_EQ(node_.Exclusive(first), "1-2");
  LinuxResources four = Limited(4000, 4000);
  four.memory_limit = two.memory_limit;
  const Admission resized = *manager().AdmitUpdate(first, four);
  runtime().Apply(first, resized.adjustment);
  manager().UpdateSucceeded(resized);
  EXPECT_EQ(node_.Exclusive(first), "1-4");
  EXPECT_EQ(node_.Known(first)->requirements.memory_request.value, int64_t{1} << 30);
  node_.Stop(first);
  const ContainerId second = Run("main", four, 1);
  EXPECT_EQ(node_.Exclusive(second), "1-4");
  EXPECT_THAT(node_.Known(second)->needs_note, HasSubstr("CPU of 2000m"));
}

// The creation of a container includes the changes of the others in its pod.

class FailedCreationTest : public PodLimitsTest {
 protected:
  // Runs a container that has exclusive CPUs as long as its pod has no other container.
  explicit FailedCreationTest(bool keeps = false) {
    if (keeps) node_.KeepState(files_);
    other_ = node_.Run("other", kGuaranteed, 2000);
    AddPod("batch", kGuaranteed, 4000);
    first_ = Run("first", Limited(4000, 4000));
    runtime().AnswerAll();
    runtime().history.clear();
  }
  CreateRequest Second(int64_t milli_cpu) {
    CreateRequest request = TestNode::Request(pod_, "second", 0);
    request.resources = Limited(milli_cpu, milli_cpu);
    return request;
  }
  void ExpectAsBefore() {
    EXPECT_EQ(node_.Exclusive(other_), "1-2");
    EXPECT_EQ(node_.Exclusive(first_), "3-6");
    EXPECT_EQ(RequestOf(first_), 4000);
  }

  ContainerId other_;
  ContainerId first_;
};

TEST_F(FailedCreationTest, ARefusalMovesNoContainer) {
  for (const auto refusal :
       {ResourceManager::Refusal::kTentative, ResourceManager::Refusal::kFinal}) {
    const StatusOr<Admission> second = manager().AdmitCreate(Second(6000), refusal);
    EXPECT_EQ(second.status().code(), StatusCode::kResourceExhausted) << second.status();
    EXPECT_THAT(runtime().history, IsEmpty());
    ExpectAsBefore();
  }
}

TEST_F(FailedCreationTest, ARefusalTellsOfNoMoves) {
  const test::CapturedLog log;
  EXPECT_FALSE(manager().AdmitCreate(Second(6000)).ok());
  EXPECT_TRUE(manager().AdmitCreate(Second(4000)).ok());
  const std::string text = log.Text();
  const size_t refused = text.find("refused ns/batch/second");
  const size_t moved = text.find("moved ");
  const size_t placed = text.find("placed ns/batch/second");
  EXPECT_LT(refused, moved) << text;
  EXPECT_LT(moved, placed) << text;
  EXPECT_NE(placed, std::string::npos) << text;
}

TEST_F(FailedCreationTest, AfterARefusalThePolicyDecidesAsBefore) {
  ASSERT_FALSE(node_.Create(Second(6000)).ok());
  const StatusOr<ContainerId> none = node_.Create("none", kGuaranteed, 2000);
  EXPECT_EQ(none.status().code(), StatusCode::kResourceExhausted) << "one CPU is free";
  EXPECT_EQ(node_.Exclusive(node_.Run("next", kGuaranteed, 1000)), "7");
  node_.Stop(first_);
  EXPECT_EQ(node_.Exclusive(node_.Run("last", kGuaranteed, 4000)), "3-6");
}

TEST_F(FailedCreationTest, AWrongPlanMovesNoContainer) {
  policy().spoil = [plans = 0](Plan& plan) mutable {
    // The first plan is about the existing container.
    if (++plans == 2) plan.Change(ContainerKey{4711});
  };
  EXPECT_EQ(manager().AdmitCreate(Second(4000)).status().code(), StatusCode::kInternal);
  EXPECT_THAT(runtime().history, IsEmpty());
  ExpectAsBefore();
}

// The decision was not sent to the runtime, so no binding has to be lifted.
TEST_F(FailedCreationTest, ARefusalBindsNoMemory) {
  policy().spoil = [this, plans = 0](Plan& plan) mutable {
    if (++plans == 2) plan.Change(ContainerKey{4711});
    for (PlacementChange& change : plan.changes) {
      if (change.key == node_.Known(first_)->key) change.placement.mems = NodeSet{0};
    }
  };
  EXPECT_EQ(manager().AdmitCreate(Second(4000)).status().code(), StatusCode::kInternal);
  ExpectAsBefore();
  EXPECT_FALSE(node_.Known(first_)->mems_bound);
}

TEST_F(FailedCreationTest, AWrongPlanForSiblingsMovesNoContainer) {
  policy().spoil = [plans = 0](Plan& plan) mutable {
    if (++plans == 1) plan.Change(ContainerKey{4711});
  };
  EXPECT_EQ(manager().AdmitCreate(Second(4000)).status().code(), StatusCode::kInternal);
  EXPECT_THAT(runtime().history, IsEmpty());
  ExpectAsBefore();
}

TEST_F(FailedCreationTest, WhatTheRuntimeRefusesIsUndone) {
  const Admission second = *manager().AdmitCreate(Second(4000));
  EXPECT_EQ(node_.Exclusive(first_), "");
  runtime().AnswerAll();
  ASSERT_EQ(runtime().CpusOf(first_), "0,3-7");
  manager().CreateFailed(second.key);
  ExpectAsBefore();
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(first_), "3-6");
}

// The decision that is taken back had bound the memory, and was sent to the runtime.
TEST_F(FailedCreationTest, MemoryIsNotLeftBound) {
  policy().spoil = [this](Plan& plan) {
    for (PlacementChange& change : plan.changes) {
      if (change.key == node_.Known(first_)->key) change.placement.mems = NodeSet{0};
    }
  };
  const Admission second = *manager().AdmitCreate(Second(4000));
  policy().spoil = nullptr;
  runtime().AnswerAll();
  manager().CreateFailed(second.key);
  ExpectAsBefore();
  EXPECT_EQ(node_.Known(first_)->placement.mems, node_.machine().allowed_nodes());
}

TEST_F(FailedCreationTest, CpusThatAnotherGotMeanwhileAreNotTakenBack) {
  const Admission second = *manager().AdmitCreate(Second(4000));
  const ContainerId next = *node_.Create("next", kGuaranteed, 1000);
  ASSERT_EQ(node_.Exclusive(next), "3");
  manager().CreateFailed(second.key);
  EXPECT_EQ(node_.Exclusive(next), "3");
  EXPECT_EQ(node_.Exclusive(first_), "4-7");
}

TEST_F(FailedCreationTest, CpusThatAClaimGotMeanwhileAreNotTakenBack) {
  const Admission second = *manager().AdmitCreate(Second(4000));
  runtime().AnswerAll();
  const auto claim = node_.Reserve({.uid = "u1", .parts = {{.device = "cpu", .cpus = 4}}});
  ASSERT_TRUE(claim.ok()) << claim.status();
  ASSERT_EQ(claim->All(), CpuSet::Range(3, 6));
  manager().CreateFailed(second.key);
  EXPECT_THAT(manager().claims().Held(), ElementsAre(*claim));
  EXPECT_EQ(node_.Exclusive(first_), "");
}

TEST_F(FailedCreationTest, CpusThatAnAttemptLeftAndAnotherGotAreNotTakenBack) {
  const ContainerId app = node_.Run("app", kGuaranteed, 1000);
  node_.Stop(first_);
  const PodSandboxId pod = node_.Known(other_)->pod_id;
  const Admission next = *manager().AdmitCreate(TestNode::Request(pod, "other", 1000, 1));
  const ContainerId third = *node_.Create("third", kGuaranteed, 1000);
  ASSERT_EQ(node_.Exclusive(app) + " " + node_.Exclusive(third), "7 2");
  manager().CreateFailed(next.key);
  EXPECT_EQ(node_.Exclusive(third), "2");
  EXPECT_EQ(node_.Exclusive(other_), "1,3");
}

TEST_F(FailedCreationTest, AContainerWithOtherSiblingsStaysReduced) {
  const Admission second = *manager().AdmitCreate(Second(4000));
  const ContainerId third = Run("third", Limited(4000, 4000));
  manager().CreateFailed(second.key);
  EXPECT_EQ(node_.Exclusive(first_), "");
  EXPECT_EQ(node_.Exclusive(third), "");
  EXPECT_EQ(RequestOf(first_) + RequestOf(third), 4000);
}

TEST_F(FailedCreationTest, WhatWasAskedForMeanwhileStays) {
  const Admission second = *manager().AdmitCreate(Second(4000));
  const Admission resized = *manager().AdmitUpdate(first_, Limited(1000, 1000));
  manager().UpdateSucceeded(resized);
  const int64_t request = RequestOf(first_);
  manager().CreateFailed(second.key);
  EXPECT_EQ(RequestOf(first_), request);
}

// The runtime's answer was lost, and a list shows that the container was created.
TEST_F(FailedCreationTest, ACreationThatTookEffectAllTheSameCounts) {
  const CreateRequest request = Second(4000);
  const Admission second = *manager().AdmitCreate(CreateRequest(request));
  manager().CreateFailed(second.key);
  ExpectAsBefore();
  const ContainerId id = node_.Hold(request, second);
  ASSERT_TRUE(node_.ListAgain());
  runtime().AnswerAll();
  EXPECT_EQ(node_.Exclusive(first_), "");
  EXPECT_EQ(node_.Exclusive(id), "");
  EXPECT_EQ(RequestOf(first_) + RequestOf(id), 4000);
}

// A stage has changed the request, so that what was asked for is noted.
class UnansweredCreationTest : public FailedCreationTest {
 protected:
  UnansweredCreationTest() : FailedCreationTest(/*keeps=*/true) {
    unclear_ = *manager().AdmitCreate(Second(1000));
    manager().set_later().CreationSent(unclear_.key, {});
    manager().CreateUnclear(unclear_.key);
    ExpectAsBefore();
    node_.FlushState();
  }
  void ExpectBothCount(const ContainerId& second) {
    EXPECT_EQ(RequestOf(first_), 3000);
    EXPECT_EQ(node_.Exclusive(first_), "");
    EXPECT_EQ(RequestOf(second), 1000);
    EXPECT_EQ(node_.Exclusive(second).size(), 1U);
  }

  Admission unclear_;
};

TEST_F(UnansweredCreationTest, TheContainerThatIsFoundCounts) {
  ASSERT_TRUE(node_.AnswerNextList());
  const ContainerId second = node_.Hold(Second(1000), unclear_);
  ASSERT_TRUE(node_.ListAgain());
  runtime().AnswerAll();
  ExpectBothCount(second);
  node_.FlushState();
  node_.Restart();
  ExpectBothCount(second);
}

TEST_F(UnansweredCreationTest, TheContainerThatTheNextDaemonFindsCounts) {
  const ContainerId second = node_.Hold(Second(1000), unclear_);
  node_.Restart();
  ExpectBothCount(second);
}

TEST_F(PodLimitsTest, WhatAListLeavesForItsPodsOthersIsSaved) {
  node_.KeepState(files_);
  AddPod("batch", kBurstable, 4000);
  const ContainerId shares = Run("shares", Limited(4000, 4000));
  ASSERT_TRUE(node_.ListAgain());
  CreateRequest own = TestNode::Request(pod_, "own", 0);
  own.resources = Limited(1000, 1000);
  const Admission unclear = *manager().AdmitCreate(CreateRequest(own));
  manager().CreateUnclear(unclear.key);
  ASSERT_TRUE(node_.AnswerNextList());
  node_.FlushState();
  node_.Hold(own, unclear);
  ASSERT_TRUE(node_.ListAgain());
  ASSERT_EQ(RequestOf(shares), 3000);
  node_.FlushState();
  node_.Restart();
  EXPECT_EQ(RequestOf(shares), 3000);
}

}  // namespace
}  // namespace resmgr
