// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/plugin_front.h"

#include <chrono>
#include <functional>
#include <map>
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
#include "pkg/nri/testing/fake_host.h"
#include "pkg/pipeline/hint_finder.h"
#include "pkg/pipeline/policy_stage.h"
#include "pkg/pipeline/testing/function_stage.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/clock.h"
#include "test/support/machines/machines.h"
#include "test/support/wait.h"

namespace resmgr::nri {
namespace {

using resmgr::test::FirstFitPolicy;
using resmgr::test::FunctionStage;
using resmgr::test::RunFor;
using resmgr::test::TestNode;
using test::FakeHost;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
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

api::PodSandbox PodOf(const std::string& name, bool guaranteed) {
  api::PodSandbox pod;
  pod.set_id("pod-" + name);
  pod.set_name(name);
  pod.set_namespace_("ns");
  pod.set_uid("uid-" + name);
  pod.mutable_linux()->set_cgroup_parent(std::string("/kubepods/") +
                                         (guaranteed ? "" : "burstable/") + "poduid-" + name);
  return pod;
}

api::LinuxResources ResourcesOf(int64_t milli_cpu) {
  api::LinuxResources resources;
  AddTo(ResourceValues{.cpu_shares = milli_cpu * 1024 / 1000,
                       .cpu_quota = milli_cpu * 100,
                       .cpu_period = 100'000},
        resources);
  return resources;
}

template <typename Request>
Request About(const std::string& name, bool guaranteed, int64_t milli_cpu) {
  Request request;
  *request.mutable_pod() = PodOf(name, guaranteed);
  api::Container& container = *request.mutable_container();
  container.set_id("id-" + name);
  container.set_pod_sandbox_id("pod-" + name);
  container.set_name(name);
  *container.mutable_linux()->mutable_resources() = ResourcesOf(milli_cpu);
  return request;
}

// The updates of an answer as "id-web 0,2-7".
template <typename Updates>
std::vector<std::string> Told(const Updates& updates) {
  std::vector<std::string> told;
  for (const api::ContainerUpdate& update : updates)
    told.push_back(update.container_id() + " " + update.linux().resources().cpu().cpus());
  return told;
}

// Other programs have set nothing, which a look at the cgroups finds after a while, or never.
class SlowLook final : public ValuesOfOthers {
 public:
  explicit SlowLook(EventLoop& loop) : loop_(loop) {}
  void Look(std::vector<Subject> subjects, std::function<void(Found)> done) override {
    if (hangs) return;
    looks_.push_back(loop_.After(std::chrono::milliseconds(20),
                                 [size = subjects.size(), done] { done(Found(size)); }));
  }

  bool hangs = false;

 private:
  EventLoop& loop_;
  std::vector<EventLoop::HandlePtr> looks_;
};

class PluginFrontTest : public testing::Test {
 protected:
  explicit PluginFrontTest(UpdateQueue::ByCri by_cri = {}, bool looks = false,
                           std::chrono::milliseconds refresh_pause = std::chrono::minutes(1))
      : by_cri_(std::move(by_cri)), looks_(looks), refresh_pause_(refresh_pause) {
    pipeline_.SetPolicyStage(&stage_);
    front_.StartOn(std::move(sockets_.theirs));
  }

  // Synchronizes the plugin with a container "web" that shares all CPUs, unless it is left out.
  void Synchronize(bool with_web = true) {
    ASSERT_TRUE(host_.Configure(test::Containerd("1.7.24")).ok());
    api::SynchronizeRequest all;
    if (with_web) {
      const auto web = About<api::CreateContainerRequest>("web", false, 100);
      *all.add_pods() = web.pod();
      *all.add_containers() = web.container();
      all.mutable_containers(0)->set_state(api::CONTAINER_RUNNING);
    }
    ASSERT_TRUE(host_.Synchronize(all).ok());
    ASSERT_TRUE(RunUntil(loop_, [&] { return manager_.synchronizer().ready(); }));
    ASSERT_TRUE(RunUntil(loop_, [&] { return !with_web || !host_.updates.empty(); }));
    host_.updates.clear();
  }
  StatusOr<api::CreateContainerResponse> Create(const std::string& name, bool guaranteed,
                                                int64_t milli_cpu) {
    return host_.Call<api::CreateContainerResponse>(
        "CreateContainer", About<api::CreateContainerRequest>(name, guaranteed, milli_cpu));
  }

  StatusOr<api::Empty> Tell(api::Event kind, api::StateChangeEvent event) {
    event.set_event(kind);
    return host_.Call<api::Empty>("StateChange", event);
  }
  StatusOr<api::Empty> Tell(api::Event kind, const std::string& name, bool guaranteed,
                            int64_t milli_cpu) {
    return Tell(kind, About<api::StateChangeEvent>(name, guaranteed, milli_cpu));
  }

  // The state that the resource manager knows; nullopt: it does not know the container.
  std::optional<ContainerState> StateOf(const std::string& name) {
    std::optional<ContainerState> state;
    manager_.snapshot().ForEachContainer([&](const Pod&, const Container& container) {
      if (container.name == name) state = container.state;
    });
    return state;
  }

  static constexpr std::chrono::milliseconds kPatience{300};
  static constexpr std::chrono::milliseconds kUpdatesPatience{400};

  EventLoop loop_;
  const UpdateQueue::ByCri by_cri_;
  const bool looks_;
  const std::chrono::milliseconds refresh_pause_;
  SlowLook look_{loop_};
  const Machine machine_ = resmgr::test::S1Ht();  // CPUs 0-7
  LoopClock clock_{loop_};
  Pipeline pipeline_{clock_};
  HintFinder hints_{loop_, {}};
  ttrpc::test::SocketPair sockets_;
  const int host_fd_ = sockets_.ours.get();
  FakeHost host_{loop_, std::move(sockets_.ours)};
  PluginFront front_{
      loop_,
      pipeline_,
      {.connection = {},
       .patience = kPatience,
       .updates_patience = kUpdatesPatience,
       .by_cri = by_cri_},
      {.connected = [this] { manager_.RuntimeConnected(); },
       .disconnected = [this] { manager_.RuntimeDisconnected(); },
       .happened = [this](const ContainerEvent& event) { manager_.OnContainerEvent(event); },
       .doubtful = [this](const ContainerId& id) { manager_.SendAgain(id); }}};
  ResourceManager::Options Options() {
    ResourceManager::Options options = TestNode::FastOptions();
    // The runtime reports everything: no refusal waits for a list.
    options.refresh_pause = refresh_pause_;
    if (looks_) options.others = &look_;
    return options;
  }
  ResourceManager manager_{loop_,  machine_, std::make_unique<FirstFitPolicy>(machine_),
                           front_, nullptr,  Options()};
  PolicyStage stage_{manager_, hints_, [this] { return front_.EnsureConnected(); }};
};

TEST_F(PluginFrontTest, OthersLeaveTheCpusInTheSameAnswer) {
  Synchronize();
  const auto created = Create("dsp", true, 1000);
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->adjust().linux().resources().cpu().cpus(), "1");
  EXPECT_THAT(Told(created->update()), ElementsAre("id-web 0,2-7"));
  EXPECT_TRUE(created->update(0).ignore_failure());
  EXPECT_THAT(host_.updates, IsEmpty());

  ASSERT_TRUE(Tell(api::EVENT_START_CONTAINER, "dsp", true, 1000).ok());
  const auto stopped = host_.Call<api::StopContainerResponse>(
      "StopContainer", About<api::StopContainerRequest>("dsp", true, 1000));
  ASSERT_TRUE(stopped.ok());
  EXPECT_THAT(Told(stopped->update()), ElementsAre("id-web 0-7"));
}

// Before each update the brain looks for values that other programs have set.
class PluginFrontThatLooksTest : public PluginFrontTest {
 protected:
  PluginFrontThatLooksTest() : PluginFrontTest({}, true) {}
};

TEST_F(PluginFrontThatLooksTest, OthersLeaveTheCpusInTheSameAnswer) {
  Synchronize();
  const auto created = Create("dsp", true, 1000);
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->adjust().linux().resources().cpu().cpus(), "1");
  EXPECT_THAT(Told(created->update()), ElementsAre("id-web 0,2-7"));
  EXPECT_THAT(host_.updates, IsEmpty());

  auto resize = About<api::UpdateContainerRequest>("dsp", true, 1000);
  *resize.mutable_linux_resources() = ResourcesOf(2000);
  const auto resized = host_.Call<api::UpdateContainerResponse>("UpdateContainer", resize);
  ASSERT_TRUE(resized.ok()) << resized.status();
  EXPECT_THAT(Told(resized->update()), ElementsAre("id-dsp 1-2", "id-web 0,3-7"));

  ASSERT_TRUE(Tell(api::EVENT_START_CONTAINER, "dsp", true, 2000).ok());
  const auto stopped = host_.Call<api::StopContainerResponse>(
      "StopContainer", About<api::StopContainerRequest>("dsp", true, 2000));
  ASSERT_TRUE(stopped.ok());
  EXPECT_THAT(Told(stopped->update()), ElementsAre("id-web 0-7"));
}

TEST_F(PluginFrontThatLooksTest, AnAnswerDoesNotWaitForUpdatesThatDoNotCome) {
  Synchronize();
  look_.hangs = true;
  const auto created = Create("dsp", true, 1000);
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->adjust().linux().resources().cpu().cpus(), "1");
  EXPECT_THAT(created->update(), IsEmpty());
}

// The look ends after the answer was given up.
TEST_F(PluginFrontThatLooksTest, AnAnswerThatWaitsEndsWithTheConnection) {
  Synchronize();
  const auto leaves =
      loop_.After(std::chrono::milliseconds(5), [this] { ::shutdown(host_fd_, SHUT_RDWR); });
  EXPECT_FALSE(Create("dsp", true, 1000).ok());
  ASSERT_TRUE(RunUntil(loop_, [this] { return !front_.EnsureConnected().ok(); }));
  bool later = false;
  const auto wait = loop_.After(2 * kUpdatesPatience, [&later] { later = true; });
  ASSERT_TRUE(RunUntil(loop_, [&later] { return later; }));
  EXPECT_EQ(front_.pending(), 0U);
}

// The test answers the calls of the runtime's CRI.
class PluginFrontWithCriTest : public PluginFrontTest {
 protected:
  struct Asked {
    std::string id;
    ResourceValues values;
    std::function<void(Status)> done;
  };
  PluginFrontWithCriTest()
      : PluginFrontTest([this](const ContainerId& id, const ResourceValues& values,
                               std::function<void(Status)> done) {
          asked_.push_back({std::string(id.value()), values, std::move(done)});
        }) {}
  // Synchronizes with the container "web", for which the runtime is asked to share all CPUs.
  void SynchronizeWith(const std::string& version, const std::string& nri_version = "") {
    ASSERT_TRUE(host_.Configure(test::Containerd(version, nri_version)).ok());
    api::SynchronizeRequest all;
    const auto web = About<api::CreateContainerRequest>("web", false, 100);
    *all.add_pods() = web.pod();
    *all.add_containers() = web.container();
    all.mutable_containers(0)->set_state(api::CONTAINER_RUNNING);
    ASSERT_TRUE(host_.Synchronize(all).ok());
    ASSERT_TRUE(RunUntil(loop_, [&] { return !asked_.empty() || !host_.updates.empty(); }));
  }
  // The event by which the runtime shows the first update that its CRI was asked for.
  api::UpdateContainerRequest Shown() {
    auto shown = About<api::UpdateContainerRequest>("web", false, 0);
    shown.clear_linux_resources();
    AddTo(asked_.front().values, *shown.mutable_linux_resources());
    return shown;
  }

  std::vector<Asked> asked_;
};

TEST_F(PluginFrontWithCriTest, RuntimesWithAnOldNriAreAskedByTheirCri) {
  SynchronizeWith("1.7.24");
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].id, "id-web");
  EXPECT_EQ(asked_[0].values.cpus, (CpuSet{0, 1, 2, 3, 4, 5, 6, 7}));
  // The runtime shows it to its plugins before it answers. It does not count as the kubelet's wish.
  const auto shown = host_.Call<api::UpdateContainerResponse>("UpdateContainer", Shown());
  ASSERT_TRUE(shown.ok()) << shown.status();
  EXPECT_EQ(shown->update_size(), 0);
  const auto wish = host_.Call<api::UpdateContainerResponse>("UpdateContainer", Shown());
  ASSERT_TRUE(wish.ok()) << wish.status();
  EXPECT_THAT(Told(wish->update()), ElementsAre("id-web 0-7")) << "the second one is";
  asked_[0].done(OkStatus());
  EXPECT_THAT(host_.updates, IsEmpty());
  // The kubelet, which asks for the same update now, gets an answer.
  const auto resized = host_.Call<api::UpdateContainerResponse>("UpdateContainer", Shown());
  ASSERT_TRUE(resized.ok()) << resized.status();
  EXPECT_THAT(Told(resized->update()), ElementsAre("id-web 0-7"));
}

TEST_F(PluginFrontWithCriTest, AnOwnUpdateThatAnotherPluginHasChangedIsNoWish) {
  SynchronizeWith("1.7.24");
  ASSERT_EQ(asked_.size(), 1u);
  auto changed = Shown();
  changed.mutable_linux_resources()->mutable_memory()->mutable_limit()->set_value(1 << 30);
  changed.mutable_linux_resources()->mutable_cpu()->mutable_shares()->set_value(5);
  const auto shown = host_.Call<api::UpdateContainerResponse>("UpdateContainer", changed);
  ASSERT_TRUE(shown.ok()) << shown.status();
  EXPECT_EQ(shown->update_size(), 0);
}

TEST_F(PluginFrontWithCriTest, RuntimesWithAMendedNriAreAskedByIt) {
  SynchronizeWith("2.4.0", "v0.12.1");
  EXPECT_EQ(host_.updates.size(), 1u);
  EXPECT_THAT(asked_, IsEmpty());
}

// The CRI belongs to another runtime, or does not answer: containers must be moved anyway.
TEST_F(PluginFrontWithCriTest, WithoutTheCriOfTheRuntimeItIsAskedByNri) {
  SynchronizeWith("1.7.24");
  ASSERT_EQ(asked_.size(), 1u);
  asked_[0].done(NotFound("no such container"));
  ASSERT_TRUE(RunUntil(loop_, [&] { return !host_.updates.empty(); }));
  EXPECT_THAT(Told(host_.updates.back().update()), ElementsAre("id-web 0-7"));
  ASSERT_TRUE(Create("dsp", true, 1000).ok());
  host_.updates.clear();
  ASSERT_TRUE(Tell(api::EVENT_REMOVE_CONTAINER, "dsp", true, 1000).ok());
  ASSERT_TRUE(RunUntil(loop_, [&] { return asked_.size() == 2; })) << "it may be there now";
  asked_[1].done(OkStatus());
  EXPECT_THAT(host_.updates, IsEmpty());
}

// A starting runtime serves its NRI slightly before its CRI.
TEST_F(PluginFrontWithCriTest, ACriThatIsNotThereYetIsWaitedFor) {
  SynchronizeWith("1.7.24");
  ASSERT_EQ(asked_.size(), 1u);
  asked_[0].done(Unavailable("nothing listens"));
  ASSERT_TRUE(RunUntil(loop_, [&] { return asked_.size() == 2; }));
  EXPECT_EQ(asked_[1].id, "id-web");
  asked_[1].done(OkStatus());
  EXPECT_THAT(host_.updates, IsEmpty());
}

TEST_F(PluginFrontWithCriTest, ACriThatNeverComesIsGivenUp) {
  SynchronizeWith("1.7.24");
  size_t answered = 0;
  ASSERT_TRUE(RunUntil(loop_, [&] {
    for (; answered < asked_.size(); ++answered)
      asked_[answered].done(Unavailable("nothing listens"));
    return !host_.updates.empty();
  }));
  EXPECT_GT(answered, 5u);
  EXPECT_THAT(Told(host_.updates.back().update()), ElementsAre("id-web 0-7"));
}

TEST_F(PluginFrontWithCriTest, FailuresOfACriThatHasWorkedCount) {
  SynchronizeWith("1.7.24");
  ASSERT_EQ(asked_.size(), 1u);
  asked_[0].done(OkStatus());
  ASSERT_TRUE(Create("dsp", true, 1000).ok());
  ASSERT_TRUE(Tell(api::EVENT_REMOVE_CONTAINER, "dsp", true, 1000).ok());
  ASSERT_TRUE(RunUntil(loop_, [&] { return asked_.size() == 2; }));
  asked_[1].done(Unavailable("the runtime has closed its connection"));
  ASSERT_TRUE(RunUntil(loop_, [&] { return asked_.size() == 3; })) << "it is tried again";
  EXPECT_THAT(host_.updates, IsEmpty());
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
  auto resize = About<api::UpdateContainerRequest>("app", true, 500);
  *resize.mutable_linux_resources() = ResourcesOf(2000);
  const auto resized = host_.Call<api::UpdateContainerResponse>("UpdateContainer", resize);
  ASSERT_TRUE(resized.ok()) << resized.status();
  EXPECT_THAT(Told(resized->update()), ElementsAre("id-app 1-2"));
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
  auto resize = About<api::UpdateContainerRequest>("app", true, 1000);
  *resize.mutable_linux_resources() = ResourcesOf(2000);
  ASSERT_TRUE(host_.Call<api::UpdateContainerResponse>("UpdateContainer", resize).ok());
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
  ASSERT_TRUE(host_
                  .Call<api::StopContainerResponse>(
                      "StopContainer", About<api::StopContainerRequest>("init", true, 5000))
                  .ok());
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
  ASSERT_TRUE(host_.Call<api::UpdateContainerResponse>("UpdateContainer", resize).ok());
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
  ASSERT_TRUE(host_
                  .Call<api::StopContainerResponse>(
                      "StopContainer", About<api::StopContainerRequest>("stopped", false, 100))
                  .ok());
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
  const auto created = Create("dsp", true, 1000);
  ASSERT_TRUE(created.ok()) << created.status();
  ASSERT_EQ(created->adjust().env_size(), 2);
  EXPECT_EQ(created->adjust().env(0).key(), "REGION");
  EXPECT_EQ(created->adjust().env(0).value(), "north");
  EXPECT_EQ(created->adjust().env(1).key(), "-ZONE");
  EXPECT_EQ(created->adjust().linux().resources().cpu().cpus(), "1");
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
  const auto created = host_.Call<api::CreateContainerResponse>("CreateContainer", create);
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->adjust().linux().resources().cpu().cpus(), "1") << "nothing was left of it";
  EXPECT_EQ(created->adjust().linux().resources().unified_size(), 0);
  auto update = About<api::UpdateContainerRequest>("dsp", true, 1000);
  *update.mutable_linux_resources() = ResourcesOf(1000);
  (*update.mutable_linux_resources()->mutable_unified())["cpuset.cpus.partition"] = "root";
  EXPECT_FALSE(host_.Call<api::UpdateContainerResponse>("UpdateContainer", update).ok());
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
  const auto created = Create("dsp", true, 1000);
  ASSERT_TRUE(created.ok());
  EXPECT_THAT(Told(created->update()), ElementsAre("id-app 0,2-7"));
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
  const auto created = Create("dsp", true, 1000);
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->adjust().linux().resources().cpu().cpus(), "1");
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

TEST_F(PluginFrontTest, UpdatesThatAreAskedForTogetherAreAnsweredOneByOne) {
  Synchronize();
  ASSERT_TRUE(Create("api", false, 100).ok());
  const ContainerId web("id-web");
  const ContainerId none("id-none");
  const ContainerId api("id-api");
  const ResourceValues one{.cpus = CpuSet{1}};
  const ResourceValues two{.cpus = CpuSet{2}};
  std::map<size_t, StatusCode> told;
  const RuntimeClient::Update updates[] = {{.id = web, .adjustment = one},
                                           {.id = none, .adjustment = one},
                                           {.id = api, .adjustment = two}};
  front_.UpdateContainers(
      updates, [&told](size_t index, const Status& status) { told[index] = status.code(); });
  EXPECT_THAT(told, IsEmpty()) << "within the call";
  ASSERT_TRUE(RunUntil(loop_, [&] { return told.size() == 3; }));
  EXPECT_THAT(told, ElementsAre(Pair(0, StatusCode::kOk), Pair(1, StatusCode::kNotFound),
                                Pair(2, StatusCode::kInternal)))
      << "the runtime carries out the first one of a call";
  ASSERT_EQ(host_.updates.size(), 1U);
  EXPECT_THAT(Told(host_.updates[0].update()), ElementsAre("id-web 1", "id-api 2"));
}

// The runtime's error names no container, and it has carried out the updates of the others.
TEST_F(PluginFrontTest, AnUpdateThatFailsIsNotTheFailureOfOthers) {
  Synchronize();
  ASSERT_TRUE(Create("api", false, 100).ok());
  host_.broken = "id-api";
  const ContainerId web("id-web");
  const ContainerId api("id-api");
  const ResourceValues one{.cpus = CpuSet{1}};
  std::map<size_t, StatusCode> told;
  const RuntimeClient::Update updates[] = {{.id = web, .adjustment = one},
                                           {.id = api, .adjustment = one}};
  front_.UpdateContainers(
      updates, [&told](size_t index, const Status& status) { told[index] = status.code(); });
  ASSERT_TRUE(RunUntil(loop_, [&] { return told.size() == 2; }));
  EXPECT_THAT(told, ElementsAre(Pair(0, StatusCode::kOk), Pair(1, StatusCode::kUnknown)));
  ASSERT_EQ(host_.updates.size(), 3U);
  EXPECT_THAT(Told(host_.updates[0].update()), ElementsAre("id-web 1", "id-api 1"));
  EXPECT_THAT(Told(host_.updates[1].update()), ElementsAre("id-web 1"));
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
