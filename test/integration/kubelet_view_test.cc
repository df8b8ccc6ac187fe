// SPDX-License-Identifier: Apache-2.0
// A kubelet's view through the relay: its own resources for containers to which the policy or a
// stage gave others, and its updates of pods if the runtime has no such call.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "test/integration/control_fixture.h"
#include "test/support/fake_kubelet/fake_kubelet.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

using google::protobuf::util::MessageDifferencer;

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

// A kubelet whose own CPU Manager is on, too.

constexpr std::string_view kWarning = "set cpuManagerPolicy to none";

class KubeletCpuManagerTest : public ControlTest {
 protected:
  // Updates the container as the kubelet's CPU Manager does for each one.
  static Status Reconcile(CriClient& client, const Running& running, const std::string& cpus) {
    cri::LinuxContainerResources resources;
    resources.set_cpuset_cpus(cpus);
    return client.UpdateContainer(running.container, resources);
  }
};

TEST_F(KubeletCpuManagerTest, IsOverriddenAndReportedOnce) {
  StartWithMetrics({});
  CriClient client = Relayed();
  const Running exclusive = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  const Running shared = Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  const CpuSet own = CpusAtRuntime(exclusive.container);
  const CpuSet rest = CpusAtRuntime(shared.container);

  EXPECT_THAT(Reconcile(client, exclusive, own.ToString()), IsOk());
  EXPECT_THAT(Reconcile(client, shared, rest.ToString()), IsOk());
  EXPECT_THAT(Counts(), HasSubstr("\ncri_resmgr_overridden_cpusets_total 0"));

  EXPECT_THAT(Reconcile(client, exclusive, rest.ToString()), IsOk());
  EXPECT_THAT(Reconcile(client, shared, own.ToString()), IsOk());
  EXPECT_EQ(CpusAtRuntime(exclusive.container), own);
  EXPECT_EQ(CpusAtRuntime(shared.container), rest);
  EXPECT_THAT(Counts(), HasSubstr("\ncri_resmgr_overridden_cpusets_total 2"));
  ASSERT_TRUE(Logged(kWarning));
  const std::string log = daemon_->Log();
  EXPECT_THAT(log, HasSubstr("an update asks for CPUs " + rest.ToString() +
                             " for container default/g/main, which gets " + own.ToString()));
  EXPECT_EQ(log.find(kWarning), log.rfind(kWarning)) << log;
}

// Hints from the kubelet's pod-resources socket, through the daemon.

constexpr char kBalloons[] = R"(
policy:
  Active: balloons
  balloons:
    reservedResources: {cpu: "cpuset:0"}
    balloonTypes:
    - {name: gpu, namespaces: [default], preferNewBalloons: true, preferSpreadingPods: true,
       preferCloseToDevices: ["podresourceapi:vendor.com/gpu*"]}
)";
constexpr char kTopologyAware[] = R"(
policy:
  Active: topology-aware
  ReservedResources: {CPU: "cpuset:0"}
  topology-aware: {Agent: {PodResourceAPI: true}}
)";

// Two packages of a NUMA node of four CPUs: 0-3 and 4-7.
class PodResourcesDaemonTest : public ControlTest {
 protected:
  void StartKubelet(FakeKubelet::Get get = FakeKubelet::Get::kThere) {
    auto kubelet = FakeKubelet::Start(Path("kubelet.sock"), get);
    ASSERT_THAT(kubelet, IsOk());
    kubelet_ = *std::move(kubelet);
  }
  void Start(const std::string& config) {
    StartRuntime();
    StartAgain(config);
  }
  void StartAgain(const std::string& config) {
    // The daemon writes its state then.
    if (daemon_ != nullptr) EXPECT_THAT(daemon_->Terminate(), IsOk());
    std::vector<std::string> flags = Flags(
        {"-config", WriteFile("node.yaml", config), "-pod-resources-socket", Path("kubelet.sock")});
    *(std::ranges::find(flags, "-topology") + 1) = "synthetic:package:2 numa:1 core:4 pu:1";
    StartDaemon(flags);
    if (HasFatalFailure()) return;
    ASSERT_TRUE(Logged("the runtime holds")) << daemon_->Log();
  }
  void Give(const std::string& pod, int node) {
    kubelet_->Give("default", pod, "main", {{"vendor.com/gpu-a", {"id"}, {node}}});
  }
  // The CPUs of a new Guaranteed container of the pod, which has a device near to this node. The
  // daemon waits 200 ms for the kubelet, which a busy machine may exceed, and asks nothing for some
  // seconds then: the pod is created anew until it was told where the device is.
  CpuSet RunBeside(const std::string& pod, int node) {
    Give(pod, node);
    CpuSet cpus;
    EXPECT_TRUE(Eventually([&] {
      cpus = RunNow(pod);
      if (Problems().empty()) return true;
      EXPECT_THAT(Relayed().RemovePod(last_pod_), IsOk());
      return false;
    })) << Problems().dump();
    return cpus;
  }
  CpuSet RunNow(const std::string& pod) {
    CriClient client = Relayed();
    const Running running = Run(client, MakeGuaranteedPod(pod), MakeGuaranteedContainer("main", 1));
    last_ = running.container;
    last_pod_ = running.pod;
    return CpusAtRuntime(last_);
  }
  Json Problems() const { return Ctl({"status", "-o", "json"}).json()["problems"]; }
  bool ProblemsBecome(size_t count) const {
    return Eventually([&] { return Problems().size() == count; });
  }

  const CpuSet near0_ = CpuSet::Range(0, 3);
  const CpuSet near1_ = CpuSet::Range(4, 7);
  std::unique_ptr<FakeKubelet> kubelet_;
  std::string last_;
  std::string last_pod_;
};

TEST_F(PodResourcesDaemonTest, BalloonsLieNearTheDevicesThatTheKubeletTells) {
  StartKubelet();
  Start(kBalloons);
  EXPECT_TRUE(RunBeside("b", 1).IsSubsetOf(near1_));
  EXPECT_TRUE(RunBeside("a", 0).IsSubsetOf(near0_));
  EXPECT_TRUE(RunBeside("c", 1).IsSubsetOf(near1_));
  const Json shown = Ctl({"explain", "default/c", "-o", "json"}).json();
  EXPECT_THAT(shown.dump(), HasSubstr("pod-resources podresourceapi:vendor.com/gpu-a"));
  EXPECT_EQ(Problems(), Json::array());
}

TEST_F(PodResourcesDaemonTest, TopologyAwareFollowsThem) {
  for (const FakeKubelet::Get get : {FakeKubelet::Get::kThere, FakeKubelet::Get::kMissing}) {
    kubelet_.reset();
    StartKubelet(get);
    if (daemon_ == nullptr) {
      Start(kTopologyAware);
    } else {
      StartAgain(kTopologyAware);
    }
    const std::string name = get == FakeKubelet::Get::kThere ? "new" : "old";
    EXPECT_TRUE(RunBeside(name + "-b", 1).IsSubsetOf(near1_));
    EXPECT_TRUE(RunBeside(name + "-a", 0).IsSubsetOf(near0_));
  }
}

TEST_F(PodResourcesDaemonTest, RestartMovesNothingAndAsksForNoContainerAgain) {
  StartKubelet();
  Start(kBalloons);
  const CpuSet cpus = RunBeside("b", 1);
  const std::string id = last_;
  kubelet_->Give("default", "b", "main", {{"vendor.com/gpu-a", {"id"}, {0}}});
  StartAgain(kBalloons);
  EXPECT_EQ(CpusAtRuntime(id), cpus);
  EXPECT_TRUE(Eventually([this] {
    const Json explained = Ctl({"explain", "default/b", "-o", "json"}).json();
    return explained.dump().find("\"nodes\":\"1\"") != std::string::npos;
  })) << Ctl({"explain", "default/b", "-o", "json"}).out;
}

TEST_F(PodResourcesDaemonTest, HungKubeletDelaysACreationOnceAndIsTold) {
  StartKubelet();
  Start(kBalloons);
  kubelet_->Hang(true);
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  Give("a", 1);
  for (const char* const pod : {"a", "b", "c"})
    EXPECT_THAT(RunNow(pod), SizeIs(1));
  EXPECT_LT(Clock::now() - begin, kPatience);
  ASSERT_TRUE(ProblemsBecome(1));
  EXPECT_EQ(Problems()[0]["kind"], "socket");
  EXPECT_THAT(Problems()[0]["message"], HasSubstr("no answer within 200 ms"));
  const std::string warning = "pod resources are not known";
  ASSERT_TRUE(Logged(warning));
  const std::string log = daemon_->Log();
  const size_t first = log.find(warning);
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find(warning, first + 1), std::string::npos) << log;
}

TEST_F(PodResourcesDaemonTest, AbsentSocketIsToldBeforeAContainerNeedsIt) {
  Start(kBalloons);
  ASSERT_TRUE(ProblemsBecome(1));
  EXPECT_THAT(Problems()[0]["message"], HasSubstr("kubelet.sock: there is no such socket"));
  EXPECT_THAT(RunNow("a"), SizeIs(1));
  EXPECT_EQ(Set("policy: {Active: static, ReservedResources: {CPU: 1}}\n"), 0);
  EXPECT_TRUE(ProblemsBecome(0)) << "no policy needs the kubelet now";
}

}  // namespace
}  // namespace resmgr::test
