// SPDX-License-Identifier: Apache-2.0
// A kubelet's view through the relay: its own resources for containers to which the policy or a
// stage gave others, and its updates of pods if the runtime has no such call.
#include <string>
#include <vector>

#include <google/protobuf/util/message_differencer.h>

#include "test/integration/daemon_fixture.h"

namespace resmgr::test {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::HasSubstr;

constexpr int64_t kPeriod = 100'000;

class KubeletViewTest : public DaemonTest {
 protected:
  void SetUp() override { StartBoth(); }

  static std::string StatusBytes(CriClient& client, const std::string& id, bool verbose = false) {
    cri::ContainerStatusRequest request;
    request.set_container_id(id);
    request.set_verbose(verbose);
    const CallResult result =
        client.Call(client.PathOf("ContainerStatus"), {request.SerializeAsString()});
    EXPECT_TRUE(result.status.ok()) << result.status.error_message();
    EXPECT_EQ(result.messages.size(), 1U);
    return result.messages.empty() ? "" : result.messages[0];
  }
  static cri::ContainerStatusResponse StatusOf(CriClient& client, const std::string& id,
                                               bool verbose = false) {
    cri::ContainerStatusResponse response;
    EXPECT_TRUE(response.ParseFromString(StatusBytes(client, id, verbose)));
    return response;
  }
  static cri::LinuxContainerResources Seen(CriClient& client, const std::string& id) {
    return StatusOf(client, id).status().resources().linux();
  }
  cri::LinuxContainerResources InForce(const std::string& id) {
    return runtime_.FindContainer(id)->resources;
  }
};

TEST_F(KubeletViewTest, TheQuotaThatWasAskedForIsShownWhereThePolicyLiftsIt) {
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  ASSERT_EQ(InForce(running.container).cpu_quota(), -1);
  CriClient direct = Direct();
  for (const bool verbose : {false, true}) {
    cri::ContainerStatusResponse expected = StatusOf(direct, running.container, verbose);
    expected.mutable_status()->mutable_resources()->mutable_linux()->set_cpu_quota(2 * kPeriod);
    const cri::ContainerStatusResponse seen = StatusOf(client, running.container, verbose);
    EXPECT_TRUE(MessageDifferencer::Equals(seen, expected)) << seen.DebugString();
  }
  // A client may name it by the beginning of its id.
  EXPECT_EQ(Seen(client, running.container.substr(0, 13)).cpu_quota(), 2 * kPeriod);
}

TEST_F(KubeletViewTest, AllOtherBytesOfTheReplyStay) {
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  cri::ContainerStatusResponse reply;
  auto& status = *reply.mutable_status();
  status.set_id(running.container);
  status.set_log_path(std::string("not \xff utf-8", 11));
  auto& linux = *status.mutable_resources()->mutable_linux();
  linux = InForce(running.container);
  (*linux.mutable_unified())["memory.high"] = "5";
  for (google::protobuf::Message* const message : std::vector<google::protobuf::Message*>{
           &reply, &status, status.mutable_resources(), &linux}) {
    message->GetReflection()->MutableUnknownFields(message)->AddLengthDelimited(12'345, "later");
    message->GetReflection()->MutableUnknownFields(message)->AddVarint(12'346, 7);
  }
  (*reply.mutable_info())["info"] = R"({"runtimeSpec":{"linux":{"resources":{}}}})";
  runtime_.Script("ContainerStatus", {.reply = std::vector{reply.SerializeAsString()}});
  linux.set_cpu_quota(2 * kPeriod);
  EXPECT_EQ(StatusBytes(client, running.container), reply.SerializeAsString());
}

TEST_F(KubeletViewTest, WhatNoStageChangedIsShownAsItIs) {
  CriClient client = Relayed();
  const Running running =
      Run(client, MakeBurstablePod("b"), MakeBurstableContainer("main", MilliCpu{500}));
  CriClient direct = Direct();
  EXPECT_EQ(StatusBytes(client, running.container), StatusBytes(direct, running.container));
}

TEST_F(KubeletViewTest, TheLastResizeIsShownAndAFailedOneIsNot) {
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1));
  const auto resize = [&](int64_t milli_cpu) {
    cri::LinuxContainerResources resources;
    resources.set_cpu_shares(milli_cpu * 1024 / 1000);
    resources.set_cpu_quota(milli_cpu * kPeriod / 1000);
    resources.set_cpu_period(kPeriod);
    return client.UpdateContainer(running.container, resources);
  };
  for (const int64_t milli_cpu : {500, 1000, 3000, 1500, 2000}) {
    ASSERT_THAT(resize(milli_cpu), IsOk());
    const cri::LinuxContainerResources seen = Seen(client, running.container);
    EXPECT_EQ(seen.cpu_quota(), milli_cpu * kPeriod / 1000);
    EXPECT_EQ(seen.cpu_shares(), milli_cpu * 1024 / 1000);
    EXPECT_EQ(seen.cpu_period(), kPeriod);
  }
  runtime_.Script("UpdateContainerResources",
                  {.times = 1, .error = grpc::Status(grpc::StatusCode::INTERNAL, "no")});
  EXPECT_FALSE(resize(3000).ok());
  EXPECT_EQ(Seen(client, running.container).cpu_quota(), 2 * kPeriod);
}

TEST_F(KubeletViewTest, WhatWasAskedForIsShownAfterARestart) {
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  ASSERT_EQ(Seen(client, running.container).cpu_quota(), 2 * kPeriod);
  // A kill within milliseconds of the creation could come before the state is written.
  ASSERT_TRUE(daemon_->Terminate().ok());
  StartDaemon(StaticFlags());
  CriClient again = Relayed();
  EXPECT_EQ(InForce(running.container).cpu_quota(), -1);
  // The container is known once the daemon has listed what the runtime has.
  EXPECT_TRUE(
      Eventually([&] { return Seen(again, running.container).cpu_quota() == 2 * kPeriod; }));
}

TEST_F(KubeletViewTest, WhatAnotherProgramSetAtTheRuntimeIsShown) {
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  cri::LinuxContainerResources resources = InForce(running.container);
  resources.set_cpu_quota(70'000);
  resources.set_memory_limit_in_bytes(9 << 20);
  ASSERT_THAT(Direct().UpdateContainer(running.container, resources), IsOk());
  const cri::LinuxContainerResources seen = Seen(client, running.container);
  EXPECT_EQ(seen.cpu_quota(), 70'000);
  EXPECT_EQ(seen.memory_limit_in_bytes(), 9 << 20);
}

TEST_F(KubeletViewTest, ListsAndFailuresPass) {
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  CriClient direct = Direct();
  const auto list = [](CriClient& from) {
    return from.Call(from.PathOf("ListContainers"), {""}).messages;
  };
  EXPECT_EQ(list(client), list(direct));
  runtime_.Script("ContainerStatus",
                  {.times = 1, .error = grpc::Status(grpc::StatusCode::INTERNAL, "broken")});
  EXPECT_THAT(client.ContainerStatus(running.container),
              Fails(StatusCode::kInternal, HasSubstr("broken")));
}

// Kubelets set the pod's cgroup before they call the runtime, and go on if it lacks the call.
TEST_F(KubeletViewTest, AnUpdateOfAPodCountsWhereTheRuntimeHasNoSuchCall) {
  CriClient client = Relayed();
  cri::PodSandboxConfig config = MakeGuaranteedPod("g");
  const cri::ContainerConfig container = MakeGuaranteedContainer("main", 4);
  *config.mutable_linux()->mutable_resources() = container.linux().resources();
  const std::string pod = Ok(client.RunPod(config));
  runtime_.Script(
      "UpdatePodSandboxResources",
      {.error = grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "method not implemented")});
  cri::UpdatePodSandboxResourcesRequest request;
  request.set_pod_sandbox_id(pod);
  *request.mutable_resources() = MakeGuaranteedContainer("main", 2).linux().resources();
  const CallResult result =
      client.Call(client.PathOf("UpdatePodSandboxResources"), {request.SerializeAsString()});
  EXPECT_EQ(result.status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << "as the runtime says";
  // Both together have no more than their pod, which has two CPUs now.
  config.mutable_linux()->clear_resources();
  std::vector<std::string> ids;
  for (const char* const name : {"a", "b"}) {
    cri::ContainerConfig member = MakeGuaranteedContainer(name, 2);
    const std::string id = Ok(client.CreateContainer(pod, config, member));
    ASSERT_THAT(client.StartContainer(id), IsOk());
    ids.push_back(id);
  }
  for (const std::string& id : ids) {
    EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(id).size() == kCpus; }))
        << CpusAtRuntime(id).ToString();
  }
}

}  // namespace
}  // namespace resmgr::test
