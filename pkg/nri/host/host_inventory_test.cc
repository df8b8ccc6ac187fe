// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/host_inventory.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/host/id_aliases.h"

namespace resmgr::nri {
namespace {

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

TEST(HostInventoryTest, FindsContainersByIdItsBeginningAndAlias) {
  HostInventory inventory;
  const HostPodPtr pod = inventory.AddPod(PodNamed("pod"), true);
  const HostContainerPtr a = inventory.Begin(pod, Named("a"), 0);
  const HostContainerPtr b = inventory.Begin(pod, Named("b"), 0);
  EXPECT_TRUE(a->creating());
  EXPECT_EQ(inventory.Find(a->alias), a);
  inventory.SetId(a, ContainerId("c01"));
  inventory.SetId(b, ContainerId("c02"));
  EXPECT_EQ(inventory.Find("c01"), a);
  EXPECT_EQ(inventory.Find("c02"), b);
  EXPECT_EQ(inventory.Find("c0"), nullptr);  // the beginning of both
  EXPECT_EQ(inventory.Find(""), nullptr);
  // The beginning of an alias finds nothing: clients do not know aliases.
  EXPECT_EQ(inventory.Find(a->alias.substr(0, 12)), nullptr);
  EXPECT_EQ(inventory.FindPod("po"), pod);
  inventory.Remove(*a);
  EXPECT_EQ(inventory.Find("c0"), b);
  EXPECT_EQ(inventory.Containers().size(), 1u);
}

TEST(HostInventoryTest, KeepsTheAliasForLifeAndTellsTheRuntimesIdBesides) {
  HostInventory inventory;
  const HostPodPtr pod = inventory.AddPod(PodNamed("pod"), true);
  const HostContainerPtr container = inventory.Begin(pod, Named("a"), 0);
  const std::string alias = container->alias;
  inventory.SetId(container, ContainerId("real"));
  EXPECT_EQ(container->alias, alias);
  const api::Container by_alias = ViewOf(*container, false);
  EXPECT_EQ(by_alias.id(), alias);
  EXPECT_EQ(by_alias.annotations().at(std::string(HostInventory::kIdAnnotation)), "real");
  EXPECT_EQ(ViewOf(*container, true).id(), "real");
}

TEST(HostInventoryTest, TwoCreationsOfOneNameAreTwoContainers) {
  HostInventory inventory;
  const HostPodPtr pod = inventory.AddPod(PodNamed("pod"), true);
  const HostContainerPtr first = inventory.Begin(pod, Named("a"), 0);
  const HostContainerPtr second = inventory.Begin(pod, Named("a"), 0);
  EXPECT_NE(first->alias, second->alias);
  // The end of the first one leaves the second in place.
  inventory.Remove(*first);
  EXPECT_EQ(inventory.Find(second->alias), second);
}

TEST(HostInventoryTest, AnIdIsOneContainersOnly) {
  HostInventory inventory;
  const HostPodPtr pod = inventory.AddPod(PodNamed("pod"), true);
  const HostContainerPtr listed = inventory.Begin(pod, Named("a"), 0);
  inventory.SetId(listed, ContainerId("real"));
  const HostContainerPtr created = inventory.Begin(pod, Named("a"), 0);
  inventory.SetId(created, ContainerId("real"));
  EXPECT_EQ(inventory.Find("real"), created);
  EXPECT_EQ(inventory.Find(listed->alias), nullptr);
  EXPECT_EQ(inventory.Containers().size(), 1u);
}

TEST(HostInventoryTest, ShowsWhatHasNotEnded) {
  HostInventory inventory;
  const HostPodPtr pod = inventory.AddPod(PodNamed("pod"), true);
  const HostContainerPtr creating = inventory.Begin(pod, Named("creating"), 0);
  const HostContainerPtr ended = inventory.Begin(pod, Named("ended"), 0);
  inventory.SetId(ended, ContainerId("c1"));
  ended->message.Edit().set_state(api::CONTAINER_STOPPED);
  const api::SynchronizeRequest all = Decoded(*inventory.All(false));
  EXPECT_EQ(all.pods_size(), 1);
  ASSERT_EQ(all.containers_size(), 1);
  EXPECT_EQ(all.containers(0).name(), "creating");
  EXPECT_EQ(all.containers(0).pod_sandbox_id(), "pod");
  EXPECT_EQ(all.containers(0).state(), api::CONTAINER_CREATED);
  EXPECT_TRUE(creating->told);
  EXPECT_FALSE(ended->told);
}

TEST(HostInventoryTest, IsEncodedOnceForAllThatComeWhileNothingChanges) {
  HostInventory inventory;
  const HostPodPtr pod = inventory.AddPod(PodNamed("pod"), true);
  const HostContainerPtr container = inventory.Begin(pod, Named("a"), 0);
  inventory.SetId(container, ContainerId("real"));
  const SharedSyncMessages first = inventory.All(false);
  EXPECT_EQ(inventory.All(false), first);
  // The state for a plugin that uses real ids.
  const SharedSyncMessages real = inventory.All(true);
  EXPECT_EQ(Decoded(*real).containers(0).id(), "real");
  EXPECT_EQ(Decoded(*first).containers(0).id(), container->alias);
  EXPECT_EQ(inventory.All(false), first);
  EXPECT_EQ(inventory.All(true), real);
}

TEST(HostInventoryTest, EachChangeIsInWhatTheNextOneIsTold) {
  HostInventory inventory;
  SharedSyncMessages last = inventory.All(false);
  const auto changed = [&] { return std::exchange(last, inventory.All(false)) != last; };
  EXPECT_FALSE(changed());
  const HostPodPtr pod = inventory.AddPod(PodNamed("pod"), true);
  EXPECT_TRUE(changed());
  const HostContainerPtr container = inventory.Begin(pod, Named("a"), 0);
  EXPECT_TRUE(changed());
  inventory.SetId(container, ContainerId("real"));
  EXPECT_TRUE(changed());
  container->SetState(api::CONTAINER_RUNNING);
  EXPECT_TRUE(changed());
  EXPECT_EQ(Decoded(*last).containers(0).state(), api::CONTAINER_RUNNING);
  pod->message.Edit().set_uid("uid");
  EXPECT_TRUE(changed());
  inventory.Remove(*container);
  EXPECT_TRUE(changed());
  inventory.RemovePod(*pod);
  EXPECT_TRUE(changed());
  EXPECT_EQ(Decoded(*last).pods_size(), 0);
  EXPECT_FALSE(changed());
}

}  // namespace
}  // namespace resmgr::nri
