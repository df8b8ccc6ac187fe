// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/view/host_view.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/host/view/image_cache.h"
#include "pkg/nri/testing/fake_access.h"
#include "pkg/runtime/inventory.h"
#include "pkg/sys/clock.h"

namespace resmgr::nri {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

api::PodSandbox PodNamed(const std::string& id) {
  api::PodSandbox pod;
  pod.set_id(id);
  pod.set_name(id);
  return pod;
}
api::Container Named(const std::string& name) {
  api::Container container;
  container.set_name(name);
  return container;
}

class HostViewTest : public testing::Test {
 protected:
  HostViewTest() { view_.Attach(); }

  ManualClock clock_;
  test::FakeAccess runtime_;
  Inventory inventory_{clock_, runtime_};
  HostView view_{inventory_,
                 {.pod_gone = [this](const HostPodPtr& pod) { view_.RemovePod(*pod); },
                  .gone = [this](const HostContainerPtr& gone) { view_.Remove(*gone); }}};
};

api::SynchronizeRequest Decoded(const SyncMessages& messages) {
  api::SynchronizeRequest all;
  EXPECT_EQ(messages.messages.size(), 1U);
  EXPECT_TRUE(all.ParseFromString(*messages.messages[0]));
  return all;
}

TEST(SeenMessageTest, IsMadeWhenSomebodyLooks) {
  const auto edits = std::make_shared<uint64_t>(0);
  SeenMessage<api::Container> message(edits);
  int made = 0;
  message.SetLater([&made] {
    ++made;
    return Named("planned");
  });
  message.EditLater([](api::Container& container) { container.add_args("1"); });
  message.EditLater([](api::Container& container) { container.add_args("2"); });
  EXPECT_EQ(made, 0);
  EXPECT_EQ(*edits, 3u) << "what others were given is old";
  EXPECT_EQ(message->name(), "planned");
  EXPECT_THAT(message->args(), testing::ElementsAre("1", "2"));
  message.EditLater([](api::Container& container) { container.add_args("3"); });
  message.Edit().set_id("id");
  EXPECT_THAT((*message).args(), testing::ElementsAre("1", "2", "3"));
  EXPECT_EQ(*edits, 5u);
  EXPECT_EQ(made, 1);
}

TEST(SeenMessageTest, ALaterOneTakesThePlaceOfChangesThatWait) {
  SeenMessage<api::Container> message(std::make_shared<uint64_t>(0));
  message.Edit().set_id("former");
  message.SetLater([] { return Named("first"); });
  message.EditLater([](api::Container& container) { container.add_args("1"); });
  message.SetLater([] { return Named("second"); });
  EXPECT_EQ(message->name(), "second");
  EXPECT_TRUE(message->args().empty());
  EXPECT_TRUE(message->id().empty());
}

TEST(SeenMessageTest, KeepsFewChangesOnly) {
  SeenMessage<api::Container> message(std::make_shared<uint64_t>(0));
  bool made = false;
  message.SetLater([&made] {
    made = true;
    return api::Container();
  });
  int changes = 0;
  for (; !made && changes < 100; ++changes)
    message.EditLater([](api::Container& container) { container.add_args("x"); });
  EXPECT_LT(changes, 100);
  EXPECT_EQ(message->args_size(), changes);
}

TEST(IdAliasesTest, AreTheSameEachTimeAndDifferForEachContainer) {
  const PodSandboxId pod("p1");
  EXPECT_EQ(AliasOf(pod, "a", 0), AliasOf(pod, "a", 0));
  const std::set<std::string> all = {AliasOf(pod, "a", 0), AliasOf(pod, "a", 1),
                                     AliasOf(pod, "b", 0), AliasOf(PodSandboxId("p2"), "a", 0)};
  EXPECT_EQ(all.size(), 4u);
  for (const std::string& alias : all) {
    EXPECT_EQ(alias.size(), 64u);
    EXPECT_EQ(alias.find_first_not_of("0123456789abcdef"), std::string::npos);
  }
}

TEST_F(HostViewTest, FindsContainersByIdItsBeginningAndAlias) {
  const HostPodPtr pod = view_.AddPod(PodNamed("pod"), true);
  const HostContainerPtr a = view_.Begin(pod, Named("a"), 0);
  const HostContainerPtr b = view_.Begin(pod, Named("b"), 0);
  EXPECT_TRUE(a->creating());
  EXPECT_EQ(view_.Find(a->alias), a);
  view_.SetId(a, ContainerId("c01"));
  view_.SetId(b, ContainerId("c02"));
  EXPECT_EQ(view_.Find("c01"), a);
  EXPECT_EQ(view_.Find("c02"), b);
  EXPECT_EQ(view_.Find("c0"), nullptr);  // the beginning of both
  EXPECT_EQ(view_.Find(""), nullptr);
  // The beginning of an alias finds nothing: clients do not know aliases.
  EXPECT_EQ(view_.Find(a->alias.substr(0, 12)), nullptr);
  EXPECT_EQ(view_.FindPod("po"), pod);
  // Plugins were told of the end, but the runtime still has it.
  view_.Remove(*a);
  EXPECT_EQ(view_.Find("c0"), nullptr);
  EXPECT_EQ(view_.Find("c01"), nullptr);
  inventory_.Remove(ContainerId("c01"));
  EXPECT_EQ(view_.Find("c0"), b);
  EXPECT_EQ(view_.Containers().size(), 1u);
}

TEST_F(HostViewTest, KeepsTheAliasForLifeAndTellsTheRuntimesIdBesides) {
  const HostPodPtr pod = view_.AddPod(PodNamed("pod"), true);
  const HostContainerPtr container = view_.Begin(pod, Named("a"), 0);
  const std::string alias = container->alias;
  view_.SetId(container, ContainerId("real"));
  EXPECT_EQ(container->alias, alias);
  const api::Container by_alias = ViewOf(*container, false);
  EXPECT_EQ(by_alias.id(), alias);
  EXPECT_EQ(by_alias.annotations().at(std::string(HostView::kIdAnnotation)), "real");
  EXPECT_EQ(ViewOf(*container, true).id(), "real");
}

TEST_F(HostViewTest, TwoCreationsOfOneNameAreTwoContainers) {
  const HostPodPtr pod = view_.AddPod(PodNamed("pod"), true);
  const HostContainerPtr first = view_.Begin(pod, Named("a"), 0);
  const HostContainerPtr second = view_.Begin(pod, Named("a"), 0);
  EXPECT_NE(first->alias, second->alias);
  // The end of the first one leaves the second in place.
  view_.Remove(*first);
  EXPECT_EQ(view_.Find(second->alias), second);
}

TEST_F(HostViewTest, AnIdIsOneContainersOnly) {
  const HostPodPtr pod = view_.AddPod(PodNamed("pod"), true);
  const HostContainerPtr listed = view_.Begin(pod, Named("a"), 0);
  view_.SetId(listed, ContainerId("real"));
  const HostContainerPtr created = view_.Begin(pod, Named("a"), 0);
  view_.SetId(created, ContainerId("real"));
  EXPECT_EQ(view_.Find("real"), created);
  EXPECT_EQ(view_.Find(listed->alias), nullptr);
  EXPECT_EQ(view_.Containers().size(), 1u);
}

TEST_F(HostViewTest, ShowsWhatHasNotEnded) {
  const HostPodPtr pod = view_.AddPod(PodNamed("pod"), true);
  const HostContainerPtr creating = view_.Begin(pod, Named("creating"), 0);
  const HostContainerPtr ended = view_.Begin(pod, Named("ended"), 0);
  view_.SetId(ended, ContainerId("c1"));
  ended->message.Edit().set_state(api::CONTAINER_STOPPED);
  const api::SynchronizeRequest all = Decoded(*view_.All(false));
  EXPECT_EQ(all.pods_size(), 1);
  ASSERT_EQ(all.containers_size(), 1);
  EXPECT_EQ(all.containers(0).name(), "creating");
  EXPECT_EQ(all.containers(0).pod_sandbox_id(), "pod");
  EXPECT_EQ(all.containers(0).state(), api::CONTAINER_CREATED);
  EXPECT_TRUE(creating->told);
  EXPECT_FALSE(ended->told);
}

TEST_F(HostViewTest, IsEncodedOnceForAllThatComeWhileNothingChanges) {
  const HostPodPtr pod = view_.AddPod(PodNamed("pod"), true);
  const HostContainerPtr container = view_.Begin(pod, Named("a"), 0);
  view_.SetId(container, ContainerId("real"));
  const SharedSyncMessages first = view_.All(false);
  EXPECT_EQ(view_.All(false), first);
  // The state for a plugin that uses real ids.
  const SharedSyncMessages real = view_.All(true);
  EXPECT_EQ(Decoded(*real).containers(0).id(), "real");
  EXPECT_EQ(Decoded(*first).containers(0).id(), container->alias);
  EXPECT_EQ(view_.All(false), first);
  EXPECT_EQ(view_.All(true), real);
}

TEST_F(HostViewTest, EachChangeIsInWhatTheNextOneIsTold) {
  SharedSyncMessages last = view_.All(false);
  const auto changed = [&] { return std::exchange(last, view_.All(false)) != last; };
  EXPECT_FALSE(changed());
  const HostPodPtr pod = view_.AddPod(PodNamed("pod"), true);
  EXPECT_TRUE(changed());
  const HostContainerPtr container = view_.Begin(pod, Named("a"), 0);
  EXPECT_TRUE(changed());
  view_.SetId(container, ContainerId("real"));
  EXPECT_TRUE(changed());
  container->SetState(api::CONTAINER_RUNNING);
  EXPECT_TRUE(changed());
  EXPECT_EQ(Decoded(*last).containers(0).state(), api::CONTAINER_RUNNING);
  pod->message.Edit().set_uid("uid");
  EXPECT_TRUE(changed());
  view_.Remove(*container);
  EXPECT_TRUE(changed());
  view_.RemovePod(*pod);
  EXPECT_TRUE(changed());
  EXPECT_EQ(Decoded(*last).pods_size(), 0);
  EXPECT_FALSE(changed());
}

// The runtime lists an object, but does not answer for its status: for example its shim hangs.
TEST_F(HostViewTest, WhatIsListedWithoutItsStatusIsCompletedLater) {
  clock_.Advance(std::chrono::milliseconds(0));
  SandboxFacts sandbox;
  sandbox.pod.id = PodSandboxId("pod");
  sandbox.status_missing = true;
  ContainerFacts facts;
  facts.container.id = ContainerId("real");
  facts.container.pod_id = sandbox.pod.id;
  facts.container.name = "main";
  facts.container.state = ContainerState::kRunning;
  facts.status_missing = true;
  runtime_.everything = RuntimeAccess::Everything{.sandboxes = {sandbox}, .containers = {facts}};
  runtime_.Answer();
  const HostContainerPtr container = view_.Find("real");
  ASSERT_NE(container, nullptr) << "plugins need its id";
  inventory_.SetValues(ContainerId("real"), {.cpus = CpuSet{2, 3}});

  sandbox.status_missing = false;
  sandbox.pod.cgroup_parent = "/kubepods/pod";
  facts.status_missing = false;
  facts.container.resources = {.cpu_shares = 512, .cpuset_cpus = "0-7"};
  facts.details.command = {"/entry"};
  facts.details.environment.Add("A", "1");
  facts.started_at = 7;
  runtime_.everything = RuntimeAccess::Everything{.sandboxes = {sandbox}, .containers = {facts}};
  const auto list = [this] {
    inventory_.Refresh();
    runtime_.Answer();
  };
  list();
  EXPECT_EQ(view_.Find("real"), container);
  const api::Container& message = *container->message;
  EXPECT_EQ(container->pod->message->linux().cgroup_parent(), "/kubepods/pod");
  EXPECT_EQ(message.id(), container->alias);
  EXPECT_EQ(message.annotations().at(std::string(HostView::kIdAnnotation)), "real");
  EXPECT_EQ(message.state(), api::CONTAINER_RUNNING);
  EXPECT_EQ(message.started_at(), 7);
  EXPECT_THAT(message.args(), ElementsAre("/entry"));
  EXPECT_THAT(message.env(), ElementsAre("A=1"));
  EXPECT_EQ(message.linux().resources().cpu().shares().value(), 512u);
  EXPECT_EQ(message.linux().resources().cpu().cpus(), "2-3") << "set after the first list";

  // A whole message stays.
  container->message.Edit().add_args("-v");
  list();
  EXPECT_THAT(container->message->args(), ElementsAre("/entry", "-v"));
}

class ImageCacheTest : public testing::Test {
 protected:
  // The image's entry point, "" for none; nullopt: unknown image.
  std::optional<std::string> Find(const std::string& reference) {
    std::optional<std::string> found;
    int answers = 0;
    cache_.Find(PodSandboxId("p1"), reference, [&](const ImageFacts* facts) {
      ++answers;
      if (facts != nullptr) found = facts->entrypoint.empty() ? "" : facts->entrypoint[0];
    });
    runtime_.Answer();
    EXPECT_EQ(answers, 1);
    return found;
  }

  test::FakeAccess runtime_;
  ImageCache cache_{runtime_};
};

TEST_F(ImageCacheTest, OneThatIsNamedByItsDigestIsAskedForOnce) {
  for (const char* const name : {"sha256:aa", "docker.io/library/web@sha256:bb"}) {
    runtime_.asked.clear();
    runtime_.images[name].entrypoint = {"/entry"};
    EXPECT_EQ(Find(name), "/entry");
    EXPECT_EQ(Find(name), "/entry");
    EXPECT_THAT(runtime_.asked, ElementsAre(fmt::format("image {} of p1", name)));
  }
}

TEST_F(ImageCacheTest, ATagMayBeAnotherImageTheNextTime) {
  runtime_.images["web:1"].entrypoint = {"/old"};
  EXPECT_EQ(Find("web:1"), "/old");
  runtime_.images["web:1"].entrypoint = {"/new"};
  EXPECT_EQ(Find("web:1"), "/new");
}

TEST_F(ImageCacheTest, WhatIsNotKnownIsAskedForAgain) {
  EXPECT_EQ(Find("sha256:aa"), std::nullopt);
  runtime_.images["sha256:aa"] = {};
  EXPECT_EQ(Find("sha256:aa"), "");
  EXPECT_THAT(runtime_.asked, SizeIs(2));
}

TEST_F(ImageCacheTest, WithoutANameNothingIsAsked) {
  EXPECT_EQ(Find(""), std::nullopt);
  EXPECT_THAT(runtime_.asked, IsEmpty());
}

TEST_F(ImageCacheTest, TheOldestAreForgotten) {
  for (size_t i = 0; i <= ImageCache::kMost; ++i) {
    const std::string name = "sha256:" + std::to_string(i);
    runtime_.images[name] = {};
    Find(name);
  }
  runtime_.asked.clear();
  Find("sha256:1");
  Find("sha256:" + std::to_string(ImageCache::kMost));
  EXPECT_THAT(runtime_.asked, IsEmpty());
  Find("sha256:0");
  EXPECT_THAT(runtime_.asked, ElementsAre("image sha256:0 of p1"));
}

// Two that ask at the same time both get the facts, which are stored once.
TEST_F(ImageCacheTest, SeveralMayAskAtTheSameTime) {
  runtime_.images["sha256:aa"].entrypoint = {"/entry"};
  int known = 0;
  for (int i = 0; i < 2; ++i)
    cache_.Find(PodSandboxId("p1"), "sha256:aa",
                [&known](const ImageFacts* facts) { known += facts != nullptr; });
  runtime_.Answer();
  EXPECT_EQ(known, 2);
  EXPECT_EQ(Find("sha256:aa"), "/entry");
}

TEST(ImageCacheEndTest, NothingIsAnsweredAfterItsEnd) {
  test::FakeAccess runtime;
  runtime.images["sha256:aa"] = {};
  auto cache = std::make_unique<ImageCache>(runtime);
  cache->Find(PodSandboxId("p1"), "sha256:aa", [](const ImageFacts*) { FAIL(); });
  cache.reset();
  runtime.Answer();
}

}  // namespace
}  // namespace resmgr::nri
