// SPDX-License-Identifier: Apache-2.0
// Hook servers behind the real relay, with real sockets and files: the runtime receives their
// changes.
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/runtimehook.pb.h"
#include "pkg/sys/temp_dir.h"
#include "test/integration/stages/node_fixture.h"
#include "test/support/cri_client/specs.h"
#include "test/support/fake_hook_server/fake_hook_server.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

namespace hook_api = ::runtime::v1alpha1;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

using hooks::HookPoint;

class HookServersTest : public StagesTest {
 protected:
  ~HookServersTest() override { Stop(); }

  // `more`: members of the file's object, each with a comma in front.
  void WriteFile(const std::string& name, const std::string& socket, const std::string& points,
                 const std::string& more) {
    std::ofstream(directory_.File(name))
        << "{\"remote-endpoint\": \"" << directory_.File(socket) << "\", \"runtime-hooks\": ["
        << points << "]" << more << "}";
  }
  std::unique_ptr<FakeHookServer> Serve(const std::string& socket) {
    return std::make_unique<FakeHookServer>(directory_.File(socket));
  }
  void StartNode() { Start({}, std::nullopt, HookHostingOptions{.directory = Directory()}); }
  std::string Directory() const {
    const std::string file = directory_.File("x");
    return file.substr(0, file.size() - 2);
  }
  static StatusOr<std::string> Create(CriClient& client, const std::string& pod,
                                      const cri::ContainerConfig& container) {
    return client.CreateContainer(pod, MakeGuaranteedPod("g"), container);
  }
  cri::ContainerConfig Created() {
    cri::CreateContainerRequest request;
    EXPECT_TRUE(request.ParseFromString(Received("CreateContainer")));
    return request.config();
  }

  TempDir directory_;
};

// An answer like koordlet's: the request, with a change.
FakeHookServer::Answerer Echo(
    const std::function<void(hook_api::ContainerResourceHookResponse&)>& change) {
  return [change](const std::string& bytes) -> StatusOr<std::string> {
    hook_api::ContainerResourceHookRequest request;
    if (!request.ParseFromString(bytes)) return Internal("no request");
    hook_api::ContainerResourceHookResponse answer;
    *answer.mutable_container_annotations() = request.container_annotations();
    *answer.mutable_container_resources() = request.container_resources();
    answer.set_pod_cgroup_parent(request.pod_cgroup_parent());
    *answer.mutable_container_envs() = request.container_envs();
    change(answer);
    return answer.SerializeAsString();
  };
}

TEST_F(HookServersTest, TwoServersChangeACreationInTheOrderOfTheirFiles) {
  const auto second = Serve("b.sock");
  const auto first = Serve("a.sock");
  WriteFile("20.json", "b.sock", "\"PreCreateContainer\"", "");
  WriteFile("10.json", "a.sock", "\"PreCreateContainer\"", "");
  first->Answer(HookPoint::kPreCreateContainer, Echo([](auto& answer) {
                  answer.mutable_container_resources()->set_cpu_quota(-1);
                  answer.mutable_container_resources()->set_cpu_shares(11);
                }));
  second->Answer(HookPoint::kPreCreateContainer, Echo([](auto& answer) {
                   answer.mutable_container_resources()->set_cpu_shares(22);
                 }));
  StartNode();
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  ASSERT_THAT(Create(client, pod, MakeGuaranteedContainer("main", 1)), IsOk());
  const cri::LinuxContainerResources resources = Created().linux().resources();
  EXPECT_EQ(resources.cpu_shares(), 22);
  EXPECT_EQ(resources.cpu_quota(), -1);
  // The policy's CPU is still there.
  EXPECT_FALSE(resources.cpuset_cpus().empty());
}

TEST_F(HookServersTest, WhatAServerRepeatsKeepsItsBytes) {
  const auto server = Serve("a.sock");
  WriteFile("10.json", "a.sock", "\"PreCreateContainer\"", "");
  server->Answer(HookPoint::kPreCreateContainer,
                 Echo([](auto& answer) { (*answer.mutable_container_envs())["ADDED"] = "x=y"; }));
  StartNode();
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  cri::ContainerConfig config = MakeGuaranteedContainer("main", 1);
  const auto add = [&config](const std::string& key, const std::string& value) {
    auto& variable = *config.add_envs();
    variable.set_key(key);
    variable.set_value(value);
  };
  add("TWICE", "1");
  add("EQUALS", "a=b=c");
  add("TWICE", "2");
  const int before = config.envs_size();
  ASSERT_THAT(Create(client, pod, config), IsOk());
  const cri::ContainerConfig created = Created();
  ASSERT_EQ(created.envs_size(), before + 1);
  for (int i = 0; i < before; ++i)
    EXPECT_EQ(created.envs(i).SerializeAsString(), config.envs(i).SerializeAsString());
  EXPECT_EQ(created.envs(before).key(), "ADDED");
  EXPECT_EQ(created.envs(before).value(), "x=y");
}

TEST_F(HookServersTest, AServerThatHangsIsPassedOverOrRefusesAsItsFileSays) {
  const auto server = Serve("a.sock");
  server->Hang(HookPoint::kPreCreateContainer);
  server->Hang(HookPoint::kPreRunPodSandbox);
  WriteFile("10.json", "a.sock", "\"PreRunPodSandbox\"", R"(, "timeout": "300ms")");
  WriteFile("20.json", "a.sock", "\"PreCreateContainer\"",
            R"(, "timeout": "300ms", "failure-policy": "Fail")");
  StartNode();
  CriClient client = Client();
  const auto begin = std::chrono::steady_clock::now();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_THAT(Create(client, pod, MakeGuaranteedContainer("main", 1)),
              Fails(StatusCode::kDeadlineExceeded,
                    AllOf(HasSubstr("PreCreateContainer"), HasSubstr("20.json"))));
  EXPECT_TRUE(runtime_.Calls("CreateContainer").empty());
}

TEST_F(HookServersTest, AServerThatIsNotThereRefusesUnlessThePodIsSkipped) {
  WriteFile("10.json", "nowhere.sock", "\"PreRunPodSandbox\"", R"(, "failure-policy": "Fail")");
  StartNode();
  CriClient client = Client();
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("g")),
              Fails(StatusCode::kUnavailable, HasSubstr("10.json")));
  cri::PodSandboxConfig skipped = MakeGuaranteedPod("s");
  (*skipped.mutable_labels())["runtimeproxy.koordinator.sh/skip-hookserver"] = "true";
  EXPECT_THAT(client.RunPod(skipped), IsOk());
}

TEST_F(HookServersTest, AfterARestartAnUpdateIsShownWithAllThatTheContainerHas) {
  const auto server = Serve("a.sock");
  WriteFile("10.json", "a.sock", "\"PreUpdateContainerResources\"", "");
  StartNode();
  std::string id;
  {
    CriClient client = Client();
    const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
    const auto created = Ok(Create(client, pod, MakeGuaranteedContainer("main", 1)));
    id = created;
  }
  Stop();
  runtime_.Stop();
  server->Answer(HookPoint::kPreUpdateContainerResources, Echo([](auto& answer) {
                   answer.mutable_container_resources()->set_cpu_quota(123'000);
                 }));
  StartNode();
  CriClient client = Client();
  cri::LinuxContainerResources wanted;
  wanted.set_cpu_shares(777);
  ASSERT_THAT(client.UpdateContainer(id, wanted), IsOk());
  const auto calls = server->Calls(HookPoint::kPreUpdateContainerResources);
  ASSERT_EQ(calls.size(), 1u);
  hook_api::ContainerResourceHookRequest asked;
  ASSERT_TRUE(asked.ParseFromString(calls[0]));
  EXPECT_EQ(asked.container_resources().cpu_shares(), 777);
  EXPECT_NE(asked.container_resources().cpu_period(), 0);
  EXPECT_EQ(asked.pod_meta().name(), "g");
  EXPECT_EQ(asked.pod_cgroup_parent(), MakeGuaranteedPod("g").linux().cgroup_parent());
  cri::UpdateContainerResourcesRequest sent;
  ASSERT_TRUE(sent.ParseFromString(runtime_.Calls("UpdateContainerResources").back().messages[0]));
  EXPECT_EQ(sent.linux().cpu_shares(), 777);
  EXPECT_EQ(sent.linux().cpu_quota(), 123'000);
  EXPECT_EQ(sent.linux().memory_limit_in_bytes(), 0);
}

TEST_F(HookServersTest, ClientsOfTheOlderVersionAreHookedAsWell) {
  const auto server = Serve("a.sock");
  WriteFile("10.json", "a.sock", "\"PreRunPodSandbox\", \"PostStopPodSandbox\"", "");
  StartNode();
  CriClient client(File("relay.sock"), ApiVersion::kV1Alpha2);
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  EXPECT_EQ(server->Calls(HookPoint::kPreRunPodSandbox).size(), 1u);
  EXPECT_THAT(client.StopPod(pod), IsOk());
  EXPECT_THAT(client.StopPod(pod), IsOk());
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (server->Calls(HookPoint::kPostStopPodSandbox).empty() &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_EQ(server->Calls(HookPoint::kPostStopPodSandbox).size(), 1u);
}

}  // namespace
}  // namespace resmgr::test
