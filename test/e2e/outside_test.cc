// SPDX-License-Identifier: Apache-2.0
// Clients other than kubelets: calls that do not pass the relay, abbreviated ids, requests without
// fields that kubelets always set.
#include <chrono>
#include <fstream>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node_fixture.h"

namespace resmgr::test {
namespace {

using std::chrono::seconds;

// The id as a person would type it.
std::string Short(const std::string& id) {
  return id.substr(0, 10);
}

class OutsideTest : public NodeTest {
 protected:
  void SetUp() override { Open({}); }

  // /proc/self/oom_score_adj in a container that such a client makes, and its CPUs.
  struct Seen {
    std::string oom_score_adj;
    std::string cpus;
  };
  Seen Plain(CriClient& client, const std::string& name, bool linux_section) {
    const Workload workload = BestEffort(name);
    const cri::PodSandboxConfig pod = node().PodConfig(workload);
    cri::ContainerConfig container = Node::ContainerConfig(workload);
    container.clear_linux();
    if (linux_section) container.mutable_linux();
    const auto pod_id = client.RunPod(pod);
    EXPECT_TRUE(pod_id.ok()) << Describe(pod_id.status());
    const auto id = client.CreateContainer(pod_id.value_or(""), pod, container);
    EXPECT_TRUE(id.ok()) << Describe(id.status());
    const Status started = client.StartContainer(id.value_or(""));
    EXPECT_TRUE(started.ok()) << Describe(started);
    const auto score =
        node().runtime().Exec(id.value_or(""), {"/bin/cat", "/proc/1/oom_score_adj"});
    EXPECT_TRUE(score.ok()) << Describe(score.status());
    Seen seen{.oom_score_adj = score.ok() ? score->stdout() : "",
              .cpus = containerd().CgroupCpus(id.value_or(""))};
    EXPECT_TRUE(client.StopPod(pod_id.value_or("")).ok());
    EXPECT_TRUE(client.RemovePod(pod_id.value_or("")).ok());
    return seen;
  }
};

TEST_F(OutsideTest, ACallByTheBeginningOfAnIdKeepsToThePlacements) {
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const RunningPod shared = Run(BestEffort("shared"));
  const CpuSet own = CpuSetOf(exclusive);
  cri::LinuxContainerResources all;
  all.set_cpuset_cpus(All().ToString());
  const Status updated = node().client().UpdateContainer(Short(shared.container_id), all);
  ASSERT_TRUE(updated.ok()) << Describe(updated);
  EXPECT_EQ(CpuSetOf(shared), All() - own);

  ASSERT_TRUE(node().client().StopContainer(Short(exclusive.container_id)).ok());
  ExpectOn(shared, All());
  ASSERT_TRUE(node().client().RemoveContainer(Short(exclusive.container_id)).ok());

  // Another container in the same pod.
  const Workload next = Guaranteed("next", 1);
  const auto id = Ok(node().client().CreateContainer(Short(exclusive.pod_id), exclusive.config,
                                                     Node::ContainerConfig(next)));
  ASSERT_TRUE(node().client().StartContainer(Short(id)).ok());
  EXPECT_FALSE(
      CpuSetOf(shared).Intersects(CpuSet::Parse(containerd().CgroupCpus(id)).value_or(All())));
  ASSERT_TRUE(node().client().StopPod(Short(exclusive.pod_id)).ok());
  ExpectOn(shared, All());
  ASSERT_TRUE(node().client().RemovePod(Short(exclusive.pod_id)).ok());
}

TEST_F(OutsideTest, WhatIsRemovedAtTheRuntimeMakesRoom) {
  const int most = Unreserved().size();
  const RunningPod first = Run(Guaranteed("first", most));
  ASSERT_TRUE(node().runtime().StopPod(first.pod_id).ok());
  ASSERT_TRUE(node().runtime().RemovePod(first.pod_id).ok());
  const RunningPod second = Run(Guaranteed("second", most));
  EXPECT_EQ(CpuSetOf(second).size(), most);
}

// Containers for which the runtime has a score that no request gives.
class OomScoreTest : public OutsideTest {
 protected:
  void SetUp() override {
    std::string before;
    std::ifstream("/proc/self/oom_score_adj") >> before;
    std::ofstream("/proc/self/oom_score_adj") << "300";
    Open({});
    std::ofstream("/proc/self/oom_score_adj") << before;
  }
};

TEST_F(OomScoreTest, AContainerWithoutResourcesIsAsDirectlyButForItsCpus) {
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  for (const bool linux_section : {false, true}) {
    const Seen direct = Plain(node().runtime(), "direct", linux_section);
    const Seen relayed = Plain(node().client(), "relayed", linux_section);
    EXPECT_EQ(direct.oom_score_adj, "300\n") << "inherited from the runtime";
    EXPECT_EQ(relayed.oom_score_adj, direct.oom_score_adj);
    EXPECT_EQ(relayed.cpus, (All() - CpuSetOf(exclusive)).ToString());
  }
}

// Container events of a real runtime: changes by other clients are learned at once, without any
// call that passes the relay.

using Clock = std::chrono::steady_clock;

// The relay lists by itself some seconds after it has connected, and then each minute: within this
// time at most two of the steps below could be learned so.
constexpr seconds kFewLists{50};
constexpr seconds kSoon{15};

class EventsTest : public NodeTest {
 protected:
  void SetUp() override {
    Open({});
    if (!HasFatalFailure()) NeedsNewerThan16("container events");
  }
  static bool Soon(const std::function<bool()>& condition) {
    return WaitUntil("it is learned", kSoon, condition).ok();
  }
};

TEST_F(EventsTest, ExitsRemovalsAndCreationsOfOthersAreLearnedWithoutALookAtTheRuntime) {
  const auto start = Clock::now();
  const RunningPod shared = Run(BestEffort("shared"));
  CriClient& runtime = node().runtime();
  for (const std::string name : {"exits-1", "exits-2"}) {
    const RunningPod exclusive = Run(Guaranteed(name, 1));
    ASSERT_NE(CpuSetOf(shared), All());
    ASSERT_TRUE(runtime.StopContainer(exclusive.container_id).ok());
    EXPECT_TRUE(Soon([&] { return CpusOf(shared) == All().ToString(); })) << name;
  }
  const RunningPod removed = Run(Guaranteed("removed", 1));
  ASSERT_TRUE(runtime.StopPod(removed.pod_id).ok());
  ASSERT_TRUE(runtime.RemovePod(removed.pod_id).ok());
  EXPECT_TRUE(Soon([&] { return CpusOf(shared) == All().ToString(); })) << "removed";

  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const Workload stranger = BestEffort("stranger");
  const cri::PodSandboxConfig config = node().PodConfig(stranger);
  const auto pod = Ok(runtime.RunPod(config));
  const auto container = Ok(runtime.CreateContainer(pod, config, Node::ContainerConfig(stranger)));
  ASSERT_TRUE(runtime.StartContainer(container).ok());
  EXPECT_TRUE(Soon([&] { return containerd().CgroupCpus(container) == CpusOf(shared); }))
      << "the stranger is on " << containerd().CgroupCpus(container);
  EXPECT_LT(Clock::now() - start, kFewLists);
  ASSERT_TRUE(runtime.StopPod(pod).ok());
  ASSERT_TRUE(runtime.RemovePod(pod).ok());
}

}  // namespace
}  // namespace resmgr::test
