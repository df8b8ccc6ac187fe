// SPDX-License-Identifier: Apache-2.0
// A message that is read on its way changes only where it must. A message that no runtime can read
// passes, since the runtime itself reports the error. A message that a runtime might accept is
// decided about, or refused.
#include <string>
#include <vector>

#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/util/message_differencer.h>

#include "test/integration/daemon_fixture.h"

namespace resmgr::test {
namespace {

using ProtoMessage = google::protobuf::Message;

// A field and a value that no CRI knows.
constexpr int kFutureField = 12'345;
const std::string kFuture("from\0the future", 15);

void AddUnknown(ProtoMessage* message) {
  message->GetReflection()->MutableUnknownFields(message)->AddLengthDelimited(kFutureField,
                                                                              kFuture);
  message->GetReflection()->MutableUnknownFields(message)->AddVarint(kFutureField + 1, 7);
}

// Clears the fields that the daemon may set.
void ClearPlacement(cri::LinuxContainerResources* resources) {
  resources->clear_cpuset_cpus();
  resources->clear_cpuset_mems();
  resources->clear_cpu_shares();
  resources->clear_cpu_quota();
  resources->clear_cpu_period();
}

// Undecodable as any message: a length-delimited field longer than the message.
const std::string kGarbage("\x0a\xff\xff\xff\x7f garbage", 13);

class InterceptionTest : public DaemonTest, public testing::WithParamInterface<ApiVersion> {
 protected:
  void SetUp() override { StartBoth(); }
  CriClient Client() const { return Relayed(GetParam()); }

  // The one request of this method that reached the runtime since the calls were last forgotten.
  std::string Received(const std::string& method) {
    const auto calls = runtime_.Calls(method);
    EXPECT_EQ(calls.size(), 1u) << method;
    return calls.empty() || calls.back().messages.empty() ? "" : calls.back().messages[0];
  }

  // Sends the request and expects its very bytes at the runtime.
  void ExpectUnchanged(CriClient& client, const std::string& method, const ProtoMessage& request) {
    SCOPED_TRACE(method);
    runtime_.ForgetCalls();
    const std::string bytes = request.SerializeAsString();
    const CallResult result = client.Call(client.PathOf(method), {bytes});
    EXPECT_TRUE(result.status.ok()) << result.status.error_message();
    EXPECT_EQ(Received(method), bytes);
  }
};

INSTANTIATE_TEST_SUITE_P(BothVersions, InterceptionTest,
                         testing::Values(ApiVersion::kV1, ApiVersion::kV1Alpha2),
                         [](const auto& version) {
                           return version.param == ApiVersion::kV1 ? "V1" : "V1Alpha2";
                         });

TEST_P(InterceptionTest, CreateChangesNothingButThePlacement) {
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(pod);
  auto* config = request.mutable_config();
  *config = MakeGuaranteedContainer("main", 2);
  *request.mutable_sandbox_config() = MakeGuaranteedPod("g");
  // Order, duplicates and nesting that a rebuilt message would lose.
  for (const char* key : {"Z", "A", "M", "A"}) {
    auto* env = config->add_envs();
    env->set_key(key);
    env->set_value(kFuture);
  }
  for (const char* path : {"/a/b", "/a", "/c", "/a"}) {
    auto* mount = config->add_mounts();
    mount->set_container_path(path);
    mount->set_host_path("/host");
    AddUnknown(mount);
  }
  (*config->mutable_linux()->mutable_resources()->mutable_unified())["memory.high"] = "1000";
  for (ProtoMessage* message : std::vector<ProtoMessage*>{
           &request, config, config->mutable_metadata(), config->mutable_linux(),
           config->mutable_linux()->mutable_resources(),
           config->mutable_linux()->mutable_security_context(), request.mutable_sandbox_config()}) {
    AddUnknown(message);
  }
  const std::string sent = request.SerializeAsString();
  const CallResult result = client.Call(client.PathOf("CreateContainer"), {sent});
  ASSERT_TRUE(result.status.ok()) << result.status.error_message();

  const std::string received = Received("CreateContainer");
  EXPECT_TRUE(received.starts_with(sent)) << "the bytes as sent, and only something behind them";
  cri::CreateContainerRequest seen;
  ASSERT_TRUE(seen.ParseFromString(received));
  EXPECT_EQ(CpuSet::Parse(seen.config().linux().resources().cpuset_cpus())->size(), 2);
  ClearPlacement(seen.mutable_config()->mutable_linux()->mutable_resources());
  ClearPlacement(request.mutable_config()->mutable_linux()->mutable_resources());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(seen, request))
      << seen.DebugString();
}

TEST_P(InterceptionTest, UpdateChangesNothingButThePlacement) {
  CriClient client = Client();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  cri::UpdateContainerResourcesRequest request;
  request.set_container_id(running.container);
  request.mutable_linux()->set_memory_limit_in_bytes(77 << 20);
  (*request.mutable_linux()->mutable_unified())["memory.high"] = "1000";
  (*request.mutable_annotations())["some"] = "thing";
  AddUnknown(&request);
  AddUnknown(request.mutable_linux());
  runtime_.ForgetCalls();
  const std::string sent = request.SerializeAsString();
  ASSERT_TRUE(client.Call(client.PathOf("UpdateContainerResources"), {sent}).status.ok());
  const std::string received = Received("UpdateContainerResources");
  EXPECT_TRUE(received.starts_with(sent));
  cri::UpdateContainerResourcesRequest seen;
  ASSERT_TRUE(seen.ParseFromString(received));
  ClearPlacement(seen.mutable_linux());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(seen, request))
      << seen.DebugString();
}

// On cgroup v2 runtimes write these files after all fields.
TEST_P(InterceptionTest, CpusetFilesOfTheClientAreDropped) {
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  cri::CreateContainerRequest request =
      CreateRequest(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  auto& unified =
      *request.mutable_config()->mutable_linux()->mutable_resources()->mutable_unified();
  unified["cpuset.cpus"] = "0";
  unified["cpuset.mems"] = "0";
  unified["cpuset.cpus.partition"] = "root";
  unified["memory.high"] = "1000";
  AddUnknown(&request);
  const CallResult result =
      client.Call(client.PathOf("CreateContainer"), {request.SerializeAsString()});
  ASSERT_TRUE(result.status.ok()) << result.status.error_message();
  cri::CreateContainerRequest seen;
  ASSERT_TRUE(seen.ParseFromString(Received("CreateContainer")));
  EXPECT_EQ(CpuSet::Parse(seen.config().linux().resources().cpuset_cpus())->size(), 2);
  for (const char* const file : {"cpuset.cpus", "cpuset.mems", "cpuset.cpus.partition"})
    unified.erase(file);
  ClearPlacement(seen.mutable_config()->mutable_linux()->mutable_resources());
  ClearPlacement(request.mutable_config()->mutable_linux()->mutable_resources());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(seen, request))
      << seen.DebugString();

  cri::CreateContainerResponse made;
  ASSERT_TRUE(made.ParseFromString(result.messages.at(0)));
  cri::UpdateContainerResourcesRequest update;
  update.set_container_id(made.container_id());
  (*update.mutable_linux()->mutable_unified())["cpuset.cpus"] = "0";
  (*update.mutable_linux()->mutable_unified())["memory.high"] = "2000";
  runtime_.ForgetCalls();
  ASSERT_TRUE(client.Call(client.PathOf("UpdateContainerResources"), {update.SerializeAsString()})
                  .status.ok());
  cri::UpdateContainerResourcesRequest sent;
  ASSERT_TRUE(sent.ParseFromString(Received("UpdateContainerResources")));
  EXPECT_EQ(sent.linux().unified_size(), 1) << sent.DebugString();
  EXPECT_EQ(CpuSet::Parse(sent.linux().cpuset_cpus())->size(), 2);
}

TEST_P(InterceptionTest, APathWithoutTheSlashInFrontIsTheSameMethod) {
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  const std::string request =
      CreateRequest(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2))
          .SerializeAsString();
  client.Call(client.PathOf("CreateContainer").substr(1), {request});
  cri::CreateContainerRequest seen;
  ASSERT_TRUE(seen.ParseFromString(Received("CreateContainer")));
  EXPECT_EQ(CpuSet::Parse(seen.config().linux().resources().cpuset_cpus())->size(), 2);
}

TEST_P(InterceptionTest, AContainerWithASectionForWindowsIsPlaced) {
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  for (const bool linux_too : {false, true}) {
    cri::ContainerConfig config = MakeGuaranteedContainer("main", 1);
    config.mutable_metadata()->set_attempt(linux_too ? 1 : 0);
    if (!linux_too) config.clear_linux();
    config.mutable_windows()->mutable_resources()->set_cpu_shares(7);
    const std::string id = Ok(client.CreateContainer(pod, MakeGuaranteedPod("g"), config));
    EXPECT_TRUE(Eventually([&] { return !CpusAtRuntime(id).empty(); })) << linux_too;
    ASSERT_THAT(client.StartContainer(id), IsOk());
  }
}

// gRPC's server in Go reads the first and carries it out.
TEST_P(InterceptionTest, TwoMessagesInOneCallAreRefused) {
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  const std::string request =
      CreateRequest(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2))
          .SerializeAsString();
  for (const std::string& second : {request, std::string()}) {
    const CallResult result = client.Call(client.PathOf("CreateContainer"), {request, second});
    EXPECT_EQ(result.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(result.status.error_message(), testing::HasSubstr("CreateContainer"));
  }
  EXPECT_TRUE(runtime_.Calls("CreateContainer").empty());
}

// Other parsers accept some of these.
TEST_P(InterceptionTest, WhatARuntimeMightReadAndWeDoNotIsRefused) {
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  const std::string request =
      CreateRequest(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2))
          .SerializeAsString();
  // A group that ends with another number, and a field number of more than 29 bits.
  for (const std::string& tail :
       {std::string("\xa3\x06\xac\x06", 4), std::string("\x92\x80\x80\x80\x80\x01\x00", 7)}) {
    const CallResult result = client.Call(client.PathOf("CreateContainer"), {request + tail});
    EXPECT_EQ(result.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_TRUE(runtime_.Calls("CreateContainer").empty());
}

TEST_P(InterceptionTest, OtherRequestsKeepTheirBytes) {
  CriClient client = Client();
  cri::RunPodSandboxRequest run;
  *run.mutable_config() = MakeGuaranteedPod("g");
  AddUnknown(&run);
  AddUnknown(run.mutable_config());
  AddUnknown(run.mutable_config()->mutable_linux());
  ExpectUnchanged(client, "RunPodSandbox", run);
  const std::string pod =
      runtime_.WithStore([](CriStore& store) { return store.sandboxes().begin()->first; });
  const std::string id =
      Ok(client.CreateContainer(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2)));

  cri::StartContainerRequest start;
  start.set_container_id(id);
  AddUnknown(&start);
  ExpectUnchanged(client, "StartContainer", start);
  cri::UpdatePodSandboxResourcesRequest update;
  update.set_pod_sandbox_id(pod);
  update.mutable_resources()->set_cpu_shares(2048);
  AddUnknown(&update);
  AddUnknown(update.mutable_resources());
  ExpectUnchanged(client, "UpdatePodSandboxResources", update);
  cri::StopContainerRequest stop;
  stop.set_container_id(id);
  stop.set_timeout(3);
  AddUnknown(&stop);
  ExpectUnchanged(client, "StopContainer", stop);
  cri::RemoveContainerRequest remove;
  remove.set_container_id(id);
  AddUnknown(&remove);
  ExpectUnchanged(client, "RemoveContainer", remove);
  cri::StopPodSandboxRequest stop_pod;
  stop_pod.set_pod_sandbox_id(pod);
  AddUnknown(&stop_pod);
  ExpectUnchanged(client, "StopPodSandbox", stop_pod);
  cri::RemovePodSandboxRequest remove_pod;
  remove_pod.set_pod_sandbox_id(pod);
  AddUnknown(&remove_pod);
  ExpectUnchanged(client, "RemovePodSandbox", remove_pod);
}

TEST_P(InterceptionTest, RepliesKeepTheirBytes) {
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  cri::CreateContainerResponse reply;
  reply.set_container_id("an-id-of-the-future");
  AddUnknown(&reply);
  runtime_.Script("CreateContainer", {.reply = {{reply.SerializeAsString()}}});
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(pod);
  *request.mutable_config() = MakeGuaranteedContainer("main", 2);
  const CallResult result =
      client.Call(client.PathOf("CreateContainer"), {request.SerializeAsString()});
  ASSERT_TRUE(result.status.ok()) << result.status.error_message();
  EXPECT_EQ(result.messages.at(0), reply.SerializeAsString());
}

TEST_P(InterceptionTest, CompressedCreateIsPlaced) {
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(pod);
  *request.mutable_config() = MakeGuaranteedContainer("main", 2);
  *request.mutable_sandbox_config() = MakeGuaranteedPod("g");
  (*request.mutable_config()->mutable_annotations())["filler"] = std::string(50'000, 'x');
  runtime_.Script("CreateContainer", {.gzip = true});
  cri::CreateContainerResponse created;
  const grpc::Status status = client.Unary("CreateContainer", request, &created, {.gzip = true});
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(CpusAtRuntime(created.container_id()).size(), 2);
  EXPECT_EQ(
      runtime_.FindContainer(created.container_id())->config.annotations().at("filler").size(),
      50'000u);
  // Its id was read from the compressed reply: the release is known to belong to it.
  ASSERT_THAT(client.RemoveContainer(created.container_id()), IsOk());
  const Running all =
      Run(client, MakeGuaranteedPod("h"), MakeGuaranteedContainer("main", kCpus - 1));
  EXPECT_EQ(CpusAtRuntime(all.container).size(), kCpus - 1);
}

TEST_P(InterceptionTest, CreateWithoutLinuxSucceeds) {
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeBestEffortPod("p")));
  auto config = MakeBestEffortContainer("main");
  config.clear_linux();
  EXPECT_THAT(client.CreateContainer(pod, MakeBestEffortPod("p"), config), IsOk());
}

TEST_P(InterceptionTest, CreateWithoutSandboxConfigIsPlaced) {
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(pod);
  *request.mutable_config() = MakeGuaranteedContainer("main", 2);
  cri::CreateContainerResponse created;
  ASSERT_TRUE(client.Unary("CreateContainer", request, &created).ok());
  EXPECT_EQ(CpusAtRuntime(created.container_id()).size(), 2);
}

TEST_P(InterceptionTest, RunPodWithoutLinuxSucceeds) {
  CriClient client = Client();
  auto pod = MakeBestEffortPod("p");
  pod.clear_linux();
  const std::string id = Ok(client.RunPod(pod));
  EXPECT_THAT(client.CreateContainer(id, pod, MakeBestEffortContainer("main")), IsOk());
}

TEST_P(InterceptionTest, WhatTheRuntimeRefusesIsRefusedByIt) {
  cri::CreateContainerRequest unknown_pod;
  unknown_pod.set_pod_sandbox_id("no-such-sandbox");
  *unknown_pod.mutable_config() = MakeGuaranteedContainer("main", 2);
  *unknown_pod.mutable_sandbox_config() = MakeGuaranteedPod("g");
  cri::UpdateContainerResourcesRequest unknown_container;
  unknown_container.set_container_id("no-such-container");
  unknown_container.mutable_linux()->set_cpu_shares(2);

  std::vector<std::pair<std::string, std::string>> requests = {
      {"CreateContainer", unknown_pod.SerializeAsString()},
      {"UpdateContainerResources", unknown_container.SerializeAsString()},
  };
  for (const char* method :
       {"RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "CreateContainer", "StartContainer",
        "StopContainer", "RemoveContainer", "UpdateContainerResources",
        "UpdatePodSandboxResources"}) {
    requests.emplace_back(method, kGarbage);
    requests.emplace_back(method, "");
  }
  CriClient client = Client();
  CriClient direct = Direct(GetParam());
  for (const auto& [method, bytes] : requests) {
    SCOPED_TRACE(method + " with " + std::to_string(bytes.size()) + " bytes");
    // The call before may not have ended yet at the runtime.
    ASSERT_TRUE(Eventually([&, name = method] {
      runtime_.ForgetCalls();
      return runtime_.Calls(name).empty();
    }));
    const CallResult relayed = client.Call(client.PathOf(method), {bytes});
    EXPECT_EQ(runtime_.Calls(method).size(), 1u) << "the runtime was asked";
    const CallResult expected = direct.Call(direct.PathOf(method), {bytes});
    EXPECT_EQ(relayed.status.error_code(), expected.status.error_code());
    EXPECT_EQ(relayed.status.error_message(), expected.status.error_message());
    EXPECT_EQ(relayed.messages, expected.messages);
  }
  // No other container is still restricted by it.
  const Running all =
      Run(client, MakeGuaranteedPod("all"), MakeGuaranteedContainer("main", kCpus - 1));
  EXPECT_EQ(CpusAtRuntime(all.container).size(), kCpus - 1);
}

TEST_P(InterceptionTest, WithoutMessageOrWithTwoTheRuntimeAnswers) {
  CriClient client = Client();
  for (const std::vector<std::string>& messages :
       {std::vector<std::string>{}, std::vector<std::string>{kGarbage, kGarbage}}) {
    const CallResult result = client.Call(client.PathOf("CreateContainer"), messages);
    EXPECT_FALSE(result.status.ok());
  }
  EXPECT_TRUE(client.Call(client.PathOf("Version"), {""}).status.ok());
}

TEST_P(InterceptionTest, NullPolicyChangesNothing) {
  daemon_->Kill();
  StartDaemon(Flags({"-policy", "null"}));
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(pod);
  *request.mutable_config() = MakeGuaranteedContainer("main", 2);
  ExpectUnchanged(client, "CreateContainer", request);
}

}  // namespace
}  // namespace resmgr::test
