// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/hooks/hook_stage.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/pipeline/testing/function_stage.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/event_loop.h"

namespace resmgr::hooks {

// A hook server that keeps each request until the test answers.
class HeldServer final : public HookServerPort {
 public:
  HeldServer(std::string file, HookPointSet points, FailurePolicy failure, AnswerStyle style)
      : settings_{.file = std::move(file), .failure = failure, .points = points, .style = style} {}

  struct Question {
    HookPoint point;
    std::string request;
    Done done;
  };

  const HookServerSettings& settings() const override { return settings_; }
  void Ask(HookPoint point, std::string request, Done done) override {
    questions.push_back({point, std::move(request), std::move(done)});
  }

  // The oldest unanswered request.
  template <typename Message>
  Message Asked() const {
    Message message;
    EXPECT_TRUE(!questions.empty() && message.ParseFromString(questions.front().request));
    return message;
  }
  void Answer(StatusOr<std::string> answer) {
    ASSERT_FALSE(questions.empty());
    const Done done = std::move(questions.front().done);
    questions.erase(questions.begin());
    done(std::move(answer));
  }
  template <typename Message>
  void AnswerWith(const Message& message) {
    Answer(message.SerializeAsString());
  }

  std::vector<Question> questions;

 private:
  const HookServerSettings settings_;
};

class HeldServers final : public HookServersPort {
 public:
  std::vector<std::shared_ptr<HookServerPort>> ServersOf(HookPoint point) const override {
    std::vector<std::shared_ptr<HookServerPort>> wanting;
    for (const auto& server : servers)
      if (server->settings().points.test(static_cast<size_t>(point))) wanting.push_back(server);
    return wanting;
  }

  std::vector<std::shared_ptr<HeldServer>> servers;
};

// A runtime that answers when the test lets it.
class HeldRuntime final : public RuntimeAccess {
 public:
  void AskVersion(Done<Version>) override {}
  void InspectSandbox(const PodSandboxId& id, Done<SandboxFacts> done) override {
    asked_pods.emplace_back(std::string(id.value()), std::move(done));
  }
  void InspectContainer(const ContainerId& id, Done<ContainerFacts> done) override {
    asked_containers.emplace_back(std::string(id.value()), std::move(done));
  }
  void InspectImage(const PodSandboxId&, std::string_view, Done<ImageFacts>) override {}
  void InspectAll(Done<Everything> done) override { lists.push_back(std::move(done)); }
  void UpdateContainer(const ContainerId&, const ResourceChange&,
                       std::function<void(Status)>) override {}
  void StopContainer(const ContainerId&, std::chrono::seconds,
                     std::function<void(Status)>) override {}
  void StopSandbox(const PodSandboxId&, std::function<void(Status)>) override {}
  void RemoveSandbox(const PodSandboxId&, std::function<void(Status)>) override {}

  // Answers the oldest question.
  template <typename Held, typename Result>
  static void Answer(Held& held, Result result) {
    ASSERT_FALSE(held.empty());
    const auto done = std::move(held.front());
    held.erase(held.begin());
    if constexpr (requires { done.second; }) {
      done.second(std::move(result));
    } else {
      done(std::move(result));
    }
  }

  std::vector<std::pair<std::string, Done<SandboxFacts>>> asked_pods;
  std::vector<std::pair<std::string, Done<ContainerFacts>>> asked_containers;
  std::vector<Done<Everything>> lists;
};

// The stage in a pipeline, with the test's servers, runtime and clock.
class HookStageTest : public testing::Test {
 protected:
  using Front = test::TestCall;

  HookStageTest() {
    pipeline_.Add(stage_);
    stage_.Start();
    clock_.Advance(std::chrono::milliseconds(0));
    HeldRuntime::Answer(runtime_.lists, RuntimeAccess::Everything());
    stage_.OpenServers();
  }

  HeldServer& AddServer(const std::string& file, std::initializer_list<HookPoint> points,
                        FailurePolicy failure = FailurePolicy::kIgnore,
                        AnswerStyle style = AnswerStyle::kSparse) {
    HookPointSet set;
    for (const HookPoint point : points)
      set.set(static_cast<size_t>(point));
    servers_.servers.push_back(std::make_shared<HeldServer>(file, set, failure, style));
    return *servers_.servers.back();
  }
  std::unique_ptr<Front> Make(Operation operation, const std::string& id) {
    auto front = std::make_unique<Front>(pipeline_, operation);
    front->request.container_id = ContainerId(id);
    front->request.pod_id = PodSandboxId(id);
    return front;
  }
  std::unique_ptr<Front> Started(Operation operation, const std::string& id) {
    auto front = Make(operation, id);
    front->Start();
    return front;
  }
  static Pod PodNamed(const std::string& name) {
    Pod pod;
    pod.name = name;
    pod.labels = {{"app", name}};
    pod.cgroup_parent = "/kubepods/pod" + name;
    return pod;
  }
  std::unique_ptr<Front> StartPod(const Pod& pod) {
    auto front = Make(Operation::kRunPodSandbox, "");
    front->request.body = pod;
    front->Start();
    return front;
  }
  std::unique_ptr<Front> StartCreate(const std::string& pod_id, LinuxResources resources = {}) {
    auto front = Make(Operation::kCreateContainer, pod_id);
    CreateRequest create;
    create.pod_id = PodSandboxId(pod_id);
    create.name = "main";
    create.resources = std::move(resources);
    front->details = {};
    front->details.environment = {{.name = "A", .value = "1"}};
    front->request.body = std::move(create);
    front->Start();
    return front;
  }
  std::unique_ptr<Front> StartUpdate(const std::string& id, const LinuxResources& resources) {
    auto front = Make(Operation::kUpdateContainerResources, id);
    front->request.body = ContainerUpdate{.has_linux = true, .resources = resources};
    front->Start();
    return front;
  }
  // Adds a pod to the runtime without asking a server.
  void HavePod(const Pod& pod, const std::string& id) {
    SandboxFacts facts;
    facts.pod = pod;
    facts.pod.id = PodSandboxId(id);
    stage_.view().OnFacts(*inventory_.AddPod(facts.pod.id), facts);
  }
  static ContainerFacts Container(const std::string& id, const std::string& pod_id) {
    ContainerFacts facts;
    facts.container.id = ContainerId(id);
    facts.container.pod_id = PodSandboxId(pod_id);
    facts.container.name = "main";
    facts.container.resources.cpu_shares = 512;
    facts.container.resources.cpuset_cpus = "0-3";
    return facts;
  }
  void HaveContainer(const std::string& id, const std::string& pod_id) {
    const ContainerFacts facts = Container(id, pod_id);
    stage_.view().OnFacts(*inventory_.AddContainer(inventory_.FindPod(pod_id), facts.container.id),
                          facts);
  }

  EventLoop loop_;
  ManualClock clock_;
  HeldRuntime runtime_;
  HeldServers servers_;
  Pipeline pipeline_{clock_};
  Inventory inventory_{clock_, runtime_};
  HookStage stage_{{.loop = loop_, .clock = clock_, .inventory = inventory_, .servers = servers_},
                   {}};
};

}  // namespace resmgr::hooks
