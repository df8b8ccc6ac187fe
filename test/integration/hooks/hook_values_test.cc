// SPDX-License-Identifier: Apache-2.0
// Rows about the messages to servers, and the changes by their answers, byte for byte.
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/integration/hooks/hook_rows_fixture.h"

namespace resmgr::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Asking = hook_api::ContainerResourceHookRequest;

void AddVariable(cri::ContainerConfig& config, const std::string& key, const std::string& value) {
  auto& variable = *config.add_envs();
  variable.set_key(key);
  variable.set_value(value);
}

TEST_F(HookRowsTest, K06TwoServersAreAskedInTheOrderOfTheirFilesAndMerged) {
  const auto second = Serve("second", {"-shares", "22", "-env", "SECOND=2"});
  const auto first = Serve("first", {"-shares", "11", "-quota", "-1", "-env", "FIRST=1"});
  PutFile("20.json", FileText(Path("second.sock"), kCreatePoint));
  PutFile("10.json", FileText(Path("first.sock"), kCreatePoint));
  CriClient client = StartNodeWith(2);
  Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1));
  const cri::ContainerConfig created = Created();
  EXPECT_EQ(created.linux().resources().cpu_shares(), 22);
  EXPECT_EQ(created.linux().resources().cpu_quota(), -1);
  const auto shown = Asked<Asking>("second", "PreCreateContainer");
  ASSERT_THAT(shown, SizeIs(1));
  EXPECT_EQ(shown[0].container_resources().cpu_shares(), 11);
  EXPECT_EQ(shown[0].container_envs().at("FIRST"), "1");
  EXPECT_TRUE(Logged("10.json and 20.json disagree about"));
}

TEST_F(HookRowsTest, K11AnEchoWithoutACpusetClearsItAndKeepsAllElse) {
  const auto koordlet = Serve("koordlet", {"-cpus", "", "-quota", "-1"});
  PutFile("koordlet.json", FileText(Path("koordlet.sock"), kCreatePoint));
  CriClient client = StartNodeWith(1);
  cri::ContainerConfig config = MakeBestEffortContainer("be");
  config.mutable_linux()->mutable_resources()->set_cpuset_cpus("3");
  config.mutable_linux()->mutable_resources()->set_cpuset_mems("0");
  config.mutable_linux()->mutable_resources()->set_oom_score_adj(1000);
  AddVariable(config, "B", "2");
  AddVariable(config, "A", "1");
  AddVariable(config, "B", "3");
  Run(client, MakeBestEffortPod("be"), config);
  cri::ContainerConfig expected = config;
  expected.mutable_linux()->mutable_resources()->clear_cpuset_cpus();
  expected.mutable_linux()->mutable_resources()->set_cpu_quota(-1);
  EXPECT_EQ(Created().ShortDebugString(), expected.ShortDebugString());
}

TEST_F(HookRowsTest, K12ASparseAnswerChangesOnlyWhatItHas) {
  const auto server = Serve("a", {"-sparse", "-shares", "77"});
  PutFile("10.json", FileText(Path("a.sock"), kCreatePoint, R"(, "mode": "sparse")"));
  CriClient client = StartNodeWith(1);
  cri::ContainerConfig config = MakeGuaranteedContainer("main", 1);
  config.mutable_linux()->mutable_resources()->set_cpuset_cpus("3");
  config.mutable_linux()->mutable_resources()->set_oom_score_adj(-997);
  (*config.mutable_linux()->mutable_resources()->mutable_unified())["memory.high"] = "5";
  AddVariable(config, "A", "1");
  Run(client, MakeGuaranteedPod("g"), config);
  cri::ContainerConfig expected = config;
  expected.mutable_linux()->mutable_resources()->set_cpu_shares(77);
  EXPECT_EQ(Created().ShortDebugString(), expected.ShortDebugString());
}

// One field as protobuf writes it.
std::string Field(int number, const std::string& bytes) {
  std::string field(1, static_cast<char>(number << 3 | 2));
  for (size_t size = bytes.size();; size >>= 7) {
    field.push_back(static_cast<char>(size > 0x7f ? (size & 0x7f) | 0x80 : size));
    if (size <= 0x7f) break;
  }
  return field + bytes;
}

// Our own classes would not write invalid UTF-8; a kubelet with Go's older protobuf does.
TEST_F(HookRowsTest, K13VariablesKeepTheirBytesAndOrder) {
  const auto server = Serve("a", {"-env", "ADDED=1"});
  PutFile("10.json", FileText(Path("a.sock"), kCreatePoint, R"(, "failure-policy": "Fail")"));
  CriClient client = StartNodeWith(1);
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  const std::vector<std::string> variables = {Field(1, "EQUALS") + Field(2, "a=b=c"),
                                              Field(1, "TWICE") + Field(2, "1"),
                                              Field(1, "BYTES") + Field(2, "\xff\xfe\x80z"),
                                              Field(1, "TWICE") + Field(2, "2"), Field(1, "EMPTY")};
  std::string config = Field(1, Field(1, "main"));
  for (const std::string& variable : variables)
    config += Field(6, variable);
  const std::string request =
      Field(1, pod) + Field(2, config) + Field(3, MakeGuaranteedPod("g").SerializeAsString());
  client.Call(client.PathOf("CreateContainer"), {request});
  // The fake runtime may refuse such bytes; only the bytes that it was sent matter here.
  ASSERT_TRUE(runtime_.WaitForCalls("CreateContainer", 1));
  const std::string received = runtime_.Calls("CreateContainer").back().messages.at(0);
  size_t at = 0;
  for (const std::string& variable : variables) {
    const size_t found = received.find(Field(6, variable), at);
    ASSERT_NE(found, std::string::npos) << ::testing::PrintToString(variable);
    at = found + 1;
  }
  EXPECT_NE(received.find("ADDED"), std::string::npos);
  const auto shown = Asked<Asking>("a", "PreCreateContainer");
  ASSERT_THAT(shown, SizeIs(1));
  EXPECT_EQ(shown[0].container_envs().at("BYTES"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz");
  EXPECT_EQ(shown[0].container_envs().at("EQUALS"), "a=b=c");
}

TEST_F(HookRowsTest, K14AfterARestartAnUpdateIsShownWithAllAndItsResultCounts) {
  const auto server = Serve("a", {"-quota", "123000"});
  PutFile("10.json", FileText(Path("a.sock"), kUpdatePoint));
  StartNode();
  std::string id;
  {
    CriClient client = Relayed();
    id = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1)).container;
  }
  daemon_->Kill();
  StartDaemonWithHooks();
  AwaitServers(1);
  CriClient client = Relayed();
  cri::UpdateContainerResourcesRequest request;
  request.set_container_id(id);
  request.mutable_linux()->set_cpu_shares(777);
  (*request.mutable_annotations())["why"] = "resize";
  cri::UpdateContainerResourcesResponse reply;
  ASSERT_TRUE(client.Unary("UpdateContainerResources", request, &reply).ok());
  const auto shown = Asked<Asking>("a", "PreUpdateContainerResources");
  ASSERT_THAT(shown, SizeIs(1));
  EXPECT_EQ(shown[0].pod_cgroup_parent(), MakeGuaranteedPod("g").linux().cgroup_parent());
  EXPECT_EQ(shown[0].container_resources().cpu_shares(), 777);
  EXPECT_EQ(shown[0].container_resources().cpu_period(), 100'000);
  EXPECT_EQ(shown[0].container_annotations().at("why"), "resize");
  cri::UpdateContainerResourcesRequest sent;
  ASSERT_TRUE(sent.ParseFromString(runtime_.Calls("UpdateContainerResources").back().messages[0]));
  EXPECT_EQ(sent.linux().cpu_quota(), 123'000);
}

TEST_F(HookRowsTest, K15ARestartWithMiBsOfListsKnowsEverything) {
  constexpr int kContainers = 600;
  const auto server = Serve("a");
  PutFile("10.json", FileText(Path("a.sock"), kUpdatePoint));
  StartRuntime();
  CriClient direct = Direct();
  const std::string pod = Ok(direct.RunPod(MakeGuaranteedPod("g")));
  std::vector<std::string> ids;
  for (int i = 0; i < kContainers; ++i) {
    cri::ContainerConfig config = MakeGuaranteedContainer("c" + std::to_string(i), 1);
    (*config.mutable_annotations())["large"] = std::string(10'500, 'x');
    const std::string id = Ok(direct.CreateContainer(pod, MakeGuaranteedPod("g"), config));
    ids.push_back(id);
  }
  cri::ListContainersResponse list;
  ASSERT_TRUE(direct.Unary("ListContainers", cri::ListContainersRequest(), &list).ok());
  EXPECT_GT(list.ByteSizeLong(), size_t{6} << 20);
  StartDaemonWithHooks();
  AwaitServers(1);
  CriClient client = Relayed();
  for (const std::string& id : {ids.front(), ids.back()}) {
    ASSERT_THAT(client.UpdateContainer(id, cri::LinuxContainerResources()), IsOk());
  }
  const auto shown = Asked<Asking>("a", "PreUpdateContainerResources");
  ASSERT_THAT(shown, SizeIs(2));
  EXPECT_EQ(shown[1].container_meta().name(), "c599");
  EXPECT_THAT(shown[1].container_annotations().at("large"), SizeIs(10'500));
  EXPECT_EQ(shown[1].pod_meta().name(), "g");
}

TEST_F(HookRowsTest, K20AnUpdateCarriesWhatTheClientAndTheServerSet) {
  const auto server = Serve("a", {"-shares", "99"});
  PutFile("10.json", FileText(Path("a.sock"), kUpdatePoint));
  CriClient client = StartNodeWith(1);
  const Running pod = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1));
  cri::LinuxContainerResources wanted;
  wanted.set_cpuset_cpus("2");
  ASSERT_THAT(client.UpdateContainer(pod.container, wanted), IsOk());
  cri::UpdateContainerResourcesRequest sent;
  ASSERT_TRUE(sent.ParseFromString(runtime_.Calls("UpdateContainerResources").back().messages[0]));
  wanted.set_cpu_shares(99);
  EXPECT_EQ(sent.linux().ShortDebugString(), wanted.ShortDebugString());
}

TEST_F(HookRowsTest, K21EverythingElsePassesAsItIs) {
  const auto server = Serve("a", {"-env", "ADDED=1"});
  PutFile("10.json", FileText(Path("a.sock"), std::string(kCreatePoint) + ", " + kRunPodPoint));
  CriClient client = StartNodeWith(1);
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  // A field that is not known yet, and metadata.
  const std::string unknown("\xfa\x3e\x03new", 6);
  const std::string request =
      CreateRequest(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1))
          .SerializeAsString() +
      unknown;
  const CallResult created = client.Call(client.PathOf("CreateContainer"), {request},
                                         {.metadata = {{"traceparent", "1"}}});
  ASSERT_TRUE(created.status.ok()) << created.status.error_message();
  const RecordedCall received = runtime_.Calls("CreateContainer").back();
  EXPECT_NE(received.messages.at(0).find(unknown), std::string::npos);
  EXPECT_EQ(received.metadata.find("traceparent")->second, "1");
  // Any service; 15 MiB; a stream.
  const CallResult sized = client.Call("/test.Echo/Sized", {"15728640"});
  ASSERT_THAT(sized.messages, SizeIs(1));
  EXPECT_EQ(sized.messages[0].size(), size_t{15} << 20);
  const CallResult stream =
      client.Call("/test.Echo/Stream", {"x"}, {.metadata = {{"x-count", "3"}}});
  EXPECT_THAT(stream.messages, SizeIs(3));
  EXPECT_EQ(client.Call("/runtime.v1.RuntimeService/Newer", {"x"}).status.error_code(),
            grpc::UNIMPLEMENTED);
  const auto events = client.Open(client.PathOf("GetContainerEvents"));
  events->Send("");
  events->HalfClose();
  Run(client, MakeGuaranteedPod("h"), MakeGuaranteedContainer("main", 1));
  EXPECT_TRUE(events->WaitForMessages(1, kPatience));
}

TEST_F(HookRowsTest, K22CallsOfTheOlderVersionAreHooked) {
  const auto server = Serve("a", {"-annotation", "seen=yes"});
  PutFile("10.json", FileText(Path("a.sock"), kRunPodPoint));
  StartNode();
  AwaitServers(1);
  CriClient client = Relayed(ApiVersion::kV1Alpha2);
  ASSERT_THAT(client.RunPod(MakeGuaranteedPod("g")), IsOk());
  cri::RunPodSandboxRequest received;
  ASSERT_TRUE(received.ParseFromString(runtime_.Calls("RunPodSandbox").back().messages.at(0)));
  EXPECT_EQ(received.config().annotations().at("seen"), "yes");
}

// The policy takes CPUs from one that shares, with no call about it.
TEST_F(HookRowsTest, ServersAreToldTheCpusThatAreInForceNow) {
  const auto server = Serve("a");
  PutFile("10.json", FileText(Path("a.sock"), R"("PreStartContainer", "PostStopContainer")" +
                                                  std::string(", ") + kUpdatePoint));
  CriClient client = StartNodeWith(1, {"-policy", "static", "-reserved-resources", "CPU=1"});
  const std::string pod = Ok(client.RunPod(MakeBestEffortPod("be")));
  const std::string id =
      Ok(client.CreateContainer(pod, MakeBestEffortPod("be"), MakeBestEffortContainer("be")));
  const auto moved = [&](const std::string& name) {
    const CpuSet before = CpusAtRuntime(id);
    Run(client, MakeGuaranteedPod(name), MakeGuaranteedContainer("main", 1));
    EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(id).size() == before.size() - 1; }));
  };
  moved("first");
  ASSERT_THAT(client.StartContainer(id), IsOk());
  const auto started = Asked<Asking>("a", "PreStartContainer");
  ASSERT_FALSE(started.empty());
  EXPECT_EQ(started.back().container_meta().name(), "be");
  EXPECT_EQ(started.back().container_resources().cpuset_cpus(), CpusAtRuntime(id).ToString());

  moved("second");
  cri::LinuxContainerResources wanted;
  wanted.set_cpu_shares(99);
  ASSERT_THAT(client.UpdateContainer(id, wanted), IsOk());
  const auto updated = Asked<Asking>("a", "PreUpdateContainerResources");
  ASSERT_THAT(updated, SizeIs(1));
  EXPECT_EQ(updated[0].container_resources().cpuset_cpus(), CpusAtRuntime(id).ToString());
  EXPECT_EQ(updated[0].container_resources().cpu_shares(), 99);

  moved("third");
  const std::string last = CpusAtRuntime(id).ToString();
  ASSERT_THAT(client.StopContainer(id), IsOk());
  ASSERT_TRUE(AskedWithin("a", "PostStopContainer", 1));
  EXPECT_EQ(Asked<Asking>("a", "PostStopContainer")[0].container_resources().cpuset_cpus(), last);
}

TEST_F(HookRowsTest, ExplainTellsWhichServerChangedWhatOfAContainer) {
  const auto first = Serve("first", {"-shares", "11"});
  const auto second = Serve("second", {"-env", "ADDED=secret"});
  PutFile("10.json", FileText(Path("first.sock"), kCreatePoint));
  PutFile("20.json", FileText(Path("second.sock"), kCreatePoint));
  CriClient client = StartNodeWith(2);
  const Running pod = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1));
  const std::string text = Ctl({"explain", "g"});
  const auto explained = nlohmann::json::parse(text, nullptr, false);
  ASSERT_TRUE(explained.is_array() && explained.size() == 1) << text;
  const auto& container = explained[0];
  EXPECT_EQ(container["id"], pod.container);
  EXPECT_EQ(container["policy"], "null");
  EXPECT_EQ(container["shares"], 11);
  ASSERT_EQ(container["owners"].size(), 2u) << text;
  EXPECT_EQ(container["owners"][0]["field"], "cpu_shares");
  EXPECT_EQ(container["owners"][0]["plugin"], "10.json");
  EXPECT_EQ(container["owners"][1]["key"], "ADDED");
  EXPECT_EQ(container["owners"][1]["plugin"], "20.json");
  EXPECT_THAT(text, Not(HasSubstr("secret")));
  EXPECT_EQ(Ctl({"explain", "other"}), "");
  ASSERT_THAT(client.RemoveContainer(pod.container), IsOk());
  EXPECT_EQ(Ctl({"explain", "g"}), "");
}

TEST_F(HookRowsTest, TheAttemptOfAPodIsTold) {
  const auto server = Serve("a");
  PutFile("10.json", FileText(Path("a.sock"), std::string(kRunPodPoint) + ", " + kCreatePoint));
  CriClient client = StartNodeWith(1);
  cri::PodSandboxConfig pod = MakeGuaranteedPod("g");
  pod.mutable_metadata()->set_attempt(3);
  Run(client, pod, MakeGuaranteedContainer("main", 1));
  const auto pods = Asked<hook_api::PodSandboxHookRequest>("a", "PreRunPodSandbox");
  ASSERT_THAT(pods, SizeIs(1));
  EXPECT_EQ(pods[0].pod_meta().attempt(), 3U);
  const auto containers = Asked<Asking>("a", "PreCreateContainer");
  ASSERT_THAT(containers, SizeIs(1));
  EXPECT_EQ(containers[0].pod_meta().attempt(), 3U);
}

TEST_F(HookRowsTest, K26AServerDoesNotGetAroundThePolicyByFiles) {
  const auto server = Serve("a", {"-unified", "cpuset.cpus=0", "-unified", "cpuset.mems=0",
                                  "-unified", "cpuset.cpus.partition=root", "-unified",
                                  "cpu.max=50000 100000", "-unified", "cpu.weight=7"});
  PutFile("10.json", FileText(Path("a.sock"), std::string(kCreatePoint) + ", " + kUpdatePoint));
  CriClient client = StartNodeWith(1, {"-policy", "static", "-reserved-resources", "CPU=1"});
  const Running pod = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1));
  const cri::LinuxContainerResources sent = Created().linux().resources();
  EXPECT_EQ(sent.unified_size(), 1) << sent.DebugString();
  EXPECT_EQ(sent.unified().at("cpu.weight"), "7");
  EXPECT_EQ(sent.cpu_shares(), 0) << "one value, not two";
  EXPECT_EQ(sent.cpu_quota(), 50'000);
  EXPECT_EQ(sent.cpu_period(), 100'000);
  EXPECT_EQ(sent.cpuset_cpus(), CpusAtRuntime(pod.container).ToString());
  cri::LinuxContainerResources resize;
  resize.set_memory_limit_in_bytes(1 << 30);
  ASSERT_THAT(client.UpdateContainer(pod.container, resize), IsOk());
  cri::UpdateContainerResourcesRequest update;
  ASSERT_TRUE(
      update.ParseFromString(runtime_.Calls("UpdateContainerResources").back().messages.at(0)));
  for (const auto& [file, value] : update.linux().unified())
    EXPECT_THAT(file, Not(HasSubstr("cpuset")));
  EXPECT_TRUE(Logged("CPUs or memory nodes of a container: dropped"));
  EXPECT_THAT(Ctl({"explain", "g"}), AllOf(HasSubstr("cpu_quota"), HasSubstr("10.json")));
}

TEST_F(HookRowsTest, K27KeysOfTheKubeletStay) {
  const auto server =
      Serve("a", {"-annotation", "io.kubernetes.container.hash=0", "-annotation", "mine=1"});
  PutFile("10.json", FileText(Path("a.sock"), std::string(kRunPodPoint) + ", " + kCreatePoint));
  CriClient client = StartNodeWith(1);
  cri::ContainerConfig config = MakeGuaranteedContainer("main", 1);
  (*config.mutable_annotations())["io.kubernetes.container.hash"] = "abc";
  Run(client, MakeGuaranteedPod("g"), config);
  const cri::ContainerConfig created = Created();
  EXPECT_EQ(created.annotations().at("io.kubernetes.container.hash"), "abc");
  EXPECT_EQ(created.annotations().at("mine"), "1");
  EXPECT_TRUE(Logged("labels or annotations that begin with io.kubernetes."));
}

TEST_F(HookRowsTest, K23NoValueOfAVariableIsInTheLog) {
  const auto server =
      Serve("a", {"-env", "ADDED=topsecret2", "-hang", "PreUpdateContainerResources"});
  PutFile("10.json", FileText(Path("a.sock"), std::string(kCreatePoint) + ", " + kUpdatePoint,
                              R"(, "timeout": "50ms")"));
  CriClient client = StartNodeWith(1, {"-logger-debug", "*"});
  cri::ContainerConfig config = MakeGuaranteedContainer("main", 1);
  AddVariable(config, "PASSWORD", "topsecret1");
  const Running pod = Run(client, MakeGuaranteedPod("g"), config);
  ASSERT_THAT(client.UpdateContainer(pod.container, cri::LinuxContainerResources()), IsOk());
  EXPECT_TRUE(Logged("a call continues without the answer of a hook server"));
  EXPECT_THAT(daemon_->Log(), Not(HasSubstr("topsecret")));
}

// Handlers that are aliases: hook servers see the kubelet's handler, the runtime its own.

using ::testing::IsEmpty;

class HookAliasesTest : public HookRowsTest {
 protected:
  HookAliasesTest() {
    std::ofstream(Path("node.yaml")) << "runtimeClasses:\n"
                                     << "  runc-told: {Handler: runc}\n"
                                     << "  runc-quiet: {Handler: runc, Hooks: false}\n";
  }
  std::vector<std::string> WithAliases() const { return {"-config", Path("node.yaml")}; }

  std::string RunPod(CriClient& client, const std::string& name, const std::string& handler) {
    const auto pod = client.RunPod(MakeBestEffortPod(name), handler);
    EXPECT_THAT(pod, IsOk());
    return pod.value_or("");
  }
  std::string HandlerAtRuntime(const std::string& pod) {
    return runtime_.WithStore(
        [&pod](CriStore& store) { return store.sandboxes().at(pod).runtime_handler; });
  }
  void Create(CriClient& client, const std::string& pod, const std::string& name) {
    EXPECT_THAT(
        client.CreateContainer(pod, MakeBestEffortPod(name), MakeBestEffortContainer("main")),
        IsOk());
  }
};

TEST_F(HookAliasesTest, ServersSeeTheAliasAlsoAfterARestart) {
  const auto server = Serve("a");
  PutFile("10.json", FileText(Path("a.sock"), std::string(kRunPodPoint) + "," + kCreatePoint));
  StartNode(WithAliases());
  AwaitServers(1);
  std::string told;
  std::string quiet;
  {
    CriClient client = Relayed();
    told = RunPod(client, "told", "runc-told");
    quiet = RunPod(client, "quiet", "runc-quiet");
    EXPECT_EQ(HandlerAtRuntime(told), "runc");
    EXPECT_EQ(HandlerAtRuntime(quiet), "runc");
    const auto asked = Asked<hook_api::PodSandboxHookRequest>("a", "PreRunPodSandbox");
    ASSERT_THAT(asked, SizeIs(1));
    EXPECT_EQ(asked[0].runtime_handler(), "runc-told");
    Create(client, quiet, "quiet");
    EXPECT_THAT(Calls("a", "PreCreateContainer"), IsEmpty());
  }
  // Terminated and not killed: a killed daemon may lack notes of its last milliseconds.
  ASSERT_TRUE(daemon_->Terminate().ok());
  StartDaemonWithHooks(WithAliases());
  AwaitServers(1);
  CriClient client = Relayed();
  for (const std::string& pod : {quiet, told}) {
    cri::ContainerConfig container = MakeBestEffortContainer("after");
    EXPECT_THAT(
        client.CreateContainer(pod, MakeBestEffortPod(pod == told ? "told" : "quiet"), container),
        IsOk());
  }
  const auto asked = Asked<hook_api::ContainerResourceHookRequest>("a", "PreCreateContainer");
  ASSERT_THAT(asked, SizeIs(1)) << "whose class has Hooks: false is the alias's";
  EXPECT_EQ(asked[0].pod_meta().name(), "told");
}

}  // namespace
}  // namespace resmgr::test
