// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_store.h"

#include <string>

#include <gtest/gtest.h>

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

TEST(HookStoreTest, AContainersRequestHasWhatIsItsPods) {
  HookStore store;
  const HookPodPtr pod = store.Learn(SandboxOf("p"));
  const HookContainerPtr container = store.Learn(pod, ContainerOf("c", "p"));
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

TEST(HookStoreTest, AContainerHasTheValuesOfTheLastUpdate) {
  HookStore store;
  const HookContainerPtr container =
      store.Learn(store.Learn(SandboxOf("p")), ContainerOf("c", "p"));
  store.SetValues(ContainerId("c"), {.cpus = CpuSet{2, 3}, .cpu_quota = -1});
  store.SetValues(ContainerId("c"), {.cpus = CpuSet{3}, .mems = NodeSet{0}});
  store.SetValues(ContainerId("unknown"), {.cpus = CpuSet{1}});
  const api::LinuxContainerResources& has = container->request.container_resources();
  EXPECT_EQ(has.cpuset_cpus(), "3");
  EXPECT_EQ(has.cpuset_mems(), "0");
  EXPECT_EQ(has.cpu_quota(), -1);
  EXPECT_EQ(has.cpu_shares(), 512);
}

TEST(HookStoreTest, AnUpdateWhileTheRuntimeListsIsNewerThanTheList) {
  HookStore store;
  store.BeginList();
  store.SetValues(ContainerId("c"), {.cpus = CpuSet{2, 3}});
  store.SetValues(ContainerId("c"), {.cpu_shares = 99});
  store.TakeList({.sandboxes = {SandboxOf("p")}, .containers = {ContainerOf("c", "p")}});
  const api::LinuxContainerResources& has = store.FindContainer("c")->request.container_resources();
  EXPECT_EQ(has.cpuset_cpus(), "2-3");
  EXPECT_EQ(has.cpu_shares(), 99);
}

TEST(HookStoreTest, WhatWasListedIsToldAsItWasRequested) {
  HookStore store;
  SandboxFacts sandbox = SandboxOf("p");
  sandbox.attempt = 2;
  ContainerFacts facts = ContainerOf("c", "p");
  facts.requested_environment = facts.details.environment;
  facts.details.environment.Add("PATH", "/of/the/image");
  api::ContainerResourceHookRequest request;
  ASSERT_TRUE(request.ParseFromString(EncodedRequestOf(*store.Learn(store.Learn(sandbox), facts))));
  EXPECT_EQ(request.pod_meta().attempt(), 2u);
  EXPECT_EQ(request.container_envs_size(), 1);
  EXPECT_EQ(request.container_envs().at("A"), "1");
}

TEST(HookStoreTest, FindsByAnUnambiguousBeginningOnly) {
  HookStore store;
  const HookPodPtr pod = store.Learn(SandboxOf("abc1"));
  store.Learn(SandboxOf("abc2"));
  EXPECT_EQ(store.FindPod("abc1"), pod);
  EXPECT_EQ(store.FindPod("abc"), nullptr);
  EXPECT_EQ(store.FindPod(""), nullptr);
  EXPECT_EQ(store.FindPod("x"), nullptr);
}

TEST(HookStoreTest, WithThePodGoItsContainers) {
  HookStore store;
  const HookPodPtr pod = store.Learn(SandboxOf("p"));
  const HookPodPtr other = store.Learn(SandboxOf("q"));
  store.Learn(pod, ContainerOf("c", "p"));
  store.Learn(other, ContainerOf("d", "q"));
  store.Remove(*pod);
  EXPECT_EQ(store.FindContainer("c"), nullptr);
  EXPECT_NE(store.FindContainer("d"), nullptr);
  EXPECT_EQ(store.size(), 2u);
}

TEST(HookStoreTest, AListDropsWhatIsGoneAndKeepsWhatIsKnown) {
  HookStore store;
  const HookPodPtr kept = store.Learn(SandboxOf("kept"));
  const HookPodPtr gone = store.Learn(SandboxOf("gone"));
  store.Learn(kept, ContainerOf("old", "kept"));
  store.Learn(gone, ContainerOf("lost", "gone"));
  kept->request.set_cgroup_parent("/as-the-request-said");
  store.BeginList();
  store.TakeList({.sandboxes = {SandboxOf("kept"), SandboxOf("new")},
                  .containers = {ContainerOf("fresh", "new")}});
  EXPECT_EQ(store.FindPod("kept")->request.cgroup_parent(), "/as-the-request-said");
  EXPECT_EQ(store.FindPod("gone"), nullptr);
  EXPECT_EQ(store.FindContainer("lost"), nullptr);
  EXPECT_EQ(store.FindContainer("old"), nullptr);
  EXPECT_NE(store.FindContainer("fresh"), nullptr);
}

TEST(HookStoreTest, WhatHappensDuringAListIsNotUndoneByIt) {
  HookStore store;
  store.Learn(SandboxOf("removed"));
  store.BeginList();
  store.Learn(SandboxOf("created"));
  store.Remove(*store.FindPod("removed"));
  store.TakeList({.sandboxes = {SandboxOf("removed")}, .containers = {}});
  EXPECT_NE(store.FindPod("created"), nullptr);
  EXPECT_EQ(store.FindPod("removed"), nullptr);
  // The next list ignores removals during the former one.
  store.BeginList();
  store.TakeList({.sandboxes = {SandboxOf("removed")}, .containers = {}});
  EXPECT_NE(store.FindPod("removed"), nullptr);
}

TEST(HookStoreTest, AContainerOfAnUnknownPodIsLeftOut) {
  HookStore store;
  store.BeginList();
  store.TakeList({.sandboxes = {}, .containers = {ContainerOf("c", "nowhere")}});
  EXPECT_EQ(store.size(), 0u);
}

TEST(HookStoreTest, HoldsOnlyWhatExists) {
  HookStore store;
  const HookPodPtr pod = store.Learn(SandboxOf("p"));
  for (int i = 0; i < 10'000; ++i) {
    const HookContainerPtr container = store.Learn(pod, ContainerOf("c" + std::to_string(i), "p"));
    store.Remove(*container);
  }
  EXPECT_EQ(store.size(), 1u);
}

}  // namespace
}  // namespace resmgr::hooks
