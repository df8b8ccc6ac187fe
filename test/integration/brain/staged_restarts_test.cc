// SPDX-License-Identifier: Apache-2.0
// Changes by stages and by the runtime's own plugins never change what a container is entitled to.
// Here are single cases; random ones are in random_stages_test.cc.
#include <string>

#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "test/integration/brain/default_policy.h"
#include "test/integration/brain/staged_node.h"
#include "test/support/machines/machines.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

constexpr int64_t kAppMemory = int64_t{1} << 30;

LinuxResources Guaranteed(int64_t milli_cpu) {
  LinuxResources resources = TestNode::Resources(milli_cpu);
  resources.memory_limit = kAppMemory;
  return resources;
}

Pod PodIn(const std::string& cgroup_parent) {
  Pod pod;
  pod.name = "app";
  pod.namespace_name = "default";
  pod.cgroup_parent = cgroup_parent;
  return pod;
}

StagedNode::Change Shares(Operation operation, int64_t shares) {
  return [=](const Request& request, Adjustment& adjustment) {
    if (request.operation() == operation) adjustment.values.cpu_shares = shares;
  };
}

class StagedRestartsTest : public testing::Test {
 protected:
  void KillAndExpect(const ContainerId& id, std::string_view exclusive) {
    EXPECT_EQ(node_.Known(id).placement.exclusive.ToString(), exclusive) << "before the restart";
    node_.Kill();
    EXPECT_EQ(node_.Known(id).placement.exclusive.ToString(), exclusive);
    node_.node().Reconnect();
    node_.Settle();
    EXPECT_EQ(node_.Known(id).placement.exclusive.ToString(), exclusive) << "after a reconnect";
  }
  ContainerId Run(const Pod& pod, const LinuxResources& resources) {
    const StatusOr<ContainerId> id = node_.Create(node_.RunPod(pod), "app", resources);
    EXPECT_TRUE(id.ok()) << id.status();
    EXPECT_TRUE(node_.Start(*id).ok());
    return *id;
  }

  const Pod guaranteed_ = PodIn("/kubepods/pod1");
  StagedNode node_{S1Ht(), [](const Machine& machine) {
                     return MakeDefaultPolicy(StaticPolicyFactory(), machine);
                   }};
};

TEST_F(StagedRestartsTest, SharesThatAStageSetTakeNoCpus) {
  node_.second = Shares(Operation::kCreateContainer, 512);
  const ContainerId id = Run(guaranteed_, Guaranteed(1000));
  ASSERT_EQ(node_.runtime().Find(id)->resources.cpu_shares, 512);
  KillAndExpect(id, "4");
  EXPECT_EQ(node_.Known(id).requested.cpu_shares, 1024);
  EXPECT_EQ(node_.runtime().Find(id)->resources.cpu_shares, 512) << "nor are they set back";
}

TEST_F(StagedRestartsTest, WhatAStageMakesOfAnUpdateIsNotAskedFor) {
  const ContainerId id = Run(guaranteed_, Guaranteed(1000));
  node_.first = Shares(Operation::kUpdateContainerResources, 700);
  ASSERT_TRUE(node_.Update(id, Guaranteed(2000)).ok());
  KillAndExpect(id, "1,4");
  EXPECT_EQ(node_.runtime().Find(id)->resources.cpu_shares, 700);
  node_.first = nullptr;
  ASSERT_TRUE(node_.Update(id, Guaranteed(1000)).ok());
  EXPECT_EQ(node_.runtime().Find(id)->resources.cpu_shares, 1024);
  EXPECT_EQ(node_.Known(id).set_later.cpu_shares, std::nullopt);
}

TEST_F(StagedRestartsTest, TheRuntimesOwnPluginsTakeNoCpus) {
  node_.own_plugins = [](RuntimeContainer& container) { container.resources.cpu_shares = 512; };
  // The first container for which a report shows that there are such plugins.
  const ContainerId first = Run(guaranteed_, Guaranteed(1000));
  node_.Report();
  node_.Stop(first);
  const ContainerId id = Run(guaranteed_, Guaranteed(1000));
  KillAndExpect(id, "4");
  node_.Report();
  KillAndExpect(id, "4");
  ASSERT_TRUE(node_.Update(id, Guaranteed(2000)).ok());
  KillAndExpect(id, "1,4");
}

TEST_F(StagedRestartsTest, AnUpdateByAnotherClientCountsOnceTheReportIsKnown) {
  node_.second = Shares(Operation::kCreateContainer, 512);
  const ContainerId id = Run(guaranteed_, Guaranteed(1000));
  node_.Report();
  node_.runtime().Find(id)->resources.cpu_shares = 2048;
  node_.Kill();
  EXPECT_EQ(node_.Known(id).requirements.cpu_request.value, 2000);
  EXPECT_EQ(node_.Known(id).requested.cpu_shares, 2048);
}

TEST_F(StagedRestartsTest, APluginsUpdateOfAnotherContainerTakesNoCpus) {
  const ContainerId id = Run(guaranteed_, Guaranteed(1000));
  node_.Report();
  node_.SetByStage(id, {.cpu_shares = 512, .cpu_quota = 50'000});
  KillAndExpect(id, "4");
  EXPECT_EQ(node_.runtime().Find(id)->resources.cpu_quota, 50'000);
}

TEST_F(StagedRestartsTest, AKillInTheMiddleOfAnUpdateKnowsWhatWasAskedFor) {
  node_.second = [](const Request& request, Adjustment& adjustment) {
    if (request.operation() != Operation::kRunPodSandbox) adjustment.values.cpu_shares = 512;
    if (request.operation() == Operation::kUpdateContainerResources)
      adjustment.values.cpu_shares = 513;
  };
  for (const auto cut : {StagedNode::Cut::kBeforeTheRuntime, StagedNode::Cut::kAfterTheRuntime}) {
    const bool arrived = cut == StagedNode::Cut::kAfterTheRuntime;
    const ContainerId id = Run(guaranteed_, Guaranteed(1000));
    node_.cut = cut;
    EXPECT_FALSE(node_.Update(id, Guaranteed(2000)).ok());
    EXPECT_EQ(node_.Known(id).requirements.cpu_request.value, arrived ? 2000 : 1000);
    EXPECT_EQ(node_.Known(id).requested.cpu_shares, arrived ? 2048 : 1024);
    EXPECT_EQ(node_.Known(id).placement.exclusive.size(), arrived ? 2 : 1);
    node_.Stop(id);
  }
}

// The container's id is in no answer, so its notes are found by pod, name and attempt.
TEST_F(StagedRestartsTest, AKillInTheMiddleOfACreationKnowsWhatWasAskedFor) {
  node_.second = Shares(Operation::kCreateContainer, 3072);
  node_.cut = StagedNode::Cut::kAfterTheRuntime;
  EXPECT_FALSE(node_.Create(node_.RunPod(guaranteed_), "app", Guaranteed(1000)).ok());
  ASSERT_EQ(node_.runtime().held.containers.size(), 1U);
  const ContainerId id = node_.runtime().held.containers.front().id;
  ASSERT_EQ(node_.runtime().Find(id)->resources.cpu_shares, 3072);
  EXPECT_EQ(node_.Known(id).requested.cpu_shares, 1024);
  EXPECT_EQ(node_.Known(id).requirements.cpu_request.value, 1000);
  KillAndExpect(id, "4");
}

TEST_F(StagedRestartsTest, ACgroupParentThatAStageSetIsNotThePodsClass) {
  node_.first = [](const Request& request, Adjustment& adjustment) {
    if (request.operation() != Operation::kRunPodSandbox) return;
    adjustment.Wide().cgroup_parent = "/kubepods/burstable/pod1";
    adjustment.Wide().annotations.Set("prefer-shared-cpus.cri-resource-manager.intel.com", "true");
    adjustment.Wide().annotations.Remove("prefer-isolated-cpus.resource-policy.nri.io");
    adjustment.Wide().labels.Set("team", "of a hook");
  };
  Pod asked = guaranteed_;
  asked.annotations.Set("prefer-isolated-cpus.resource-policy.nri.io", "false");
  asked.labels.Set("team", "blue");
  const ContainerId id = Run(asked, Guaranteed(1000));
  KillAndExpect(id, "4");
  const Pod& pod = node_.PodOf(id);
  EXPECT_EQ(pod.qos, QosClass::kGuaranteed);
  EXPECT_EQ(pod.cgroup_parent, asked.cgroup_parent);
  EXPECT_EQ(pod.annotations, asked.annotations);
  EXPECT_EQ(pod.labels, asked.labels);
}

TEST_F(StagedRestartsTest, LabelsThatAStageSetAreNotTheContainers) {
  node_.second = [](const Request& request, Adjustment& adjustment) {
    if (request.operation() == Operation::kCreateContainer)
      adjustment.Wide().labels.Set("role", "of a plugin");
  };
  const StringMap labels = {{"role", "web"}, {"tier", "front"}};
  const ContainerId id =
      Must(node_.Create(node_.RunPod(guaranteed_), "app", Guaranteed(1000), labels));
  node_.Kill();
  EXPECT_EQ(node_.Known(id).labels, labels);
}

TEST_F(StagedRestartsTest, ARuntimeThatDoesNotTellThePodsClassTakesNoCpus) {
  const ContainerId id = Run(guaranteed_, Guaranteed(1000));
  Pod& held = node_.runtime().held.pods.back();
  held.cgroup_parent.clear();
  held.qos = QosClass::kBestEffort;
  held.qos_derived = true;
  KillAndExpect(id, "4");
  EXPECT_EQ(node_.PodOf(id).qos, QosClass::kGuaranteed);
}

TEST_F(StagedRestartsTest, WithoutACgroupParentTheClassIsWhatIsAskedFor) {
  const ContainerId id = Run(PodIn(""), Guaranteed(2000));
  EXPECT_EQ(node_.PodOf(id).qos, QosClass::kGuaranteed);
  KillAndExpect(id, "1,5");
  LinuxResources some;
  some.cpu_shares = 2048;
  EXPECT_EQ(node_.PodOf(Run(PodIn("/machine.slice"), some)).qos, QosClass::kBurstable);
  EXPECT_EQ(node_.PodOf(Run(PodIn(""), {})).qos, QosClass::kBestEffort);
}

// As in Kubernetes, a pod is Guaranteed only by all of its containers.
TEST_F(StagedRestartsTest, ADerivedClassFallsWithAContainerThatAsksForLess) {
  const PodSandboxId pod = node_.RunPod(PodIn(""));
  const ContainerId first = *node_.Create(pod, "first", Guaranteed(2000));
  EXPECT_EQ(node_.Known(first).placement.exclusive.size(), 2);
  LinuxResources some;
  some.cpu_shares = 1024;
  const ContainerId second = Must(node_.Create(pod, "second", some));
  EXPECT_EQ(node_.PodOf(first).qos, QosClass::kBurstable);
  KillAndExpect(first, "");
  KillAndExpect(second, "");
  EXPECT_EQ(node_.PodOf(first).qos, QosClass::kBurstable);
}

TEST_F(StagedRestartsTest, ADerivedClassIsBackWhenTheCreationIsRefused) {
  const PodSandboxId pod = node_.RunPod(PodIn(""));
  const ContainerId first = *node_.Create(pod, "first", Guaranteed(2000));
  LinuxResources some;
  some.cpu_shares = 1024;
  const auto admission = node_.node().manager().AdmitCreate([&] {
    CreateRequest request = TestNode::Request(pod, "second", 1000);
    request.resources = some;
    return request;
  }());
  ASSERT_TRUE(admission.ok());
  EXPECT_EQ(node_.Known(first).placement.exclusive.size(), 0);
  node_.node().manager().CreateFailed(admission->key);
  EXPECT_EQ(node_.PodOf(first).qos, QosClass::kGuaranteed);
  EXPECT_EQ(node_.Known(first).placement.exclusive.ToString(), "1,5");
}

// The runtime's answer was lost, and a list shows that the container was created.
TEST_F(StagedRestartsTest, ADerivedClassFallsWithAContainerWhoseCreationHadNoReply) {
  const PodSandboxId pod = node_.RunPod(PodIn(""));
  const ContainerId first = *node_.Create(pod, "first", Guaranteed(2000));
  CreateRequest request = TestNode::Request(pod, "second", 1000);
  request.resources = {};
  request.resources.cpu_shares = 1024;
  ResourceManager& manager = node_.node().manager();
  const auto admission = Must(manager.AdmitCreate(CreateRequest(request)));
  manager.set_later().CreationSent(admission.key, {});
  manager.CreateUnclear(admission.key);
  ASSERT_EQ(node_.PodOf(first).qos, QosClass::kGuaranteed);
  node_.node().Hold(request, admission);
  ASSERT_TRUE(node_.node().AnswerNextList());
  EXPECT_EQ(node_.PodOf(first).qos, QosClass::kBurstable);
  EXPECT_EQ(node_.Known(first).placement.exclusive.size(), 0);
  KillAndExpect(first, "");
  EXPECT_EQ(node_.PodOf(first).qos, QosClass::kBurstable);
}

class PlusRestartsTest : public testing::Test {
 protected:
  StagedNode node_{S1Ht(), [](const Machine& machine) {
                     return MakeDefaultPolicy(StaticPlusPolicyFactory(), machine);
                   }};
};

TEST_F(PlusRestartsTest, SharesThatAStageSetGrantNoCpus) {
  node_.first = Shares(Operation::kCreateContainer, 2048);
  LinuxResources nothing;
  nothing.cpu_shares = kMinShares;
  const auto id =
      Must(node_.Create(node_.RunPod(PodIn("/kubepods/besteffort/pod2")), "app", nothing));
  ASSERT_TRUE(node_.Start(id).ok());
  for (int restarts = 0; restarts < 2; ++restarts) {
    EXPECT_TRUE(node_.Known(id).placement.exclusive.empty());
    EXPECT_EQ(node_.Known(id).requirements.cpu_request.value, 0);
    node_.Kill();
  }
}

}  // namespace
}  // namespace resmgr::test
