// SPDX-License-Identifier: Apache-2.0
#include "test/support/fake_runtime/fake_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/sys/temp_dir.h"
#include "test/support/cri_client/cri_client.h"
#include "test/support/cri_client/specs.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class FakeRuntimeTest : public testing::Test {
 protected:
  FakeRuntimeTest() { EXPECT_TRUE(runtime_.Start(Socket()).ok()); }
  ~FakeRuntimeTest() override { runtime_.Stop(); }
  std::string Socket() const { return directory_.File("rt.sock"); }

  TempDir directory_;
  FakeRuntime runtime_;
};

class FakeRuntimeVersionTest : public FakeRuntimeTest,
                               public testing::WithParamInterface<ApiVersion> {};

INSTANTIATE_TEST_SUITE_P(BothVersions, FakeRuntimeVersionTest,
                         testing::Values(ApiVersion::kV1, ApiVersion::kV1Alpha2),
                         [](const auto& version) {
                           return version.param == ApiVersion::kV1 ? "V1" : "V1Alpha2";
                         });

TEST_P(FakeRuntimeVersionTest, RunsAContainerAndUpdatesItsCpus) {
  CriClient client(Socket(), GetParam());
  const auto pod = Must(client.RunPod(MakeGuaranteedPod("a")));
  auto config = MakeGuaranteedContainer("main", 2);
  config.mutable_linux()->mutable_resources()->set_cpuset_cpus("2-3");
  const auto id = Must(client.CreateContainer(pod, MakeGuaranteedPod("a"), config));
  ASSERT_TRUE(client.StartContainer(id).ok());
  EXPECT_EQ(*client.AllowedCpus(id), "2-3");

  cri::LinuxContainerResources resources;
  resources.set_cpuset_cpus("4");
  ASSERT_TRUE(client.UpdateContainer(id, resources).ok());
  EXPECT_EQ(*client.AllowedCpus(id), "4");
  EXPECT_EQ(runtime_.FindContainer(id)->resources.cpu_shares(), 2048);

  ASSERT_TRUE(client.StopContainer(id).ok());
  ASSERT_TRUE(client.RemoveContainer(id).ok());
  ASSERT_TRUE(client.RemovePod(pod).ok());
  EXPECT_TRUE(runtime_.WithStore(
      [](CriStore& store) { return store.containers().empty() && store.sandboxes().empty(); }));
}

// A client may have an answer before the server is told that the call has ended.
TEST_F(FakeRuntimeTest, ForgetsEveryCallThatAClientHasTheAnswerOf) {
  CriClient client(Socket());
  for (int call = 0; call < 2000; ++call) {
    cri::VersionResponse version;
    ASSERT_TRUE(client.Unary("Version", cri::VersionRequest(), &version).ok());
    runtime_.ForgetCalls();
    ASSERT_TRUE(runtime_.Calls("Version").empty()) << call;
  }
}

TEST_P(FakeRuntimeVersionTest, ShowsCgroupParentAndResourcesInVerboseStatus) {
  CriClient client(Socket(), GetParam());
  const auto pod = Must(client.RunPod(MakeBurstablePod("b")));
  const auto id = Must(
      client.CreateContainer(pod, MakeBurstablePod("b"), MakeBurstableContainer("main", {500})));

  cri::PodSandboxStatusRequest pod_request;
  pod_request.set_pod_sandbox_id(pod);
  pod_request.set_verbose(true);
  cri::PodSandboxStatusResponse pod_status;
  ASSERT_TRUE(client.Unary("PodSandboxStatus", pod_request, &pod_status).ok());
  const auto pod_info = nlohmann::json::parse(pod_status.info().at("info"));
  EXPECT_EQ(pod_info["config"]["linux"]["cgroup_parent"], "/kubepods/burstable/poduid-b");

  cri::ContainerStatusRequest request;
  request.set_container_id(id);
  request.set_verbose(true);
  cri::ContainerStatusResponse status;
  ASSERT_TRUE(client.Unary("ContainerStatus", request, &status).ok());
  const auto info = nlohmann::json::parse(status.info().at("info"));
  EXPECT_EQ(info["runtimeSpec"]["linux"]["resources"]["cpu"]["shares"], 512);
  EXPECT_EQ(status.status().has_resources(), GetParam() == ApiVersion::kV1);
}

TEST_F(FakeRuntimeTest, HoldsACallUntilItIsReleased) {
  CriClient client(Socket());
  runtime_.Script("RunPodSandbox", {.hold = true});
  cri::RunPodSandboxRequest request;
  *request.mutable_config() = MakeBestEffortPod("held");
  const auto call = client.Start("RunPodSandbox", request);
  ASSERT_TRUE(runtime_.WaitForHeld("RunPodSandbox", 1));
  EXPECT_FALSE(call->Wait(milliseconds(0)).has_value());
  EXPECT_TRUE(runtime_.WithStore([](CriStore& store) { return store.sandboxes().empty(); }));

  runtime_.Release("RunPodSandbox");
  const auto result = call->Wait(seconds(10));
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->status.ok());
  EXPECT_EQ(runtime_.WithStore([](CriStore& store) { return store.sandboxes().size(); }), 1u);
}

TEST_F(FakeRuntimeTest, CancelledWhileHeldHasNoEffect) {
  CriClient client(Socket());
  runtime_.Script("RunPodSandbox", {.hold = true});
  cri::RunPodSandboxRequest request;
  *request.mutable_config() = MakeBestEffortPod("held");
  const auto call = client.Start("RunPodSandbox", request);
  ASSERT_TRUE(runtime_.WaitForHeld("RunPodSandbox", 1));
  call->Cancel();
  ASSERT_TRUE(runtime_.WaitForCancelled("RunPodSandbox", 1));
  runtime_.Release("RunPodSandbox");
  cri::VersionResponse version;
  ASSERT_TRUE(client.Unary("Version", cri::VersionRequest(), &version).ok());
  EXPECT_TRUE(runtime_.WithStore([](CriStore& store) { return store.sandboxes().empty(); }));
}

TEST_F(FakeRuntimeTest, FailsWithDetailsAndTrailersAsOftenAsScripted) {
  CriClient client(Socket());
  runtime_.Script("Version", {.times = 1,
                              .error = grpc::Status(grpc::StatusCode::ABORTED, "why", "details"),
                              .trailers = {{"x-trailer", "t"}}});
  const CallResult failed = client.Call(client.PathOf("Version"), {""});
  EXPECT_EQ(failed.status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(failed.status.error_message(), "why");
  EXPECT_EQ(failed.status.error_details(), "details");
  EXPECT_EQ(failed.trailers.count("x-trailer"), 1u);
  EXPECT_TRUE(client.Call(client.PathOf("Version"), {""}).status.ok());
}

TEST_F(FakeRuntimeTest, CutsConnectionsInTheMiddleOfACall) {
  CriClient client(Socket());
  runtime_.Script("Version", {.times = 1, .cut = true});
  EXPECT_EQ(client.Call(client.PathOf("Version"), {""}).status.error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(FakeRuntimeTest, StreamsEventsOfContainers) {
  CriClient client(Socket());
  const auto events = client.Start("GetContainerEvents", cri::GetEventsRequest());
  ASSERT_TRUE(runtime_.WaitForCalls("GetContainerEvents", 1));
  const auto pod = Must(client.RunPod(MakeBestEffortPod("e")));
  const auto id =
      Must(client.CreateContainer(pod, MakeBestEffortPod("e"), MakeBestEffortContainer("main")));
  ASSERT_TRUE(events->WaitForMessages(1, seconds(10)));
  events->Cancel();
  const auto result = events->Wait(seconds(10));
  ASSERT_TRUE(result.has_value());
  cri::ContainerEventResponse event;
  ASSERT_TRUE(event.ParseFromString(result->messages.at(0)));
  EXPECT_EQ(event.container_id(), id);
  EXPECT_EQ(event.container_event_type(), cri::CONTAINER_CREATED_EVENT);
}

TEST_F(FakeRuntimeTest, EchoesUnknownServicesOfAnySize) {
  CriClient client(Socket());
  EXPECT_EQ(client.Call("/test.Echo/Collect", {"a", "b"}).messages, std::vector<std::string>{"ab"});
  EXPECT_EQ(client.Call("/test.Echo/Bidi", {"a", "b"}).messages,
            (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(client.Call("/test.Echo/Stream", {"a"}, {.metadata = {{"x-count", "3"}}}).messages,
            (std::vector<std::string>{"a", "a", "a"}));
  const CallResult big = client.Call("/test.Echo/Sized", {std::to_string(64 << 20)});
  ASSERT_EQ(big.messages.size(), 1u);
  EXPECT_EQ(big.messages[0].size(), size_t{64} << 20);
  EXPECT_EQ(client.Call("/test.Other/Any", {"a"}).status.error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(FakeRuntimeTest, KeepsItsStateOverARestartOnTheSamePath) {
  CriClient client(Socket());
  ASSERT_TRUE(client.RunPod(MakeBestEffortPod("kept")).ok());
  runtime_.Stop(FakeRuntime::SocketFile::kLeave);
  EXPECT_EQ(client.Call(client.PathOf("Version"), {""}).status.error_code(),
            grpc::StatusCode::UNAVAILABLE);
  ASSERT_TRUE(runtime_.Start(Socket()).ok());
  CriClient again(Socket());
  cri::ListPodSandboxResponse list;
  ASSERT_TRUE(again.Unary("ListPodSandbox", cri::ListPodSandboxRequest(), &list).ok());
  EXPECT_EQ(list.items_size(), 1);
}

}  // namespace
}  // namespace resmgr::test
