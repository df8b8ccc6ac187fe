// SPDX-License-Identifier: Apache-2.0
// Pods with resources of their own (KEP-2837), and annotations that say something else than
// requests.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/resmgr/testing/manager_fixture.h"

namespace resmgr {
namespace {

using test::CpuList;
using test::TestNode;
using testing::HasSubstr;

using enum QosClass;

LinuxResources Limited(int64_t milli_cpu, int64_t limit) {
  LinuxResources resources = TestNode::Resources(milli_cpu);
  resources.cpu_period = kDefaultCpuPeriod;
  resources.cpu_quota = QuotaFromMilliCpu(MilliCpu{limit});
  return resources;
}

class PodBoundsTest : public test::ManagerFixture {
 protected:
  void AddPod(std::string_view name, QosClass qos, int64_t milli_cpu) {
    pod_ = node_.AddPod(name, qos);
    manager().PodResourcesChanged(pod_, {}, Limited(milli_cpu, milli_cpu));
  }
  ContainerId Run(std::string_view name, const LinuxResources& resources, uint32_t attempt = 0) {
    CreateRequest request = TestNode::Request(pod_, name, 0, attempt);
    request.resources = resources;
    const ContainerId id = *node_.Create(request);
    runtime().AnswerAll();
    node_.Start(id);
    return id;
  }
  int64_t RequestOf(const ContainerId& id) {
    return node_.Known(id)->requirements.cpu_request.value;
  }

  PodSandboxId pod_;
};

TEST_F(PodBoundsTest, ContainersThatHaveOnlyTheirPodsCpusShare) {
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

TEST_F(PodBoundsTest, WhatHasItsOwnCpusKeepsThem) {
  AddPod("batch", kGuaranteed, 4000);
  const ContainerId shares = Run("shares", Limited(4000, 4000));
  const ContainerId own = Run("own", Limited(1000, 1000));
  EXPECT_EQ(node_.Exclusive(shares), "");
  EXPECT_EQ(RequestOf(shares), 3000);
  EXPECT_EQ(node_.Exclusive(own), "1");
  const ContainerId limited_by_pod = Run("limited-by-pod", Limited(1000, 4000));
  EXPECT_EQ(node_.Exclusive(limited_by_pod), "");
}

TEST_F(PodBoundsTest, RoomIsMadeBeforeANewOneIsPlaced) {
  AddPod("batch", kGuaranteed, 7000);
  const ContainerId shares = Run("shares", Limited(7000, 7000));
  EXPECT_EQ(node_.Exclusive(shares), "1-7");
  const ContainerId own = Run("own", Limited(6000, 6000));
  EXPECT_EQ(node_.Exclusive(own), "1-6");
  EXPECT_EQ(runtime().CpusOf(shares), "0,7");
}

TEST_F(PodBoundsTest, TheNextAttemptAndAnEndedContainerDoNotCount) {
  AddPod("plain", kGuaranteed, 4000);
  const ContainerId init = Run("init", Limited(4000, 4000));
  node_.Stop(init);
  const ContainerId main = Run("main", Limited(4000, 4000));
  EXPECT_EQ(node_.Exclusive(main), "1-4");
  const ContainerId again = Run("main", Limited(4000, 4000), 1);
  EXPECT_EQ(node_.Exclusive(again), "1-4");
}

TEST_F(PodBoundsTest, APodThatGrewIsKnownFromTheCreationToo) {
  AddPod("plain", kGuaranteed, 4000);
  const ContainerId a = Run("a", Limited(2000, 2000));
  CreateRequest request = TestNode::Request(pod_, "b", 0);
  request.resources = Limited(4000, 4000);
  request.pod_resources = Limited(6000, 6000);
  const ContainerId b = *node_.Create(request);
  EXPECT_EQ(node_.Exclusive(b), "3-6");
  EXPECT_EQ(node_.Exclusive(a), "1-2");
}

TEST_F(PodBoundsTest, AResizedPodGivesItsContainersMore) {
  AddPod("batch", kGuaranteed, 4000);
  const ContainerId a = Run("a", Limited(4000, 4000));
  const ContainerId b = Run("b", Limited(4000, 4000));
  const Admission grown = *manager().AdmitUpdate(b, Limited(6000, 6000));
  EXPECT_EQ(node_.Exclusive(b), "") << "what is its pod's stays its pod's";
  manager().UpdateSucceeded(grown);
  manager().PodResourcesChanged(pod_, {}, Limited(6000, 6000));
  EXPECT_EQ(RequestOf(a) + RequestOf(b), 6000);
}

TEST_F(PodBoundsTest, AdoptedContainersAreNotTakenForExclusiveByThePodsCpuset) {
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

TEST_F(PodBoundsTest, AResizeOutlivesTheContainerAndItsAnnotation) {
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

}  // namespace
}  // namespace resmgr
