// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_view.h"

#include <string>

#include <gtest/gtest.h>

#include "pkg/hooks/testing/hook_node.h"

namespace resmgr::hooks {
namespace {

SandboxFacts SandboxOf(const std::string& id) {
  SandboxFacts facts;
  facts.pod.id = PodSandboxId(id);
  facts.pod.name = "pod-" + id;
  facts.pod.cgroup_parent = "/kubepods/" + id;
  facts.pod.labels = {{"app", id}};
  facts.pod.resources.cpu_shares = 100;
  return facts;
}

ContainerFacts ContainerOf(const std::string& id, const std::string& pod) {
  ContainerFacts facts;
  facts.container.id = ContainerId(id);
  facts.container.pod_id = PodSandboxId(pod);
  facts.container.name = "main";
  facts.container.attempt = 3;
  facts.container.resources.cpu_shares = 512;
  facts.details.environment = {{.name = "A", .value = "1"}};
  return facts;
}

class HookViewTest : public testing::Test {
 protected:
  HookViewTest() {
    view_.Attach();
    clock_.Advance(std::chrono::milliseconds(0));
  }

  // The runtime's answer to the list under way.
  void List(RuntimeAccess::Everything everything) {
    HeldRuntime::Answer(runtime_.lists, std::move(everything));
  }
  HookContainerPtr Listed(const SandboxFacts& sandbox, const ContainerFacts& facts) {
    List({.sandboxes = {sandbox}, .containers = {facts}});
    return view_.FindContainer(facts.container.id.value());
  }

  ManualClock clock_;
  HeldRuntime runtime_;
  Inventory inventory_{clock_, runtime_};
  HookView view_{inventory_};
};

TEST_F(HookViewTest, AContainersRequestHasWhatIsItsPods) {
  const HookContainerPtr container = Listed(SandboxOf("p"), ContainerOf("c", "p"));
  api::ContainerResourceHookRequest request;
  ASSERT_TRUE(request.ParseFromString(EncodedRequestOf(*container)));
  EXPECT_EQ(request.pod_meta().name(), "pod-p");
  EXPECT_EQ(request.pod_labels().at("app"), "p");
  EXPECT_EQ(request.pod_cgroup_parent(), "/kubepods/p");
  EXPECT_EQ(request.pod_resources().cpu_shares(), 100);
  EXPECT_EQ(request.container_meta().id(), "c");
  EXPECT_EQ(request.container_meta().attempt(), 3u);
  EXPECT_EQ(request.container_resources().cpu_shares(), 512);
  EXPECT_EQ(request.container_envs().at("A"), "1");
  // Only the pod's record has them.
  EXPECT_TRUE(container->request.pod_labels().empty());
}

TEST_F(HookViewTest, AContainerHasTheValuesOfTheLastUpdate) {
  const HookContainerPtr container = Listed(SandboxOf("p"), ContainerOf("c", "p"));
  inventory_.SetValues(ContainerId("c"), {.cpus = CpuSet{2, 3}, .cpu_quota = -1});
  inventory_.SetValues(ContainerId("c"), {.cpus = CpuSet{3}, .mems = NodeSet{0}});
  inventory_.SetValues(ContainerId("unknown"), {.cpus = CpuSet{1}});
  const api::LinuxContainerResources& has = container->request.container_resources();
  EXPECT_EQ(has.cpuset_cpus(), "3");
  EXPECT_EQ(has.cpuset_mems(), "0");
  EXPECT_EQ(has.cpu_quota(), -1);
  EXPECT_EQ(has.cpu_shares(), 512);
}

TEST_F(HookViewTest, AnUpdateWhileTheRuntimeListsIsNewerThanTheList) {
  inventory_.SetValues(ContainerId("c"), {.cpus = CpuSet{2, 3}});
  inventory_.SetValues(ContainerId("c"), {.cpu_shares = 99});
  const HookContainerPtr container = Listed(SandboxOf("p"), ContainerOf("c", "p"));
  const api::LinuxContainerResources& has = container->request.container_resources();
  EXPECT_EQ(has.cpuset_cpus(), "2-3");
  EXPECT_EQ(has.cpu_shares(), 99);
}

TEST_F(HookViewTest, WhatWasListedIsToldAsItWasRequested) {
  SandboxFacts sandbox = SandboxOf("p");
  sandbox.attempt = 2;
  ContainerFacts facts = ContainerOf("c", "p");
  facts.requested_environment = facts.details.environment;
  facts.details.environment.Add("PATH", "/of/the/image");
  api::ContainerResourceHookRequest request;
  ASSERT_TRUE(request.ParseFromString(EncodedRequestOf(*Listed(sandbox, facts))));
  EXPECT_EQ(request.pod_meta().attempt(), 2u);
  EXPECT_EQ(request.container_envs_size(), 1);
  EXPECT_EQ(request.container_envs().at("A"), "1");
}

TEST_F(HookViewTest, AListKeepsWhatIsKnown) {
  List({.sandboxes = {SandboxOf("kept")}, .containers = {}});
  view_.FindPod("kept")->request.set_cgroup_parent("/as-the-request-said");
  inventory_.Refresh();
  List({.sandboxes = {SandboxOf("kept")}, .containers = {ContainerOf("fresh", "kept")}});
  EXPECT_EQ(view_.FindPod("kept")->request.cgroup_parent(), "/as-the-request-said");
  EXPECT_NE(view_.FindContainer("fresh"), nullptr);
}

}  // namespace
}  // namespace resmgr::hooks
