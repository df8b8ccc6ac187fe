// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/inventory_sync.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/host/dispatch.h"
#include "pkg/nri/host/plugin_updates.h"
#include "pkg/nri/testing/fake_access.h"
#include "pkg/nri/testing/function_port.h"
#include "pkg/ttrpc/testing/test_loop.h"

namespace resmgr::nri {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class InventorySyncTest : public testing::Test {
 protected:
  InventorySyncTest() { dispatcher_.Add(plugin_); }

  void HavePod(const std::string& name, bool ready = true) {
    SandboxFacts facts;
    facts.pod.id = PodSandboxId(name);
    facts.pod.name = name;
    facts.ready = ready;
    std::erase_if(runtime_.everything->sandboxes,
                  [&](const SandboxFacts& each) { return each.pod.name == name; });
    runtime_.everything->sandboxes.push_back(std::move(facts));
  }
  void HaveContainer(const std::string& pod, const std::string& name,
                     ContainerState state = ContainerState::kRunning) {
    ContainerFacts facts;
    facts.container.id = ContainerId("id-" + name);
    facts.container.pod_id = PodSandboxId(pod);
    facts.container.name = name;
    facts.container.state = state;
    std::erase_if(runtime_.everything->containers,
                  [&](const ContainerFacts& each) { return each.container.name == name; });
    runtime_.everything->containers.push_back(std::move(facts));
  }
  void Refresh() {
    sync_.Refresh();
    runtime_.Answer();
  }
  std::vector<std::string> Containers() const {
    std::vector<std::string> names;
    for (const HostContainerPtr& container : inventory_.Containers())
      names.push_back(container->message->name());
    return names;
  }
  // Marks all containers as told, as connected plugins do.
  void TellAll() { inventory_.All(/*real_ids=*/false); }

  EventLoop loop_;
  test::FakeAccess runtime_;
  std::vector<std::string> told_;
  test::FunctionPort plugin_{"10-a", told_};
  HostInventory inventory_;
  const UnsupportedPolicy unsupported_;
  Dispatcher dispatcher_;
  PluginUpdates updates_{runtime_,
                         inventory_,
                         unsupported_,
                         {.placement_is_owned = [] { return false; },
                          .dropped_placement = [] {},
                          .left_out = [](const auto&, const auto&) {}}};
  HostEvents events_{dispatcher_, inventory_, updates_, std::chrono::seconds(1)};
  InventorySync sync_{
      loop_, runtime_, inventory_, events_, {.retry = std::chrono::milliseconds(5)}};
};

TEST_F(InventorySyncTest, LearnsWhatTheRuntimeHas) {
  HavePod("p");
  HaveContainer("p", "one");
  HaveContainer("p", "two");
  HaveContainer("gone", "orphan");
  EXPECT_FALSE(sync_.ready());
  Refresh();
  EXPECT_TRUE(sync_.ready());
  EXPECT_THAT(Containers(), UnorderedElementsAre("one", "two"));
  EXPECT_NE(inventory_.Find("id-one"), nullptr);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(InventorySyncTest, AsksAgainUntilTheRuntimeAnswers) {
  runtime_.everything = Unavailable("it is not there");
  std::vector<Status> ended;
  sync_.AfterRefresh([&](const Status& status) { ended.push_back(status); });
  runtime_.Answer();
  EXPECT_FALSE(sync_.ready());
  ASSERT_THAT(ended, SizeIs(1)) << "the first failure is told";
  EXPECT_EQ(ended[0].code(), StatusCode::kUnavailable);
  runtime_.everything = RuntimeAccess::Everything();
  // A caller that comes meanwhile waits for the next try.
  sync_.AfterRefresh([&](const Status& status) { ended.push_back(status); });
  EXPECT_THAT(runtime_.asked, SizeIs(1));
  ASSERT_TRUE(ttrpc::test::RunUntil(loop_, [&] {
    runtime_.Answer();
    return sync_.ready();
  }));
  ASSERT_THAT(ended, SizeIs(2));
  EXPECT_TRUE(ended[1].ok());
}

// The answer under way may be older than recent events.
TEST_F(InventorySyncTest, IsAskedOnceMoreWhereItIsAskedAlready) {
  sync_.Refresh();
  sync_.Refresh();
  sync_.Refresh();
  EXPECT_THAT(runtime_.asked, SizeIs(1));
  runtime_.Answer();
  EXPECT_THAT(runtime_.asked, SizeIs(2));
  runtime_.Answer();
  EXPECT_THAT(runtime_.asked, SizeIs(2));
}

TEST_F(InventorySyncTest, PluginsAreToldWhatEndedMeanwhile) {
  HavePod("p");
  HavePod("q");
  HaveContainer("p", "ends");
  HaveContainer("p", "goes");
  HaveContainer("q", "stays");
  Refresh();
  TellAll();
  HaveContainer("p", "ends", ContainerState::kExited);
  std::erase_if(runtime_.everything->containers,
                [](const ContainerFacts& each) { return each.container.name == "goes"; });
  Refresh();
  EXPECT_THAT(told_, UnorderedElementsAre("10-a Stop ends", "10-a Stop goes",
                                          "10-a REMOVE_CONTAINER goes"));
  EXPECT_THAT(Containers(), UnorderedElementsAre("ends", "stays"));
  // Each is told once.
  told_.clear();
  Refresh();
  EXPECT_THAT(told_, IsEmpty());

  HavePod("q", /*ready=*/false);
  Refresh();
  EXPECT_THAT(told_, ElementsAre("10-a Stop stays", "10-a STOP_POD_SANDBOX q"));
  runtime_.everything = RuntimeAccess::Everything();
  Refresh();
  EXPECT_THAT(inventory_.Pods(), IsEmpty());
  EXPECT_THAT(Containers(), IsEmpty());
}

// Records that are added while the runtime is asked are not in its answer, and stay.
TEST_F(InventorySyncTest, WhatComesWhileItAsksStays) {
  HavePod("p");
  Refresh();
  sync_.Refresh();
  const HostPodPtr pod = inventory_.FindPod("p");
  api::Container message;
  message.set_name("new");
  const HostContainerPtr container = inventory_.Begin(pod, message, 0);
  inventory_.SetId(container, ContainerId("id-new"));
  const HostContainerPtr creating = inventory_.Begin(pod, message, 1);
  runtime_.Answer();
  EXPECT_THAT(Containers(), SizeIs(2));
  EXPECT_EQ(inventory_.Find("id-new"), container);
}

// The reply is lost or under way, but the runtime has the container.
TEST_F(InventorySyncTest, ACreationThatTheRuntimeHasEndedIsKnownByItsId) {
  HavePod("p");
  Refresh();
  api::Container message;
  message.set_name("main");
  const HostContainerPtr container = inventory_.Begin(inventory_.FindPod("p"), message, 0);
  HaveContainer("p", "main");
  Refresh();
  EXPECT_EQ(inventory_.Find("id-main"), container);
  EXPECT_FALSE(container->creating());
  EXPECT_THAT(Containers(), ElementsAre("main"));
}

// A plugin that connects then does not hear of the removal, so it is not shown the container.
TEST_F(InventorySyncTest, WhatIsBeingRemovedIsNotShown) {
  HavePod("p");
  HavePod("q");
  HaveContainer("p", "main");
  Refresh();
  TellAll();
  std::vector<std::function<void()>> answers;
  plugin_.notify = [&](const api::StateChangeEvent&, PluginPort::Done<api::Empty> done) {
    answers.emplace_back([done = std::move(done)] { done(api::Empty()); });
  };
  const auto shown = [this] {
    api::SynchronizeRequest request;
    EXPECT_TRUE(request.ParseFromString(*inventory_.All(/*real_ids=*/false)->messages[0]));
    return std::pair(request.pods_size(), request.containers_size());
  };
  const SharedSyncMessages held = inventory_.All(/*real_ids=*/false);
  runtime_.everything->containers.clear();
  Refresh();
  ASSERT_THAT(answers, SizeIs(1)) << "the removal of the container";
  EXPECT_EQ(shown(), std::pair(2, 0));
  answers[0]();
  std::erase_if(runtime_.everything->sandboxes,
                [](const SandboxFacts& each) { return each.pod.name == "q"; });
  Refresh();
  ASSERT_THAT(answers, SizeIs(2));
  answers[1]();
  ASSERT_THAT(answers, SizeIs(3)) << "the removal of the pod";
  EXPECT_EQ(shown(), std::pair(1, 0));
  answers[2]();
}

}  // namespace
}  // namespace resmgr::nri
