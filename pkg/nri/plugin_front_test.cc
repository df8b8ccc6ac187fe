// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/plugin_front.h"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "pkg/dump/dumper.h"
#include "pkg/nri/event_call.h"
#include "pkg/nri/testing/plugin_front_fixture.h"
#include "pkg/pipeline/testing/function_stage.h"
#include "test/support/status_matchers.h"
#include "test/support/wait.h"

namespace resmgr::nri {
namespace {

using resmgr::test::FunctionStage;
using resmgr::test::Must;
using resmgr::test::RunFor;
using test::About;
using test::FakeHost;
using test::PluginFrontTest;
using test::ResourcesOf;
using test::Told;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using ttrpc::test::RunUntil;

// A stage that makes this change of a creation; without it, it never answers.
FunctionStage CreationStage(std::function<void(Adjustment&)> change = nullptr) {
  return FunctionStage({.name = "stage", .operations = {Operation::kCreateContainer}},
                       [change = std::move(change)](auto& call, Request&, const Adjustment&) {
                         if (!change) return;
                         Adjustment adjustment;
                         change(adjustment);
                         call.Adjust(std::move(adjustment));
                       });
}

TEST_F(PluginFrontTest, OthersLeaveTheCpusInTheSameAnswer) {
  Synchronize();
  const auto created = Must(Create("dsp", true, 1000));
  EXPECT_EQ(created.adjust().linux().resources().cpu().cpus(), "1");
  EXPECT_THAT(Told(created.update()), ElementsAre("id-web 0,2-7"));
  EXPECT_TRUE(created.update(0).ignore_failure());
  EXPECT_THAT(host_.updates, IsEmpty());

  ASSERT_TRUE(Tell(api::EVENT_START_CONTAINER, "dsp", true, 1000).ok());
  const auto stopped = Must(Stop("dsp", true, 1000));
  EXPECT_THAT(Told(stopped.update()), ElementsAre("id-web 0-7"));
}

TEST_F(PluginFrontTest, ARefusalNamesTheShortage) {
  Synchronize();
  const auto refused = Create("large", true, 9000);
  EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("needs 9 CPUs"));
  EXPECT_TRUE(Create("dsp", true, 1000).ok()) << "and nothing is left of it";
}

TEST_F(PluginFrontTest, CallsInBothDirectionsAreDumped) {
  std::vector<std::string> lines;
  std::mutex mutex;
  const auto dumper =
      dump::Dumper::Create({.specs = {"reset,full:.*"}}, [&](bool, std::string_view line) {
        const std::lock_guard lock(mutex);
        lines.emplace_back(line);
      });
  ASSERT_TRUE(dumper.ok());
  ttrpc::test::SocketPair sockets;
  FakeHost host(loop_, std::move(sockets.ours));
  {
    PluginFront shown(loop_, pipeline_, {.connection = {.dumper = dumper->get()}},
                      {.connected = [] {}, .disconnected = [] {}, .happened = {}, .doubtful = {}});
    shown.StartOn(std::move(sockets.theirs));
    ASSERT_TRUE(host.Configure(test::Containerd("1.7.24")).ok());
    ASSERT_TRUE(host.Synchronize(api::SynchronizeRequest()).ok());
    EXPECT_FALSE(host.Call("Configure", "").ok());
  }
  ASSERT_TRUE((*dumper)->Close(std::chrono::seconds(10)));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("RegisterPlugin => plugin_name: cri-resmgr")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("Configure <= events: 2047")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("(intercepted) FAILED Configure")));
}

TEST_F(PluginFrontTest, VariablesAndCdiDevicesShowClaims) {
  ContainerDetails shown;
  FunctionStage stage({.name = "stage", .operations = {Operation::kCreateContainer}},
                      [&shown](auto& call, Request& request, const Adjustment&) {
                        shown = request.Details({Detail::kDevices, Detail::kEnvironment});
                        call.Adjust(Adjustment());
                      });
  pipeline_.Add(stage);
  Synchronize();
  auto request = About<api::CreateContainerRequest>("dsp", true, 1000);
  request.mutable_container()->add_env("HOME=/");
  request.mutable_container()->add_env("DRA_CPUSET_u-1=2-3");
  request.mutable_container()->add_cdi_devices()->set_name("dra.k8s.io/cpu=claim-u-1");
  EXPECT_TRUE(host_.Call<api::CreateContainerResponse>("CreateContainer", request).ok());
  EXPECT_EQ(shown.environment, Environment({{"DRA_CPUSET_u-1", "2-3"}}));
  EXPECT_THAT(shown.cdi_devices, ElementsAre("dra.k8s.io/cpu=claim-u-1"));
  pipeline_.Remove(stage);
}

// A container is not in the list while its creation is undecided.
TEST_F(PluginFrontTest, AListDuringACreationDoesNotShowIt) {
  FunctionStage never = CreationStage();
  pipeline_.Add(never);
  Synchronize(false);
  size_t listed = 99;
  const auto list = loop_.After(std::chrono::milliseconds(10), [&] {
    front_.ListAll(
        {}, [&listed](const StatusOr<RuntimeInventory>& all) { listed = all->containers.size(); });
  });
  EXPECT_FALSE(Create("dsp", true, 1000).ok());
  EXPECT_EQ(listed, 0U);
  pipeline_.Remove(never);
}

TEST_F(PluginFrontTest, AResizeIsTheAnswersUpdate) {
  Synchronize(false);
  ASSERT_TRUE(Create("app", true, 500).ok());
  const auto resized = Must(Resize("app", true, 500, 2000));
  EXPECT_THAT(Told(resized.update()), ElementsAre("id-app 1-2"));
}

// Plugins after this one may change its answer.
TEST_F(PluginFrontTest, TheRuntimeTellsWhatAllPluginsMadeOfARequest) {
  Synchronize(false);
  ASSERT_TRUE(Create("app", true, 1000).ok());
  const auto listed = [this] {
    std::optional<RuntimeContainer> container;
    front_.ListAll(
        {}, [&](const StatusOr<RuntimeInventory>& all) { container = all->containers.front(); });
    EXPECT_TRUE(RunUntil(loop_, [&] { return container.has_value(); }));
    return *container;
  };
  EXPECT_FALSE(listed().told);
  auto event = About<api::StateChangeEvent>("app", true, 1000);
  event.mutable_container()
      ->mutable_linux()
      ->mutable_resources()
      ->mutable_cpu()
      ->mutable_shares()
      ->set_value(512);
  ASSERT_TRUE(Tell(api::EVENT_POST_CREATE_CONTAINER, event).ok());
  EXPECT_TRUE(listed().told);
  EXPECT_EQ(listed().resources.cpu_shares, 512);
  ASSERT_TRUE(Resize("app", true, 1000, 2000).ok());
  EXPECT_FALSE(listed().told);
  ASSERT_TRUE(Tell(api::EVENT_POST_UPDATE_CONTAINER, event).ok());
  EXPECT_TRUE(listed().told);
}

TEST_F(PluginFrontTest, AStartIsKnown) {
  Synchronize(false);
  ASSERT_TRUE(Create("dsp", true, 1000).ok());
  auto event = About<api::StateChangeEvent>("dsp", true, 1000);
  ASSERT_TRUE(Tell(api::EVENT_START_CONTAINER, event).ok());
  ASSERT_TRUE(Tell(api::EVENT_POST_START_CONTAINER, event).ok());
  EXPECT_EQ(StateOf("dsp"), ContainerState::kRunning);
}

// The resource manager soon takes over what events tell.
class PluginFrontWithListsTest : public PluginFrontTest {
 protected:
  PluginFrontWithListsTest() : PluginFrontTest({}, false, std::chrono::milliseconds(1)) {}
};

// Runtimes report the end of a process at once, also before the start that is over.
TEST_F(PluginFrontWithListsTest, AStartThatIsReportedAfterTheEndRevivesNothing) {
  Synchronize(false);
  ASSERT_TRUE(Create("init", true, 5000).ok());
  ASSERT_TRUE(Tell(api::EVENT_START_CONTAINER, "init", true, 5000).ok());
  ASSERT_TRUE(Stop("init", true, 5000).ok());
  ASSERT_TRUE(Tell(api::EVENT_POST_START_CONTAINER, "init", true, 5000).ok());
  RunFor(loop_, 50 * Options().event_pause);
  EXPECT_EQ(StateOf("init"), ContainerState::kExited);
  const auto app = Create("app", true, 5000);
  EXPECT_TRUE(app.ok()) << app.status();
}

// The runtime may create a container after its inventory and before it tells this plugin of
// creations.
TEST_F(PluginFrontWithListsTest, AContainerThatWasCreatedDuringTheRegistrationIsFoundByItsEvents) {
  Synchronize();
  ASSERT_TRUE(Create("dsp", true, 1000).ok());
  for (const api::Event each : {api::EVENT_POST_CREATE_CONTAINER, api::EVENT_START_CONTAINER,
                                api::EVENT_POST_START_CONTAINER}) {
    ASSERT_TRUE(Tell(each, "lost", false, 100).ok());
    RunFor(loop_, 50 * Options().event_pause);
  }
  EXPECT_EQ(StateOf("lost"), ContainerState::kRunning);
  ASSERT_FALSE(host_.updates.empty());
  EXPECT_THAT(Told(host_.updates.back().update()), ElementsAre("id-lost 0,2-7"))
      << "again, since it runs now";
}

TEST_F(PluginFrontWithListsTest, AnUpdateOrAStartAloneShowsAContainerToo) {
  Synchronize(false);
  auto resize = About<api::UpdateContainerRequest>("resized", false, 100);
  resize.mutable_container()->set_state(api::CONTAINER_RUNNING);
  *resize.mutable_linux_resources() = ResourcesOf(200);
  ASSERT_TRUE(Update(resize).ok());
  ASSERT_TRUE(Tell(api::EVENT_START_CONTAINER, "started", false, 100).ok());
  RunFor(loop_, 50 * Options().event_pause);
  EXPECT_EQ(StateOf("resized"), ContainerState::kRunning);
  EXPECT_TRUE(StateOf("started").has_value());
}

TEST_F(PluginFrontWithListsTest, EventsOfContainersThatHaveEndedAddNone) {
  Synchronize(false);
  auto over = About<api::StateChangeEvent>("over", false, 100);
  over.mutable_container()->set_state(api::CONTAINER_STOPPED);
  ASSERT_TRUE(Tell(api::EVENT_POST_START_CONTAINER, over).ok());
  ASSERT_TRUE(Stop("stopped", false, 100).ok());
  ASSERT_TRUE(Tell(api::EVENT_REMOVE_CONTAINER, "removed", false, 100).ok());
  RunFor(loop_, 50 * Options().event_pause);
  for (const char* const name : {"over", "stopped", "removed"})
    EXPECT_FALSE(StateOf(name).has_value()) << name;
}

// NRI does not report which sandboxes are ready.
TEST_F(PluginFrontTest, TheOverheadOfPodsWithoutContainersThatMayRunIsNotPromised) {
  RuntimeMirror mirror;
  for (const char* const id : {"live", "over", "empty"}) {
    Pod pod;
    pod.id = PodSandboxId(std::string(id));
    mirror.Add(pod);
  }
  const auto add = [&mirror](std::string_view pod, ContainerState state) {
    RuntimeContainer container;
    container.id = ContainerId(fmt::format("of-{}-{}", pod, static_cast<int>(state)));
    container.pod_id = PodSandboxId(std::string(pod));
    container.state = state;
    mirror.Add(std::move(container));
  };
  add("live", ContainerState::kRunning);
  add("live", ContainerState::kExited);
  add("over", ContainerState::kExited);
  mirror.GuessStopped();
  EXPECT_THAT(mirror.Inventory().stopped_pods,
              ElementsAre(PodSandboxId("empty"), PodSandboxId("over")));
  mirror.SetStopped(PodSandboxId("live"));
  add("live", ContainerState::kCreated);
  mirror.Remove(PodSandboxId("over"));
  EXPECT_THAT(mirror.Inventory().stopped_pods,
              ElementsAre(PodSandboxId("empty"), PodSandboxId("live")));
  add("empty", ContainerState::kExited);
  EXPECT_TRUE(mirror.Inventory().stopped_pods.contains(PodSandboxId("empty")));
  add("empty", ContainerState::kRunning);
  EXPECT_THAT(mirror.Inventory().stopped_pods, ElementsAre(PodSandboxId("live")))
      << "a guess is taken back, and an event is not";
}

TEST_F(PluginFrontTest, AnInventoryIsInTheOrderOfIds) {
  RuntimeMirror mirror;
  std::vector<std::string> expected;
  for (int i = 0; i < 50; ++i) {
    const std::string id = fmt::format("id-{:02}", i * 37 % 50);
    Pod pod;
    pod.id = PodSandboxId(id);
    mirror.Add(pod);
    RuntimeContainer container;
    container.id = ContainerId(id);
    mirror.Add(std::move(container));
    expected.push_back(fmt::format("id-{:02}", i));
  }
  std::vector<std::string> pods;
  std::vector<std::string> containers;
  const RuntimeInventory inventory = mirror.Inventory();
  for (const Pod& pod : inventory.pods)
    pods.emplace_back(pod.id.value());
  for (const RuntimeContainer& container : inventory.containers)
    containers.emplace_back(container.id.value());
  EXPECT_EQ(pods, expected);
  EXPECT_EQ(containers, expected);
}

// The runtime reports a failed creation by the removal of its remains.
TEST_F(PluginFrontTest, ARemovalReleasesTheCpus) {
  Synchronize();
  ASSERT_TRUE(Create("dsp", true, 1000).ok());
  ASSERT_TRUE(Tell(api::EVENT_REMOVE_CONTAINER, "dsp", true, 1000).ok());
  ASSERT_TRUE(RunUntil(loop_, [&] { return !host_.updates.empty(); }));
  EXPECT_THAT(Told(host_.updates.back().update()), ElementsAre("id-web 0-7"));
}

TEST_F(PluginFrontTest, WhatOtherStagesChangeIsInTheAnswer) {
  FunctionStage variable = CreationStage([](Adjustment& adjustment) {
    adjustment.Wide().environment.Set("REGION", "north");
    adjustment.Wide().environment.Remove("ZONE");
  });
  pipeline_.Add(variable);
  Synchronize(false);
  const auto created = Must(Create("dsp", true, 1000));
  ASSERT_EQ(created.adjust().env_size(), 2);
  EXPECT_EQ(created.adjust().env(0).key(), "REGION");
  EXPECT_EQ(created.adjust().env(0).value(), "north");
  EXPECT_EQ(created.adjust().env(1).key(), "-ZONE");
  EXPECT_EQ(created.adjust().linux().resources().cpu().cpus(), "1");
}

// They would override the policy's CPUs, also those of later updates.
TEST_F(PluginFrontTest, CpusetFilesInARequestAreRefused) {
  Synchronize(false);
  auto create = About<api::CreateContainerRequest>("dsp", true, 1000);
  auto& unified =
      *create.mutable_container()->mutable_linux()->mutable_resources()->mutable_unified();
  unified["cpuset.cpus"] = "3";
  const auto refused = host_.Call<api::CreateContainerResponse>("CreateContainer", create);
  EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("cpuset.cpus"));
  unified.erase("cpuset.cpus");
  unified["cpu.weight"] = "7";
  const auto created = Must(host_.Call<api::CreateContainerResponse>("CreateContainer", create));
  EXPECT_EQ(created.adjust().linux().resources().cpu().cpus(), "1") << "nothing was left of it";
  EXPECT_EQ(created.adjust().linux().resources().unified_size(), 0);
  auto update = About<api::UpdateContainerRequest>("dsp", true, 1000);
  *update.mutable_linux_resources() = ResourcesOf(1000);
  (*update.mutable_linux_resources()->mutable_unified())["cpuset.cpus.partition"] = "root";
  EXPECT_FALSE(Update(update).ok());
}

// The runtime would keep its list, but the stage would consider the container unrestricted.
TEST(EventCallTest, AStageThatClearsAListHasFailed) {
  ManualClock clock;
  Pipeline pipeline(clock);
  FunctionStage clearing =
      CreationStage([](Adjustment& adjustment) { adjustment.Wide().clear_cpus = true; });
  pipeline.Add(clearing);
  EventCall call(pipeline, Operation::kCreateContainer);
  call.request().body = CreateRequest();
  Status refusal;
  bool over = false;
  call.Start([&](const EventCall::Decision& decision) { refusal = decision.refusal; },
             [&] { over = true; });
  EXPECT_EQ(refusal.code(), StatusCode::kUnimplemented);
  EXPECT_TRUE(over);
}

// The runtime ignores updates of a container that it is still creating, and changes only its record
// of one that it is starting.
TEST_F(PluginFrontTest, WhatAContainerWasSentBeforeItRanIsSentAgain) {
  Synchronize(false);
  ASSERT_TRUE(Create("app", false, 100).ok());
  const auto created = Must(Create("dsp", true, 1000));
  EXPECT_THAT(Told(created.update()), ElementsAre("id-app 0,2-7"));
  const auto app = About<api::StateChangeEvent>("app", false, 100);
  for (const api::Event each :
       {api::EVENT_POST_CREATE_CONTAINER, api::EVENT_POST_START_CONTAINER}) {
    host_.updates.clear();
    ASSERT_TRUE(Tell(each, app).ok());
    ASSERT_TRUE(RunUntil(loop_, [&] { return !host_.updates.empty(); })) << each;
    EXPECT_THAT(Told(host_.updates.back().update()), ElementsAre("id-app 0,2-7"));
  }
}

// Other containers cannot leave meanwhile: the runtime moves them after the answer.
TEST_F(PluginFrontTest, AStartIsNotHeld) {
  Synchronize(false);
  ASSERT_TRUE(Create("app", false, 100).ok());
  ASSERT_TRUE(Create("dsp", true, 1000).ok());
  host_.Hold();
  const auto app = About<api::StateChangeEvent>("app", false, 100);
  for (const api::Event each : {api::EVENT_START_CONTAINER, api::EVENT_POST_START_CONTAINER}) {
    ASSERT_TRUE(Tell(each, app).ok());
  }
  // "app" may still be on all CPUs.
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(Tell(api::EVENT_START_CONTAINER, "dsp", true, 1000).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, kPatience);
  host_.Release();
  ASSERT_TRUE(RunUntil(loop_, [&] { return !host_.updates.empty(); }));
  EXPECT_THAT(Told(host_.updates.back().update()), ElementsAre("id-app 0,2-7"));
}

TEST_F(PluginFrontTest, AContainerThatRunsAsItWasCreatedIsSentNothing) {
  Synchronize(false);
  ASSERT_TRUE(Create("app", false, 100).ok());
  const auto app = About<api::StateChangeEvent>("app", false, 100);
  for (const api::Event each : {api::EVENT_POST_CREATE_CONTAINER, api::EVENT_START_CONTAINER,
                                api::EVENT_POST_START_CONTAINER}) {
    ASSERT_TRUE(Tell(each, app).ok());
  }
  // A running container is updated in an answer, which takes effect.
  ASSERT_TRUE(Create("dsp", true, 1000).ok());
  ASSERT_TRUE(Tell(api::EVENT_POST_START_CONTAINER, app).ok());
  ASSERT_TRUE(Create("last", false, 100).ok());
  EXPECT_THAT(host_.updates, IsEmpty());
}

// A runtime drops a plugin that does not answer.
TEST_F(PluginFrontTest, AnEventIsAnsweredInTime) {
  FunctionStage never = CreationStage();
  pipeline_.Add(never);
  Synchronize();
  const auto created = Create("dsp", true, 1000);
  EXPECT_EQ(created.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(front_.pending(), 0U);
  // Its reservation is released.
  ASSERT_TRUE(RunUntil(loop_, [&] { return never.calls() == 0; }));
  pipeline_.Remove(never);
  EXPECT_EQ(Create("next", true, 1000)->adjust().linux().resources().cpu().cpus(), "1");
}

// The stage of CPU files is one: its disk may hang for longer than the runtime waits.
TEST_F(PluginFrontTest, AStageWhoseFailureIsIgnoredDoesNotRefuseACreation) {
  FunctionStage hangs({.name = "hangs",
                       .rank = StageRank::kCpuFiles,
                       .operations = {Operation::kCreateContainer},
                       .deadline = kPatience * 10,
                       .failure = FailurePolicy::kIgnore},
                      [](auto&, Request&, const Adjustment&) {});
  pipeline_.Add(hangs);
  Synchronize();
  const auto created = Must(Create("dsp", true, 1000));
  EXPECT_EQ(created.adjust().linux().resources().cpu().cpus(), "1");
  EXPECT_EQ(pipeline_.ignored_failures(), 1U);
  EXPECT_EQ(front_.pending(), 0U);
  pipeline_.Remove(hangs);
}

TEST_F(PluginFrontTest, ARuntimeThatWaitsForLessTimeIsAnsweredEarlier) {
  FunctionStage never = CreationStage();
  pipeline_.Add(never);
  api::ConfigureRequest configure = test::Containerd("1.7.24");
  configure.set_request_timeout(kPatience.count() / 3);
  ASSERT_TRUE(host_.Configure(configure).ok());
  ASSERT_TRUE(host_.Synchronize(api::SynchronizeRequest()).ok());
  ASSERT_TRUE(RunUntil(loop_, [&] { return manager_.synchronizer().ready(); }));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Create("dsp", true, 1000).status().code(), StatusCode::kUnavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - start, kPatience);
  pipeline_.Remove(never);
}

TEST_F(PluginFrontTest, WithoutARuntimeNothingIsListed) {
  std::optional<StatusOr<RuntimeInventory>> listed;
  front_.ListAll({}, [&listed](StatusOr<RuntimeInventory> told) { listed = std::move(told); });
  ASSERT_TRUE(RunUntil(loop_, [&] { return listed.has_value(); }));
  EXPECT_EQ(listed->status().code(), StatusCode::kUnavailable);
  std::optional<Status> updated;
  front_.UpdateContainer(ContainerId("none"), {},
                         [&updated](const Status& told) { updated = told; });
  ASSERT_TRUE(RunUntil(loop_, [&] { return updated.has_value(); }));
  EXPECT_EQ(updated->code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace resmgr::nri
