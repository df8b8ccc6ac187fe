// SPDX-License-Identifier: Apache-2.0
// Hints from the kubelet's pod-resources socket, through the daemon.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/control_fixture.h"
#include "test/support/fake_kubelet/fake_kubelet.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

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
