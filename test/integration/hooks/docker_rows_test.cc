// SPDX-License-Identifier: Apache-2.0
// Rows K24 and K25 before a stand-in of dockerd: hook servers in mode docker.
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "test/integration/hooks/hook_rows_fixture.h"
#include "test/integration/stand_in_engine.h"

namespace resmgr::test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kCgroup[] = "/kubepods/burstable/podu1";

class DockerRowsTest : public HookRowsTest {
 protected:
  void StartDocker(const std::vector<std::string>& behaviour, const std::string& mode = "echo") {
    engine_.emplace(Path("engine.sock"));
    server_ = Serve("hook", behaviour);
    PutFile("hook.json", FileText(Path("hook.sock"),
                                  R"("PreRunPodSandbox", "PreCreateContainer", "PreStartContainer",
                                     "PreUpdateContainerResources", "PostStopContainer")",
                                  R"(, "failure-policy": "Fail", "mode": ")" + mode + '"'));
    StartDaemonWithHooks({"-mode", "docker", "-docker-socket", Path("engine.sock")});
    AwaitServers(1);
  }
  std::string Ask(const std::string& method, const std::string& target, const std::string& body) {
    return AskEngine(RelaySocket(), method, target, body);
  }
  // Its id.
  std::string Create(const std::string& name, const Json& body) {
    const std::string reply = Ask("POST", "/v1.40/containers/create?name=" + name, body.dump());
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 201"));
    const size_t head = reply.find("\r\n\r\n");
    return head == std::string::npos ? "" : Json::parse(reply.substr(head + 4)).value("Id", "");
  }
  static Json SandboxBody() {
    return {{"Image", "pause"},
            {"Labels",
             {{"io.kubernetes.docker.type", "podsandbox"},
              {"io.kubernetes.pod.name", "web"},
              {"io.kubernetes.pod.namespace", "shop"},
              {"io.kubernetes.pod.uid", "u1"},
              {"app", "web"},
              {"annotation.note", "x"}}},
            {"HostConfig", {{"CgroupParent", kCgroup}, {"CpuShares", 2}}}};
  }
  static Json ContainerBody(const std::string& sandbox) {
    return {{"Image", "busybox"},
            {"Env", {"A=1", "B=two=2"}},
            {"Labels",
             {{"io.kubernetes.docker.type", "container"},
              {"io.kubernetes.sandbox.id", sandbox},
              {"io.kubernetes.container.name", "main"},
              {"annotation.hash", "h"}}},
            {"HostConfig", {{"CgroupParent", kCgroup}, {"CpuShares", 512}, {"Memory", 1048576}}}};
  }

  std::optional<StandInEngine> engine_;
  std::unique_ptr<ChildProcess> server_;
};

// K25: an answer without a cgroup parent keeps that of the request.
TEST_F(DockerRowsTest, K25AnAnswerWithoutACgroupParentKeepsTheOriginal) {
  StartDocker({"-sparse", "-annotation", "mark=1", "-env", "C=3", "-shares", "700"}, "sparse");
  const std::string sandbox = Create("k8s_POD_web_shop_u1_0", SandboxBody());
  Json sent = engine_->BodyOf("/containers/create");
  EXPECT_EQ(sent["HostConfig"]["CgroupParent"], kCgroup);
  EXPECT_EQ(sent["Labels"]["annotation.mark"], "1");
  EXPECT_EQ(sent["Labels"]["app"], "web");
  Create("k8s_main_web_shop_u1_0", ContainerBody(sandbox));
  sent = engine_->BodyOf("/containers/create");
  EXPECT_EQ(sent["HostConfig"]["CgroupParent"], kCgroup);
  EXPECT_EQ(sent["HostConfig"]["CpuShares"], 700);
  EXPECT_EQ(sent["HostConfig"]["Memory"], 1048576);
  EXPECT_EQ(sent["Env"], (Json{"A=1", "B=two=2", "C=3"}));
}

// The resources are handled as by koord-runtime-proxy.
TEST_F(DockerRowsTest, ResourcesOfAPodAreThoseOfItsPauseContainer) {
  StartDocker({"-pod-shares", "900"});
  const std::string sandbox = Create("k8s_POD_web_shop_u1_0", SandboxBody());
  Json sent = engine_->BodyOf("/containers/create");
  EXPECT_EQ(sent["HostConfig"]["CpuShares"], 900);
  EXPECT_EQ(sent["HostConfig"]["CpuQuota"], -1);
  EXPECT_FALSE(sent["HostConfig"].contains("Memory")) << sent;
  EXPECT_EQ(sent["HostConfig"]["CgroupParent"], kCgroup);
  const Json container = ContainerBody(sandbox);
  Create("k8s_main_web_shop_u1_0", container);
  EXPECT_EQ(engine_->Last("/create").body, container.dump()) << "they are not the containers'";
}

TEST_F(DockerRowsTest, ServersSeeWholeRequests) {
  StartDocker({});
  Json body = SandboxBody();
  const std::string sandbox = Create("k8s_POD_web_shop_u1_4", body);
  EXPECT_EQ(engine_->Last("/create").body, body.dump()) << "what is repeated is no change";
  body = ContainerBody(sandbox);
  const std::string id = Create("k8s_main_web_shop_u1_2", body);
  EXPECT_EQ(engine_->Last("/create").body, body.dump());
  EXPECT_THAT(Ask("POST", "/containers/" + id + "/start", ""), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask("POST", "/containers/" + id + "/update", R"({"CpuQuota":20000})"),
              StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(engine_->Last("/update").body, R"({"CpuQuota":20000})");
  EXPECT_THAT(Ask("POST", "/containers/" + id + "/stop", ""), StartsWith("HTTP/1.1 200"));

  const auto pods = Asked<hook_api::PodSandboxHookRequest>("hook", "PreRunPodSandbox");
  ASSERT_EQ(pods.size(), 1U);
  EXPECT_EQ(pods[0].pod_meta().name(), "web");
  EXPECT_EQ(pods[0].pod_meta().attempt(), 4U);
  EXPECT_EQ(pods[0].cgroup_parent(), kCgroup);
  EXPECT_EQ(pods[0].labels().at("app"), "web");
  EXPECT_EQ(pods[0].annotations().at("note"), "x");
  const auto created = Asked<hook_api::ContainerResourceHookRequest>("hook", "PreCreateContainer");
  ASSERT_EQ(created.size(), 1U);
  EXPECT_EQ(created[0].pod_meta().uid(), "u1");
  EXPECT_EQ(created[0].pod_labels().at("app"), "web");
  EXPECT_EQ(created[0].container_meta().name(), "main");
  EXPECT_EQ(created[0].container_meta().attempt(), 2U);
  EXPECT_EQ(created[0].container_annotations().at("hash"), "h");
  EXPECT_EQ(created[0].container_resources().cpu_shares(), 512);
  EXPECT_EQ(created[0].container_resources().memory_limit_in_bytes(), 1048576);
  EXPECT_EQ(created[0].container_envs().at("B"), "two=2");
  EXPECT_EQ(created[0].pod_cgroup_parent(), kCgroup);
  EXPECT_TRUE(AskedWithin("hook", "PreStartContainer", 1));
  EXPECT_TRUE(AskedWithin("hook", "PostStopContainer", 1));
  const auto updated =
      Asked<hook_api::ContainerResourceHookRequest>("hook", "PreUpdateContainerResources");
  ASSERT_EQ(updated.size(), 1U);
  EXPECT_EQ(updated[0].container_resources().cpu_quota(), 20'000);
  EXPECT_EQ(updated[0].container_resources().cpu_shares(), 512);
}

// dockerd reports containers that exist when the daemon starts.
TEST_F(DockerRowsTest, AfterARestartContainersAreKnown) {
  StartDocker({});
  const std::string id = Create("k8s_main_web_shop_u1_0",
                                ContainerBody(Create("k8s_POD_web_shop_u1_0", SandboxBody())));
  daemon_.reset();
  StartDaemonWithHooks({"-mode", "docker", "-docker-socket", Path("engine.sock")});
  AwaitServers(1);
  EXPECT_THAT(Ask("POST", "/containers/" + id + "/update", R"({"CpuQuota":20000})"),
              StartsWith("HTTP/1.1 200"));
  const auto updated =
      Asked<hook_api::ContainerResourceHookRequest>("hook", "PreUpdateContainerResources");
  ASSERT_EQ(updated.size(), 1U);
  EXPECT_EQ(updated[0].pod_meta().name(), "web");
  EXPECT_EQ(updated[0].pod_cgroup_parent(), kCgroup);
  EXPECT_EQ(updated[0].container_resources().cpu_shares(), 512);
}

TEST_F(DockerRowsTest, ARefusalIsAnErrorOfDockers) {
  StartDocker({"-refuse", "PreRunPodSandbox"});
  const std::string reply =
      Ask("POST", "/containers/create?name=k8s_POD_web_shop_u1_0", SandboxBody().dump());
  EXPECT_THAT(reply, testing::Not(StartsWith("HTTP/1.1 2")));
  EXPECT_THAT(reply, HasSubstr("hook.json"));
  EXPECT_EQ(engine_->Last("/create").line, "");
}

// K24: requests that koord-runtime-proxy refused or changed.
TEST_F(DockerRowsTest, K24WhatIsNoPodsPassesAsItCame) {
  StartDocker({"-env", "C=3"});
  const std::string body = R"( {"Image":"x", "Labels":{"a":"b"},"Unknown":1.50} )";
  EXPECT_THAT(Ask("POST", "/v1.41/containers/create?name=my-own.name", body),
              StartsWith("HTTP/1.1 201"));
  EXPECT_EQ(engine_->Last("/create").body, body);
  EXPECT_THAT(Ask("POST", "/v1.41/containers/create", body), StartsWith("HTTP/1.1 201"));
  EXPECT_THAT(Ask("GET", "/v1.41/images/a%2Fb%3A1/json", ""), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(engine_->Last("images").line, HasSubstr("/v1.41/images/a%2Fb%3A1/json "));
  EXPECT_TRUE(Calls("hook", "PreCreateContainer").empty());
  // A name of seven parts, which dockershim makes after a conflict.
  Json seven = ContainerBody(Create("k8s_POD_web_shop_u1_0_5f3", SandboxBody()));
  Create("k8s_main_web_shop_u1_0_a1", seven);
  EXPECT_EQ(engine_->BodyOf("/containers/create")["Env"], (Json{"A=1", "B=two=2", "C=3"}));
}

}  // namespace
}  // namespace resmgr::test
