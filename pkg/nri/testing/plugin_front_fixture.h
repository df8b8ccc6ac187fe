// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/nri/plugin_front.h"
#include "pkg/nri/testing/fake_host.h"
#include "pkg/pipeline/hint_finder.h"
#include "pkg/pipeline/policy_stage.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/clock.h"
#include "test/support/machines/machines.h"

namespace resmgr::nri::test {

inline api::PodSandbox PodOf(const std::string& name, bool guaranteed) {
  api::PodSandbox pod;
  pod.set_id("pod-" + name);
  pod.set_name(name);
  pod.set_namespace_("ns");
  pod.set_uid("uid-" + name);
  pod.mutable_linux()->set_cgroup_parent(std::string("/kubepods/") +
                                         (guaranteed ? "" : "burstable/") + "poduid-" + name);
  return pod;
}

inline api::LinuxResources ResourcesOf(int64_t milli_cpu) {
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

// A cgroup lookup that finds no values of other programs, after a while, or that hangs.
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

// A plugin of a runtime that the test plays, with a pipeline and a brain behind it.
class PluginFrontTest : public ::testing::Test {
 protected:
  explicit PluginFrontTest(UpdateQueue::ByCri by_cri = {}, bool looks = false,
                           std::chrono::milliseconds refresh_pause = std::chrono::minutes(1))
      : by_cri_(std::move(by_cri)), looks_(looks), refresh_pause_(refresh_pause) {
    pipeline_.SetPolicyStage(&stage_);
    front_.StartOn(std::move(sockets_.theirs));
  }

  // Synchronizes the plugin with a container "web" that shares all CPUs, unless it is left out.
  void Synchronize(bool with_web = true) {
    ASSERT_TRUE(host_.Configure(Containerd("1.7.24")).ok());
    api::SynchronizeRequest all;
    if (with_web) {
      const auto web = About<api::CreateContainerRequest>("web", false, 100);
      *all.add_pods() = web.pod();
      *all.add_containers() = web.container();
      all.mutable_containers(0)->set_state(api::CONTAINER_RUNNING);
    }
    ASSERT_TRUE(host_.Synchronize(all).ok());
    ASSERT_TRUE(ttrpc::test::RunUntil(loop_, [&] { return manager_.synchronizer().ready(); }));
    ASSERT_TRUE(ttrpc::test::RunUntil(loop_, [&] { return !with_web || !host_.updates.empty(); }));
    host_.updates.clear();
  }
  StatusOr<api::CreateContainerResponse> Create(const std::string& name, bool guaranteed,
                                                int64_t milli_cpu) {
    return host_.Call<api::CreateContainerResponse>(
        "CreateContainer", About<api::CreateContainerRequest>(name, guaranteed, milli_cpu));
  }

  StatusOr<api::UpdateContainerResponse> Update(const api::UpdateContainerRequest& update) {
    return host_.Call<api::UpdateContainerResponse>("UpdateContainer", update);
  }
  // The kubelet gives the container, which it created with this request, other CPUs.
  StatusOr<api::UpdateContainerResponse> Resize(const std::string& name, bool guaranteed,
                                                int64_t milli_cpu, int64_t to) {
    auto resize = About<api::UpdateContainerRequest>(name, guaranteed, milli_cpu);
    *resize.mutable_linux_resources() = ResourcesOf(to);
    return Update(resize);
  }
  StatusOr<api::StopContainerResponse> Stop(const std::string& name, bool guaranteed,
                                            int64_t milli_cpu) {
    return host_.Call<api::StopContainerResponse>(
        "StopContainer", About<api::StopContainerRequest>(name, guaranteed, milli_cpu));
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
    ResourceManager::Options options = resmgr::test::TestNode::FastOptions();
    // The runtime reports everything: no refusal waits for a list.
    options.refresh_pause = refresh_pause_;
    if (looks_) options.others = &look_;
    return options;
  }
  ResourceManager manager_{
      loop_,  machine_, std::make_unique<resmgr::test::FirstFitPolicy>(machine_),
      front_, nullptr,  Options()};
  PolicyStage stage_{manager_, hints_, [this] { return front_.EnsureConnected(); }};
};

}  // namespace resmgr::nri::test
