// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/engine_inspector.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/docker/testing/fake_engine.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr::docker {
namespace {

using ::testing::ElementsAre;

constexpr const char* kToldList = R"([
  {"Id":"s1","Names":["/k8s_POD_web_shop_u1_3"],"State":"created",
   "Labels":{"io.kubernetes.docker.type":"podsandbox"}},
  {"Id":"c1","Names":["/k8s_main_web_shop_u1_2"],"State":"running",
   "Labels":{"io.kubernetes.sandbox.id":"s1"}},
  {"Id":"c2","Names":["/k8s_gone_web_shop_u1_0"],"State":"running",
   "Labels":{"io.kubernetes.sandbox.id":"s1"}},
  {"Id":"o1","Names":["/plain"],"State":"running","Labels":{}}])";

constexpr const char* kToldSandbox = R"({"Id":"s1","Name":"/k8s_POD_web_shop_u1_3",
  "State":{"Status":"created","Pid":0},"NetworkSettings":{"IPAddress":"10.0.0.7"},
  "Config":{"Labels":{"io.kubernetes.docker.type":"podsandbox","app":"web","annotation.a":"b"}},
  "HostConfig":{"CgroupParent":"kubepods-burstable-podu1.slice","Runtime":"runc","CpuShares":2}})";

constexpr const char* kToldContainer = R"({"Id":"c1","Name":"/k8s_main_web_shop_u1_2",
  "Created":"2020-01-02T03:04:04.25Z",
  "State":{"Status":"exited","Pid":0,"ExitCode":137,"OOMKilled":true,"Error":"why",
           "StartedAt":"2020-01-02T03:04:05.000000006Z","FinishedAt":"0001-01-01T00:00:00Z"},
  "Config":{"Image":"img","Env":["A=1","B"],"Cmd":["run"],
            "Labels":{"io.kubernetes.sandbox.id":"s1","annotation.x":"y"}},
  "HostConfig":{"CgroupParent":"/kubepods/podu1","CpuShares":512,"Memory":64,"MemorySwap":-1,
                "Binds":["/h:/c:ro"]}})";

std::optional<std::string> AnswerOf(const FakeEngine::Request& request) {
  const auto asks = [&request](std::string_view target) {
    return request.line.find(std::string(target) + " HTTP") != std::string::npos;
  };
  if (asks("/containers/json?all=1")) return JsonReply(200, kToldList);
  if (asks("/containers/s1/json")) return JsonReply(200, kToldSandbox);
  if (asks("/containers/c1/json")) return JsonReply(200, kToldContainer);
  if (asks("/version")) return JsonReply(200, R"({"Version":"20.10.24+dfsg1"})");
  if (asks("/images/local%2Fx%3A1/json")) {
    return JsonReply(200, R"({"RepoDigests":["x@sha256:1"],
        "Config":{"Entrypoint":["/e"],"Cmd":null,"Env":["P=q"]}})");
  }
  if (request.line.starts_with("POST") || request.line.starts_with("DELETE"))
    return JsonReply(200, "{}");
  return JsonReply(404, R"({"message":"none"})");
}

class EngineInspectorTest : public testing::Test {
 protected:
  void Start(FakeEngine::Answer answer = AnswerOf) {
    engine_.emplace(dir_.File("e.sock"), std::move(answer));
  }
  // Runs `ask` and returns its result.
  template <typename Result>
  Result Told(const std::function<void(EngineInspector&, std::function<void(Result)>)>& ask,
              Others others = Others::kPass) {
    EngineInspector inspector(loop_, dir_.File("e.sock"), others);
    std::optional<Result> told;
    ask(inspector, [this, &told](Result result) {
      told.emplace(std::move(result));
      loop_.Stop();
    });
    EXPECT_FALSE(told.has_value()) << "inside the call";
    const auto limit = loop_.After(std::chrono::seconds(10), [this] { loop_.Stop(); });
    loop_.Run();
    EXPECT_TRUE(told.has_value());
    return told ? *std::move(told) : Result(Internal("nothing"));
  }
  StatusOr<ContainerFacts> Container(const char* id, Others others = Others::kPass) {
    return Told<StatusOr<ContainerFacts>>(
        [id](auto& inspector, auto done) {
          inspector.InspectContainer(ContainerId(id), std::move(done));
        },
        others);
  }
  StatusOr<SandboxFacts> Sandbox(const char* id, Others others = Others::kPass) {
    return Told<StatusOr<SandboxFacts>>(
        [id](auto& inspector, auto done) {
          inspector.InspectSandbox(PodSandboxId(id), std::move(done));
        },
        others);
  }
  StatusOr<RuntimeAccess::Everything> All(Others others = Others::kPass) {
    return Told<StatusOr<RuntimeAccess::Everything>>(
        [](auto& inspector, auto done) { inspector.InspectAll(std::move(done)); }, others);
  }

  TempDir dir_;
  EventLoop loop_;
  std::optional<FakeEngine> engine_;
};

TEST_F(EngineInspectorTest, TellsOfASandbox) {
  Start();
  const auto facts = Sandbox("s1");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->pod.id, PodSandboxId("s1"));
  EXPECT_EQ(facts->pod.name, "web");
  EXPECT_EQ(facts->pod.qos, QosClass::kBurstable);
  EXPECT_EQ(facts->pod.cgroup_parent,
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu1.slice");
  EXPECT_EQ(facts->pod.annotations, (StringMap{{"a", "b"}}));
  EXPECT_EQ(facts->pod.resources, LinuxResources()) << "the sandbox's own are not the pod's";
  EXPECT_EQ(facts->attempt, 3U);
  EXPECT_TRUE(facts->ready);
  EXPECT_THAT(facts->ips, ElementsAre("10.0.0.7"));
  EXPECT_EQ(facts->cgroups_path, "kubepods-burstable-podu1.slice:docker:s1");
  EXPECT_EQ(Sandbox("c1").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Sandbox("none").status().code(), StatusCode::kNotFound);
}

TEST_F(EngineInspectorTest, TellsOfAContainer) {
  Start();
  const auto facts = Container("c1");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->container.pod_id, PodSandboxId("s1"));
  EXPECT_EQ(facts->container.name, "main");
  EXPECT_EQ(facts->container.attempt, 2U);
  EXPECT_EQ(facts->container.state, ContainerState::kExited);
  EXPECT_EQ(facts->container.resources.cpu_shares, 512);
  EXPECT_EQ(facts->container.annotations, (StringMap{{"x", "y"}}));
  EXPECT_EQ(facts->created_at, 1'577'934'244'250'000'000);
  EXPECT_EQ(facts->started_at, 1'577'934'245'000'000'006);
  EXPECT_EQ(facts->finished_at, 0);
  EXPECT_EQ(facts->exit_code, 137);
  EXPECT_EQ(facts->reason, "OOMKilled");
  EXPECT_EQ(facts->message, "why");
  EXPECT_EQ(facts->image, "img");
  EXPECT_EQ(facts->cgroups_path, "/kubepods/podu1/c1");
  EXPECT_EQ(facts->details.memory_swap_limit, -1);
  EXPECT_EQ(facts->details.environment.size(), 1U) << "B is none";
  EXPECT_EQ(facts->details.mounts.size(), 1U);
  EXPECT_EQ(Container("s1").status().code(), StatusCode::kNotFound);
}

TEST_F(EngineInspectorTest, TellsOfAll) {
  Start();
  const auto all = All();
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->sandboxes.size(), 1U);
  EXPECT_EQ(all->containers.size(), 1U) << "one is gone, one is no pod's";
}

TEST_F(EngineInspectorTest, WhatCannotBeInspectedIsToldAsListed) {
  Start([](const FakeEngine::Request& request) -> std::optional<std::string> {
    if (request.line.find("/json?all") != std::string::npos) return JsonReply(200, kToldList);
    return JsonReply(500, R"({"message":"hangs"})");
  });
  const auto all = All(Others::kShare);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->sandboxes.size(), 2U);
  EXPECT_EQ(all->containers.size(), 3U);
}

TEST_F(EngineInspectorTest, ThePodOfOthersIsNotDockerds) {
  Start();
  const auto facts = Sandbox("docker", Others::kShare);
  EXPECT_EQ(facts.status().code(), StatusCode::kNotFound) << "here there is no ping either";
  Start([](const FakeEngine::Request&) { return JsonReply(200, "OK"); });
  EXPECT_TRUE(Sandbox("docker", Others::kShare).ok());
}

TEST_F(EngineInspectorTest, TellsVersionAndImage) {
  Start();
  const auto version = Told<StatusOr<RuntimeAccess::Version>>(
      [](auto& inspector, auto done) { inspector.AskVersion(std::move(done)); });
  ASSERT_TRUE(version.ok());
  EXPECT_EQ(version->name, "docker");
  EXPECT_EQ(version->version, "20.10.24+dfsg1");
  const auto image = Told<StatusOr<ImageFacts>>(
      [](auto& inspector, auto done) { inspector.InspectImage("local/x:1", std::move(done)); });
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_THAT(image->entrypoint, ElementsAre("/e"));
  EXPECT_EQ(image->environment[0].value, "q");
  EXPECT_EQ(image->digest, "x@sha256:1");
}

TEST_F(EngineInspectorTest, UpdatesStopsAndRemoves) {
  Start();
  ResourceChange change;
  change.resources.cpu_shares = 2;
  EXPECT_TRUE(Told<Status>([&](auto& inspector, auto done) {
                inspector.UpdateContainer(ContainerId("c1"), change, std::move(done));
              }).ok());
  change.unified = {{"pids.max", "no"}};
  EXPECT_EQ(Told<Status>([&](auto& inspector, auto done) {
              inspector.UpdateContainer(ContainerId("c1"), change, std::move(done));
            }).code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(Told<Status>([&](auto& inspector, auto done) {
                inspector.StopContainer(ContainerId("c1"), std::chrono::seconds(3),
                                        std::move(done));
              }).ok());
  EXPECT_TRUE(Told<Status>([&](auto& inspector, auto done) {
                inspector.RemoveSandbox(PodSandboxId("s1"), std::move(done));
              }).ok());
  std::vector<std::string> lines;
  for (const auto& request : engine_->requests())
    if (!request.line.starts_with("GET")) lines.push_back(request.line + request.body);
  EXPECT_THAT(lines, ElementsAre(R"(POST /containers/c1/update HTTP/1.0{"CpuShares":2})",
                                 "POST /containers/c1/stop?t=3 HTTP/1.0",
                                 "DELETE /containers/s1?force=1&v=1 HTTP/1.0"));
}

TEST_F(EngineInspectorTest, WithoutADockerdNothingIsKnown) {
  EXPECT_EQ(All().status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(Container("c1").status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace resmgr::docker
