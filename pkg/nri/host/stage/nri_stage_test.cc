// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/stage/nri_stage.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include "pkg/nri/testing/fake_access.h"
#include "pkg/nri/testing/function_port.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/pipeline/testing/function_stage.h"
#include "pkg/runtime/inventory.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr::nri {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class NriStageTest : public testing::Test {
 protected:
  using Call = resmgr::test::TestCall;

  NriStageTest() {
    stage_.Start();
    clock_.Advance(std::chrono::milliseconds(0));
    (void)stage_.Inventory(plugin_);
    pipeline_.Add(stage_);
  }
  ~NriStageTest() override { pipeline_.Remove(stage_); }

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
  // The pod "p" has the container "main", which the next list tells.
  ContainerFacts& HaveMain() {
    HavePod("p");
    HaveContainer("p", "main");
    return runtime_.everything->containers[0];
  }
  // The same, and plugins are told of both.
  void TellMain() {
    HaveMain();
    Refresh();
    TellAll();
  }
  // A call about this object, which is not started yet.
  std::unique_ptr<Call> Make(Operation operation, const std::string& id) {
    auto call = std::make_unique<Call>(pipeline_, operation);
    call->request.container_id = ContainerId(id);
    call->request.pod_id = PodSandboxId(id);
    return call;
  }
  std::unique_ptr<Call> MakeUpdate(const std::string& id, const LinuxResources& resources) {
    auto call = Make(Operation::kUpdateContainerResources, id);
    call->request.body = ContainerUpdate{.has_linux = true, .resources = resources};
    return call;
  }
  // Starts a call that plugins let pass.
  static std::unique_ptr<Call> Passed(std::unique_ptr<Call> call) {
    call->Start();
    EXPECT_TRUE(call->passed());
    return call;
  }
  std::unique_ptr<Call> Start(Operation operation, const std::string& id) {
    return Passed(Make(operation, id));
  }
  // A client's update of the memory limit of "main".
  std::unique_ptr<Call> Resize(int64_t limit) {
    return Passed(MakeUpdate("id-main", {.memory_limit = limit}));
  }
  // Asks for the list, unless the first one is still under way.
  void Refresh() {
    if (inventory_.ready()) inventory_.Refresh();
    runtime_.Answer();
  }
  std::vector<std::string> Containers() const {
    std::vector<std::string> names;
    for (const HostContainerPtr& container : view_.Containers())
      names.push_back(container->message->name());
    return names;
  }
  // The plugin answers by AnswerEvents only.
  void HoldEvents() {
    plugin_.notify = [this](const api::StateChangeEvent&, PluginPort::Answered done) {
      held_.push_back(std::move(done));
    };
  }
  // Answers events until none follows; the client does not get the reply before.
  void AnswerEvents(const Call& call) {
    EXPECT_FALSE(held_.empty());
    while (!held_.empty()) {
      EXPECT_FALSE(call.reply_seen) << held_.size();
      const PluginPort::Answered done = std::move(held_.front());
      held_.erase(held_.begin());
      done(OkStatus());
    }
  }
  // The plugin wants these values of the container.
  void Want(const std::string& id, const api::LinuxResources& resources) {
    api::UpdateContainersRequest request;
    api::ContainerUpdate& update = *request.add_update();
    update.set_container_id(id);
    *update.mutable_linux()->mutable_resources() = resources;
    stage_.OnUpdateContainers(plugin_, request, [](const auto&) {});
  }
  // Starts the creation of a container in this pod, and returns the decision.
  Status Create(const std::string& pod) {
    Call create(pipeline_, Operation::kCreateContainer);
    create.request.pod_id = PodSandboxId(pod);
    create.request.body = CreateRequest{.pod_id = PodSandboxId(pod), .name = "main"};
    create.Start();
    runtime_.Answer();
    return create.decided.value_or(Internal("undecided"));
  }
  // Marks all containers as told, as connected plugins do.
  void TellAll() { view_.All(/*real_ids=*/false); }

  const TempDir dir_;
  EventLoop loop_;
  ManualClock clock_;
  test::FakeAccess runtime_;
  std::vector<std::string> told_;
  test::FunctionPort plugin_{"10-a", told_};
  Inventory inventory_{clock_, runtime_};
  Pipeline pipeline_{clock_};
  Metrics metrics_{"1", {}};
  NriStage stage_{{.loop = loop_,
                   .runtime = runtime_,
                   .inventory = inventory_,
                   .pipeline = pipeline_,
                   .metrics = &metrics_},
                  {.profile_directory = dir_.File("profiles")}};
  HostView& view_ = stage_.view();
  std::vector<PluginPort::Answered> held_;
};

TEST_F(NriStageTest, LearnsWhatTheRuntimeHas) {
  HavePod("p");
  HaveContainer("p", "one");
  HaveContainer("p", "two");
  HaveContainer("gone", "orphan");
  EXPECT_FALSE(inventory_.ready());
  Refresh();
  EXPECT_TRUE(inventory_.ready());
  EXPECT_THAT(Containers(), UnorderedElementsAre("one", "two"));
  EXPECT_NE(view_.Find("id-one"), nullptr);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(NriStageTest, PluginsAreToldWhatEndedMeanwhile) {
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
  EXPECT_EQ(view_.FindPod("q"), nullptr);
  EXPECT_THAT(Containers(), IsEmpty());
}

// Records that are added while the runtime is asked are not in its answer, and stay.
TEST_F(NriStageTest, WhatComesWhileItAsksStays) {
  HavePod("p");
  Refresh();
  inventory_.Refresh();
  const HostPodPtr pod = view_.FindPod("p");
  api::Container message;
  message.set_name("new");
  const HostContainerPtr container = view_.Begin(pod, message, 0);
  view_.SetId(container, ContainerId("id-new"));
  const HostContainerPtr creating = view_.Begin(pod, message, 1);
  runtime_.Answer();
  EXPECT_THAT(Containers(), SizeIs(2));
  EXPECT_EQ(view_.Find("id-new"), container);
}

// The reply is lost or under way, but the runtime has the container.
TEST_F(NriStageTest, ACreationThatTheRuntimeHasEndedIsKnownByItsId) {
  HavePod("p");
  Refresh();
  api::Container message;
  message.set_name("main");
  const HostContainerPtr container = view_.Begin(view_.FindPod("p"), message, 0);
  HaveContainer("p", "main");
  Refresh();
  EXPECT_EQ(view_.Find("id-main"), container);
  EXPECT_FALSE(container->creating());
  EXPECT_THAT(Containers(), ElementsAre("main"));
}

// A plugin that connects then does not hear of the removal, so it is not shown the container.
TEST_F(NriStageTest, WhatIsBeingRemovedIsNotShown) {
  HavePod("p");
  HavePod("q");
  HaveContainer("p", "main");
  Refresh();
  TellAll();
  std::vector<std::function<void()>> answers;
  plugin_.notify = [&](const api::StateChangeEvent&, PluginPort::Answered done) {
    answers.emplace_back([done = std::move(done)] { done(OkStatus()); });
  };
  const auto shown = [this] {
    api::SynchronizeRequest request;
    EXPECT_TRUE(request.ParseFromString(*view_.All(/*real_ids=*/false)->messages[0]));
    return std::pair(request.pods_size(), request.containers_size());
  };
  const SharedSyncMessages held = view_.All(/*real_ids=*/false);
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

TEST_F(NriStageTest, AListThatIsOlderThanAStopDoesNotUndoIt) {
  TellMain();
  inventory_.Refresh();
  inventory_.OnEvent({.kind = ContainerEvent::Kind::kStopped, .id = "id-main"});
  runtime_.AnswerLatest();
  const HostContainerPtr container = view_.Find("id-main");
  EXPECT_EQ(container->message->state(), api::CONTAINER_STOPPED);
  runtime_.Answer();
  EXPECT_EQ(container->message->state(), api::CONTAINER_STOPPED);
  EXPECT_EQ(view_.All(/*real_ids=*/false)->messages.size(), 1u);

  // A container that was started again runs.
  runtime_.everything->containers[0].started_at = 7;
  Refresh();
  EXPECT_EQ(container->message->state(), api::CONTAINER_RUNNING);
}

// The event of a removal may come before the reply.
TEST_F(NriStageTest, PluginsAreToldOfARemovalBeforeTheClientHasTheReply) {
  constexpr int kNotFound = 5;
  TellMain();
  HoldEvents();
  {
    const auto stop = Start(Operation::kStopContainer, "id-main");
    inventory_.OnEvent({.kind = ContainerEvent::Kind::kDeleted, .id = "id-main"});
    stop->Reply(kNotFound);
    AnswerEvents(*stop);
    EXPECT_TRUE(stop->reply_seen);
  }
  {
    const auto remove = Start(Operation::kRemovePodSandbox, "p");
    inventory_.OnEvent({.kind = ContainerEvent::Kind::kDeleted, .id = "p"});
    remove->Reply(0);
    AnswerEvents(*remove);
    EXPECT_TRUE(remove->reply_seen);
  }
}

NriStageOptions RequiringPlugin(const std::string& name) {
  NriStageOptions options;
  options.required = {name};
  options.validator = NriValidatorConfig{.tolerate_missing_annotation = "tolerate"};
  return options;
}

// Such a plugin acts on pods, for example.
TEST_F(NriStageTest, ARequiredPluginNeedNotBeAskedAboutCreations) {
  stage_.Configure(RequiringPlugin("10-a"));
  HavePod("p");
  Refresh();
  plugin_.wants = [](api::Event event) { return event == api::EVENT_RUN_POD_SANDBOX; };
  EXPECT_EQ(Create("p"), OkStatus());
}

// Several runtimes may have different images of this name.
TEST_F(NriStageTest, TheRuntimeOfThePodIsAskedForTheImage) {
  HavePod("p");
  Refresh();
  Call create(pipeline_, Operation::kCreateContainer);
  create.request.body = CreateRequest{.pod_id = PodSandboxId("p"), .name = "main"};
  create.details.image = "web:1";
  create.Start();
  EXPECT_EQ(runtime_.asked.back(), "image web:1 of p");
  runtime_.Answer();
  EXPECT_TRUE(create.passed());
}

TEST_F(NriStageTest, APodMayRunWithoutRequiredPlugins) {
  stage_.Configure(RequiringPlugin("20-missing"));
  HavePod("strict");
  HavePod("tolerant");
  runtime_.everything->sandboxes.back().pod.annotations = {{"tolerate", "true"}};
  Refresh();
  EXPECT_EQ(Create("tolerant"), OkStatus());
  EXPECT_EQ(Create("strict").code(), StatusCode::kUnavailable);
}

TEST_F(NriStageTest, APodMayRunWithoutTheAnswersOfRequiredPlugins) {
  stage_.Configure(RequiringPlugin("10-a"));
  plugin_.settings_of.required = true;
  const auto late = [](const auto&, const auto& done) { done(DeadlineExceeded("late")); };
  plugin_.create = late;
  plugin_.update = late;
  HavePod("strict");
  HavePod("tolerant");
  runtime_.everything->sandboxes.back().pod.annotations = {{"tolerate", "true"}};
  HaveContainer("strict", "one");
  HaveContainer("tolerant", "two");
  Refresh();
  EXPECT_EQ(Create("tolerant"), OkStatus());
  EXPECT_EQ(Create("strict").code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(prometheus::TextSerializer().Serialize(metrics_.collectable()->Collect()),
              testing::HasSubstr(R"(cri_resmgr_ignored_failures_total{stage="nri"} 1)"));
  const auto updated = [this](const std::string& id) {
    const auto update = MakeUpdate(id, {.cpu_shares = 512});
    update->Start();
    return update->decided.value_or(Internal("undecided"));
  };
  EXPECT_EQ(updated("id-two"), OkStatus());
  EXPECT_EQ(updated("id-one").code(), StatusCode::kDeadlineExceeded);
  plugin_.create = [](const auto&, const auto& done) { done(FailedPrecondition("no")); };
  EXPECT_EQ(Create("tolerant").code(), StatusCode::kFailedPrecondition) << "its refusals count";
}

// NRI has unsigned numbers where the runtime's API has signed ones.
TEST_F(NriStageTest, AnUpdateWithNumbersThatAreTooLargeFails) {
  HaveMain();
  Refresh();
  api::UpdateContainersRequest request;
  api::ContainerUpdate& update = *request.add_update();
  update.set_container_id("id-main");
  update.mutable_linux()->mutable_resources()->mutable_cpu()->mutable_shares()->set_value(
      uint64_t{1} << 63);
  size_t failed = 0;
  stage_.OnUpdateContainers(plugin_, request, [&failed](const auto& all) { failed = all.size(); });
  EXPECT_EQ(failed, 1u);
  EXPECT_THAT(runtime_.changes, IsEmpty());
}

TEST_F(NriStageTest, PluginsSeeWhereThePolicyHasMovedContainers) {
  HaveMain().container.resources = {.cpu_shares = 512, .cpuset_cpus = "0-7"};
  Refresh();
  inventory_.SetValues(ContainerId("id-main"), {.cpus = CpuSet{0, 2, 3}, .cpu_quota = -1});
  inventory_.SetValues(ContainerId("id-main"), {.cpus = CpuSet{0, 2}});
  api::SynchronizeRequest all;
  ASSERT_TRUE(all.ParseFromString(*view_.All(/*real_ids=*/false)->messages[0]));
  const api::LinuxCPU& cpu = all.containers(0).linux().resources().cpu();
  EXPECT_EQ(cpu.cpus(), "0,2");
  EXPECT_EQ(cpu.quota().value(), -1);
  EXPECT_EQ(cpu.shares().value(), 512u);
}

// Docker starts containers again that have ended.
TEST_F(NriStageTest, EachStopOfAContainerThatIsStartedAgainIsTold) {
  TellMain();
  const auto call = [this](Operation operation) {
    const auto made = Start(operation, "id-main");
    made->Reply(0);
    runtime_.Answer();
    EXPECT_TRUE(made->reply_seen);
  };
  call(Operation::kStopContainer);
  EXPECT_THAT(told_, ElementsAre("10-a Stop main"));
  told_.clear();
  call(Operation::kStartContainer);
  EXPECT_THAT(told_, ElementsAre("10-a START_CONTAINER main", "10-a POST_START_CONTAINER main"));
  EXPECT_EQ(view_.Find("id-main")->message->state(), api::CONTAINER_RUNNING);
  told_.clear();
  call(Operation::kStopContainer);
  call(Operation::kStopContainer);
  EXPECT_THAT(told_, ElementsAre("10-a Stop main"));
}

// A restart stops the container, too, and the event of this may come before the reply.
TEST_F(NriStageTest, AContainerRunsAfterARestart) {
  TellMain();
  const auto restart = Start(Operation::kStartContainer, "id-main");
  inventory_.OnEvent({.kind = ContainerEvent::Kind::kStopped, .id = "id-main"});
  restart->Reply(0);
  while (!restart->reply_seen)
    runtime_.Answer();
  EXPECT_THAT(told_, ElementsAre("10-a Stop main", "10-a START_CONTAINER main",
                                 "10-a POST_START_CONTAINER main"));
  EXPECT_EQ(view_.Find("id-main")->message->state(), api::CONTAINER_RUNNING);
}

// The event comes by another connection than the reply, and may come after it.
TEST_F(NriStageTest, ALateEventOfARestartsStopDoesNotStopTheContainer) {
  ContainerFacts& facts = HaveMain();
  facts.started_at = 7;
  facts.pid = 70;
  Refresh();
  TellAll();
  const auto restart = Start(Operation::kStartContainer, "id-main");
  facts.started_at = 8;
  facts.pid = 80;
  restart->Reply(0);
  inventory_.OnEvent({.kind = ContainerEvent::Kind::kStopped, .id = "id-main"});
  for (int i = 0; i < 3; ++i)
    runtime_.Answer();
  EXPECT_TRUE(restart->reply_seen);
  EXPECT_EQ(view_.Find("id-main")->message->state(), api::CONTAINER_RUNNING);
  EXPECT_THAT(told_, ElementsAre("10-a START_CONTAINER main", "10-a POST_START_CONTAINER main"));
  // Now it ends.
  facts.container.state = ContainerState::kExited;
  facts.pid = 0;
  inventory_.OnEvent({.kind = ContainerEvent::Kind::kStopped, .id = "id-main"});
  runtime_.Answer();
  EXPECT_EQ(view_.Find("id-main")->message->state(), api::CONTAINER_STOPPED);
  EXPECT_EQ(told_.back(), "10-a Stop main");
}

// Docker accepts it, and does nothing.
TEST_F(NriStageTest, AStartOfAContainerThatRunsIsNotTold) {
  ContainerFacts& facts = HaveMain();
  facts.started_at = 7;
  Refresh();
  TellAll();
  const auto start = [this] {
    const auto call = Start(Operation::kStartContainer, "id-main");
    call->Reply(0);
    runtime_.Answer();
    EXPECT_TRUE(call->reply_seen);
  };
  start();
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(view_.Find("id-main")->message->state(), api::CONTAINER_RUNNING);
  facts.started_at = 8;  // a restart
  start();
  EXPECT_THAT(told_, ElementsAre("10-a START_CONTAINER main", "10-a POST_START_CONTAINER main"));
}

// Docker's restart policies start containers again without a call of a client.
TEST_F(NriStageTest, AContainerThatTheRuntimeStartsAgainRuns) {
  ContainerFacts& facts = HaveMain();
  facts.started_at = 7;
  facts.pid = 70;
  Refresh();
  TellAll();
  const auto happened = [this](ContainerEvent::Kind kind) {
    inventory_.OnEvent({.kind = kind, .id = "id-main"});
  };
  const auto state = [this] { return view_.Find("id-main")->message->state(); };
  facts.pid = 0;  // dockerd waits before it starts the container again
  happened(ContainerEvent::Kind::kStopped);
  runtime_.Answer();
  EXPECT_EQ(state(), api::CONTAINER_STOPPED);
  facts.started_at = 8;
  facts.pid = 80;
  happened(ContainerEvent::Kind::kStarted);
  runtime_.Answer();
  EXPECT_EQ(state(), api::CONTAINER_RUNNING);
  EXPECT_EQ(view_.Find("id-main")->message->pid(), 80u);
  const std::vector<std::string> life = {"10-a Stop main", "10-a START_CONTAINER main",
                                         "10-a POST_START_CONTAINER main"};
  EXPECT_EQ(std::exchange(told_, {}), life);

  // The events are seen after the start.
  facts.started_at = 9;
  happened(ContainerEvent::Kind::kStopped);
  happened(ContainerEvent::Kind::kStarted);
  for (int i = 0; i < 3; ++i)
    runtime_.Answer();
  EXPECT_EQ(state(), api::CONTAINER_RUNNING);
  EXPECT_EQ(std::exchange(told_, {}), life);

  // A list alone shows the start.
  happened(ContainerEvent::Kind::kStopped);
  facts.container.state = ContainerState::kExited;
  runtime_.Answer();
  facts.container.state = ContainerState::kRunning;
  facts.started_at = 10;
  Refresh();
  EXPECT_EQ(state(), api::CONTAINER_RUNNING);
  EXPECT_EQ(std::exchange(told_, {}), life);

  // The end was missed, too: dockerd itself was restarted.
  facts.started_at = 11;
  Refresh();
  Refresh();
  EXPECT_EQ(state(), api::CONTAINER_RUNNING);
  EXPECT_EQ(told_, life);
}

TEST_F(NriStageTest, AStartByAClientIsToldOnce) {
  HavePod("p");
  HaveContainer("p", "main", ContainerState::kExited);
  ContainerFacts& facts = runtime_.everything->containers[0];
  facts.started_at = 7;
  Refresh();
  const auto start = Start(Operation::kStartContainer, "id-main");
  facts.container.state = ContainerState::kRunning;
  facts.started_at = 8;
  facts.pid = 80;
  inventory_.OnEvent({.kind = ContainerEvent::Kind::kStarted, .id = "id-main"});
  start->Reply(0);
  for (int i = 0; i < 3; ++i)
    runtime_.Answer();
  inventory_.OnEvent({.kind = ContainerEvent::Kind::kStarted, .id = "id-main"});
  EXPECT_TRUE(start->reply_seen);
  EXPECT_THAT(told_, ElementsAre("10-a START_CONTAINER main", "10-a POST_START_CONTAINER main"));
}

// Kubelets send limits of swap and files of cgroup v2 in resizes, too. A later update by a plugin
// sends all known values.
TEST_F(NriStageTest, AnUpdateIsKnownWithSwapAndFiles) {
  HaveMain();
  Refresh();
  api::LinuxResources shown;
  plugin_.update = [&shown](const api::UpdateContainerRequest& request,
                            const PluginPort::Done<api::UpdateContainerResponse>& done) {
    shown = request.linux_resources();
    done(api::UpdateContainerResponse());
  };
  auto update = MakeUpdate("id-main", {.memory_limit = 2000});
  update->details.memory_swap_limit = 3000;
  update->details.unified.Set("memory.high", "1800");
  update = Passed(std::move(update));
  EXPECT_EQ(shown.memory().limit().value(), 2000);
  EXPECT_EQ(shown.memory().swap().value(), 3000);
  EXPECT_EQ(shown.unified().at("memory.high"), "1800");
  update->Reply(0);
  api::LinuxResources shares;
  shares.mutable_cpu()->mutable_shares()->set_value(512);
  Want("id-main", shares);
  ASSERT_THAT(runtime_.changes, SizeIs(1));
  EXPECT_EQ(runtime_.changes[0].resources.memory_limit, 2000);
  EXPECT_EQ(runtime_.changes[0].memory_swap_limit, 3000);
  EXPECT_EQ(runtime_.changes[0].unified, (StringMap{{"memory.high", "1800"}}));
  runtime_.Answer();
}

// The plugin sees what former stages have changed, and it is not undone later.
TEST_F(NriStageTest, AnUpdateIsKnownWithTheChangesOfFormerStages) {
  resmgr::test::FunctionStage former({.name = "former",
                                      .rank = StageRank::kHookServers,
                                      .operations = {Operation::kUpdateContainerResources}},
                                     [](auto& call, Request&, const Adjustment&) {
                                       Adjustment adjustment;
                                       adjustment.Wide().memory_limit = 1000;
                                       adjustment.Wide().unified.Set("memory.high", "900");
                                       call.Adjust(std::move(adjustment));
                                     });
  pipeline_.Add(former);
  HaveMain();
  Refresh();
  const auto update = Resize(2000);
  update->Reply(0);
  const api::LinuxResources& known = view_.Find("id-main")->message->linux().resources();
  EXPECT_EQ(known.memory().limit().value(), 1000);
  EXPECT_EQ(known.unified().at("memory.high"), "900");
  pipeline_.Remove(former);
}

// An update sends all known values, which must not undo an update that the runtime has not answered
// yet.
TEST_F(NriStageTest, UpdatesAtTheSameTimeDoNotUndoEachOther) {
  HaveMain();
  Refresh();
  api::LinuxResources limit;
  limit.mutable_memory()->mutable_limit()->set_value(1000);
  Want("id-main", limit);
  api::LinuxResources file;
  (*file.mutable_unified())["memory.high"] = "900";
  Want("id-main", file);
  ASSERT_THAT(runtime_.changes, SizeIs(2));
  EXPECT_EQ(runtime_.changes[1].resources.memory_limit, 1000);
  runtime_.Answer();

  const auto update = Resize(2000);
  Want("id-main", file);
  ASSERT_THAT(runtime_.changes, SizeIs(3));
  EXPECT_EQ(runtime_.changes[2].resources.memory_limit, 2000);
  // The runtime refuses the client's update: the value before is in force.
  update->Reply(2);
  Want("id-main", file);
  EXPECT_EQ(runtime_.changes[3].resources.memory_limit, 1000);
  runtime_.Answer();
}

// The runtime may have carried out the update or not.
class UnclearUpdatesTest : public NriStageTest {
 protected:
  static constexpr int kUnavailable = 14;

  UnclearUpdatesTest() {
    HaveMain();
    SetLimit(1000);
    Refresh();
  }
  // The runtime reports this memory limit.
  void SetLimit(int64_t bytes) {
    runtime_.everything->containers[0].container.resources.memory_limit = bytes;
  }
  void WantLimit(uint64_t bytes) {
    api::LinuxResources limit;
    limit.mutable_memory()->mutable_limit()->set_value(static_cast<int64_t>(bytes));
    Want("id-main", limit);
  }
  // The list after the unclear outcome.
  void List() {
    clock_.Advance(std::chrono::milliseconds(0));
    runtime_.Answer();
  }
  // The memory limit that goes to the runtime with a plugin's next update of other values.
  std::optional<int64_t> SentLimit() {
    api::LinuxResources shares;
    shares.mutable_cpu()->mutable_shares()->set_value(512);
    Want("id-main", shares);
    const auto sent = runtime_.changes.back().resources.memory_limit;
    runtime_.Answer();
    return sent;
  }
};

TEST_F(UnclearUpdatesTest, AClientsUpdateThatTookEffectIsNotUndone) {
  Resize(2000)->Reply(kUnavailable);
  EXPECT_EQ(SentLimit(), 2000) << "it is not known yet";
  SetLimit(2000);
  List();
  EXPECT_EQ(SentLimit(), 2000);
}

TEST_F(UnclearUpdatesTest, AClientsUpdateWithoutEffectIsForgotten) {
  Resize(2000)->Reply(kUnavailable);
  List();
  EXPECT_EQ(SentLimit(), 1000);
}

TEST_F(UnclearUpdatesTest, APluginsUpdateThatTookEffectIsNotUndone) {
  runtime_.updated = Unavailable("the connection is lost");
  WantLimit(2000);
  SetLimit(2000);
  runtime_.Answer();
  runtime_.updated = OkStatus();
  EXPECT_EQ(SentLimit(), 2000);
  List();
  EXPECT_EQ(SentLimit(), 2000);
}

TEST_F(UnclearUpdatesTest, AListThatIsOlderDoesNotCount) {
  inventory_.Refresh();
  Resize(2000)->Reply(kUnavailable);
  runtime_.Answer();
  EXPECT_EQ(SentLimit(), 2000);
  SetLimit(2000);
  List();
  EXPECT_EQ(SentLimit(), 2000);
}

// The list may have the values before or after that update.
TEST_F(UnclearUpdatesTest, AListDuringAnotherUpdateDoesNotCount) {
  Resize(2000)->Reply(kUnavailable);
  clock_.Advance(std::chrono::milliseconds(0));
  Resize(3000)->Reply(0);
  runtime_.Answer();
  EXPECT_EQ(SentLimit(), 3000);
  SetLimit(3000);
  List();
  EXPECT_EQ(SentLimit(), 3000);
}

}  // namespace
}  // namespace resmgr::nri
