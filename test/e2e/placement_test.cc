// SPDX-License-Identifier: Apache-2.0
// Real containers through cri-resmgr with the static policy: their CPUs, read inside of them.
#include <chrono>
#include <csignal>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/unix_socket.h"
#include "test/e2e/node.h"
#include "test/e2e/node_fixture.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using ::testing::HasSubstr;

// The CPUs that the node keeps for the system; shared containers run there too.
const CpuSet kReserved{0};

class PlacementTest : public NodeTest, public ::testing::WithParamInterface<ApiVersion> {
 protected:
  void SetUp() override {
    Open({.version = GetParam(), .relayed = true});
    if (!HasFatalFailure() && !node().HasVersion())
      GTEST_SKIP() << "this containerd does not serve v1alpha2";
  }

  std::string Inside(const RunningPod& pod) {
    const auto cpus = node().CpusInside(pod);
    return cpus.ok() ? cpus->ToString() : Describe(cpus.status());
  }

  // Containers may grow some time after the one that made room.
  void ExpectGrowsTo(const RunningPod& pod, const CpuSet& cpus) {
    const Status grown =
        WaitUntil("the container grows", kPatience, [&] { return Inside(pod) == cpus.ToString(); });
    EXPECT_TRUE(grown.ok()) << Describe(grown) << ": on " << Inside(pod) << ", not "
                            << cpus.ToString();
  }

  void ExpectServesAgain() {
    cri::VersionResponse version;
    const Status back = WaitUntil("the runtime is back", kPatience, [&] {
      return node().client().Unary("Version", cri::VersionRequest(), &version).ok();
    });
    EXPECT_TRUE(back.ok()) << Describe(back);
  }

  // All CPUs of this machine, on which a shared container runs without exclusive ones.
  CpuSet AllCpus(const RunningPod& shared) {
    const auto cpus = node().CpusInside(shared);
    EXPECT_TRUE(cpus.ok() && cpus->size() >= 2) << "the tests need two CPUs: " << Inside(shared);
    return cpus.value_or(CpuSet());
  }
};

TEST_P(PlacementTest, ASharedContainerMakesRoomForAnExclusiveOneAndGrowsBack) {
  const RunningPod shared = Run(Burstable("shared", MilliCpu{500}));
  const CpuSet all = AllCpus(shared);
  for (const char* name : {"first", "second"}) {
    const RunningPod exclusive = Run(Guaranteed(name, 1));
    const auto own = Ok(node().CpusInside(exclusive));
    EXPECT_EQ(own.size(), 1);
    EXPECT_FALSE(own.Intersects(kReserved));
    EXPECT_EQ(Inside(shared), (all - own).ToString());
    Remove(exclusive);
    ExpectGrowsTo(shared, all);
  }
}

// containerd 1.6 takes a path without the slash in front.
TEST_P(PlacementTest, ACreationIsSeenWhateverItsPathAndItsSections) {
  const RunningPod shared = Run(Burstable("shared", MilliCpu{500}));
  const CpuSet all = AllCpus(shared);
  CriClient& client = node().client();
  const Workload workload = Guaranteed("bare", 1);
  const auto pod = Ok(client.RunPod(node().PodConfig(workload)));
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(pod);
  *request.mutable_config() = Node::ContainerConfig(workload);
  *request.mutable_sandbox_config() = node().PodConfig(workload);
  request.mutable_config()->mutable_windows();
  const CallResult made =
      client.Call(client.PathOf("CreateContainer").substr(1), {request.SerializeAsString()});
  ASSERT_TRUE(made.status.ok()) << made.status.error_message();
  cri::CreateContainerResponse response;
  ASSERT_TRUE(response.ParseFromString(made.messages.at(0)));
  cri::StartContainerRequest start;
  start.set_container_id(response.container_id());
  ASSERT_TRUE(client.Call(client.PathOf("StartContainer").substr(1), {start.SerializeAsString()})
                  .status.ok());
  const auto own = Must(client.AllowedCpus(response.container_id()));
  EXPECT_EQ(CpuSet::Parse(own).value_or(CpuSet()).size(), 1);
  EXPECT_FALSE(CpuSet::Parse(Inside(shared))
                   .value_or(CpuSet())
                   .Intersects(CpuSet::Parse(own).value_or(CpuSet())));
}

TEST_P(PlacementTest, ContainersThatComeLaterStayOffExclusiveCpus) {
  const RunningPod probe = Run(BestEffort("probe"));
  const CpuSet all = AllCpus(probe);
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const std::string own = Inside(exclusive);
  const CpuSet rest = all - CpuSet::Parse(own).value_or(CpuSet());
  EXPECT_EQ(Inside(Run(BestEffort("late"))), rest.ToString());
  EXPECT_EQ(Inside(Run(Burstable("later", MilliCpu{100}))), rest.ToString());
  // A whole pod's worth of CPU that is not a whole number is not exclusive.
  Workload fractional = Guaranteed("fractional", 1);
  fractional.cpu_request = fractional.cpu_limit = MilliCpu{500};
  EXPECT_EQ(Inside(Run(fractional)), rest.ToString());
  EXPECT_EQ(Inside(exclusive), own);
}

TEST_P(PlacementTest, MoreThanThereIsIsRefusedAndChangesNothing) {
  const RunningPod shared = Run(BestEffort("shared"));
  const CpuSet all = AllCpus(shared);
  const Workload greedy = Guaranteed("greedy", all.size());  // one of them is reserved
  const cri::PodSandboxConfig config = node().PodConfig(greedy);
  const auto pod = Ok(node().client().RunPod(config));
  const auto refused = node().client().CreateContainer(pod, config, Node::ContainerConfig(greedy));
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("greedy"));
  EXPECT_EQ(Inside(shared), all.ToString());

  const RunningPod modest = Run(Guaranteed("modest", 1));
  EXPECT_EQ(node().CpusInside(modest).value_or(CpuSet()).size(), 1);
}

TEST_P(PlacementTest, ARestartedContainerKeepsItsCpus) {
  const RunningPod shared = Run(BestEffort("shared"));
  const CpuSet all = AllCpus(shared);
  RunningPod pod = Run(Guaranteed("phoenix", 1));
  const std::string first_id = pod.container_id;
  const std::string own = Inside(pod);

  // The next attempt is created beside the stopped one, as by a kubelet.
  ASSERT_TRUE(node().client().StopContainer(first_id).ok());
  Workload again = pod.workload;
  again.attempt = 1;
  const Status restarted = node().StartContainer(again, &pod);
  ASSERT_TRUE(restarted.ok()) << Describe(restarted);
  EXPECT_EQ(Inside(pod), own);
  // The end of the old one takes nothing from the new one.
  ASSERT_TRUE(node().client().RemoveContainer(first_id).ok());
  EXPECT_EQ(Inside(pod), own);
  EXPECT_EQ(Inside(shared), (all - CpuSet::Parse(own).value_or(CpuSet())).ToString());
  Remove(pod);
  ExpectGrowsTo(shared, all);
}

TEST_P(PlacementTest, AnUpdateByTheClientDoesNotMoveAContainer) {
  const RunningPod shared = Run(Burstable("shared", MilliCpu{500}));
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const std::string shared_cpus = Inside(shared);
  const std::string own = Inside(exclusive);
  cri::LinuxContainerResources resources;
  resources.set_cpuset_cpus(own);
  const Status updated = node().client().UpdateContainer(shared.container_id, resources);
  EXPECT_TRUE(updated.ok()) << Describe(updated);
  EXPECT_EQ(Inside(shared), shared_cpus);
  EXPECT_EQ(Inside(exclusive), own);
}

TEST_P(PlacementTest, ContainersThatWereThereBeforeTheRelayAreTakenOver) {
  ASSERT_TRUE(node().relay().Terminate().ok());
  const Workload workload = BestEffort("earlier");
  const cri::PodSandboxConfig config = node().PodConfig(workload);
  CriClient& runtime = node().runtime();
  const auto pod_id = Ok(runtime.RunPod(config));
  const auto id = Ok(runtime.CreateContainer(pod_id, config, Node::ContainerConfig(workload)));
  ASSERT_TRUE(runtime.StartContainer(id).ok());
  const CpuSet all = CpuSet::Parse(runtime.AllowedCpus(id).value_or("")).value_or(CpuSet());

  ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
  node().watch().Add(id, workload.name, /*exclusive=*/false);
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const CpuSet own = node().CpusInside(exclusive).value_or(CpuSet());
  EXPECT_EQ(own.size(), 1);
  EXPECT_EQ(runtime.AllowedCpus(id).value_or(""), (all - own).ToString());
}

TEST_P(PlacementTest, ContainerdMayDieAndComeBackUnderTheRelay) {
  const RunningPod shared = Run(BestEffort("shared"));
  const CpuSet all = AllCpus(shared);
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const std::string own = Inside(exclusive);
  const std::string rest = Inside(shared);

  node().containerd().Kill();
  cri::VersionResponse version;
  EXPECT_EQ(node().client().Unary("Version", cri::VersionRequest(), &version).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  ASSERT_TRUE(node().RestartContainerd().ok()) << node().containerd().Log();
  ExpectServesAgain();

  EXPECT_EQ(Inside(exclusive), own);
  EXPECT_EQ(Inside(shared), rest);
  EXPECT_EQ(Inside(Run(BestEffort("late"))), rest);
  Remove(exclusive);
  ExpectGrowsTo(shared, all);
}

// Restarts the relay under running containers in the given way.
class RelayRestartTest : public PlacementTest {
 protected:
  void RestartsAndMovesNothing(int signal_number) {
    const RunningPod shared = Run(BestEffort("shared"));
    const CpuSet all = AllCpus(shared);
    const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
    const std::string own = Inside(exclusive);
    const std::string rest = Inside(shared);

    node().relay().process().Signal(signal_number);
    ASSERT_TRUE(node().relay().process().Wait(kPatience).ok());
    const auto still = node().containerd().AwaitAllowedCpus(exclusive.container_id);
    EXPECT_EQ(still.value_or(CpuSet()).ToString(), own);
    ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();

    // A new container is placed beside the existing ones, which shows that they are known again.
    const RunningPod late = Run(BestEffort("late"));
    EXPECT_EQ(Inside(late), rest);
    EXPECT_EQ(Inside(exclusive), own);
    EXPECT_EQ(Inside(shared), rest);
    Remove(exclusive);
    ExpectGrowsTo(shared, all);
    ExpectGrowsTo(late, all);
  }
};

TEST_P(RelayRestartTest, AKilledRelayMovesNothingWhenItIsBack) {
  RestartsAndMovesNothing(SIGKILL);
}

TEST_P(RelayRestartTest, AStoppedRelayMovesNothingWhenItIsBack) {
  RestartsAndMovesNothing(SIGTERM);
}

TEST_P(RelayRestartTest, AStoppedRelayEndsWellAndTakesItsSocketAway) {
  const auto exit_status = Must(node().relay().Terminate());
  EXPECT_EQ(exit_status, 0);
  EXPECT_FALSE(ConnectUnix((node().containerd().directory() / "relay.sock").string()).ok());
}

std::string VersionName(const ::testing::TestParamInfo<ApiVersion>& info) {
  return info.param == ApiVersion::kV1 ? "V1" : "V1Alpha2";
}

INSTANTIATE_TEST_SUITE_P(Containerd, PlacementTest, ::testing::Values(ApiVersion::kV1),
                         VersionName);
INSTANTIATE_TEST_SUITE_P(Long, PlacementTest, ::testing::Values(ApiVersion::kV1Alpha2),
                         VersionName);
INSTANTIATE_TEST_SUITE_P(Containerd, RelayRestartTest, ::testing::Values(ApiVersion::kV1),
                         VersionName);
INSTANTIATE_TEST_SUITE_P(Long, RelayRestartTest, ::testing::Values(ApiVersion::kV1Alpha2),
                         VersionName);

// Pods whose cgroups are named as systemd names slices: their class shows in nothing else.

using Names = Containerd::CgroupNames;

class CgroupNamesTest : public NodeTest,
                        public ::testing::WithParamInterface<std::tuple<const char*, Names>> {
 protected:
  void SetUp() override {
    Open({.policy = std::get<0>(GetParam()), .cgroup_names = std::get<1>(GetParam())});
  }
};

TEST_P(CgroupNamesTest, TellTheClassOfAPod) {
  const bool plus = std::get<0>(GetParam()) == std::string_view("static-plus");
  const RunningPod shared = Run(BestEffort("shared"));
  const CpuSet everywhere = plus ? Unreserved() : All();
  EXPECT_EQ(CpuSetOf(shared), everywhere);

  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const CpuSet own = CpuSetOf(exclusive);
  EXPECT_EQ(own.size(), 1);
  const CpuSet rest = everywhere - own;
  EXPECT_EQ(CpuSetOf(shared), rest.empty() ? CpuSet{0} : rest);
  Remove(exclusive);
  ExpectOn(shared, everywhere);

  // A whole CPU in a Burstable pod is exclusive for one of the policies only.
  const RunningPod burstable = Run(Burstable("burstable", MilliCpu{1000}));
  EXPECT_EQ(CpuSetOf(burstable).size(), plus ? 1 : All().size());
}

std::string CaseName(const ::testing::TestParamInfo<CgroupNamesTest::ParamType>& param_info) {
  const auto& [policy, names] = param_info.param;
  return std::string(policy == std::string_view("static") ? "Static" : "StaticPlus") +
         (names == Names::kSystemd ? "Systemd" : "Cgroupfs");
}

INSTANTIATE_TEST_SUITE_P(Containerd, CgroupNamesTest,
                         ::testing::Combine(::testing::Values("static-plus"),
                                            ::testing::Values(Names::kCgroupfs, Names::kSystemd)),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(Long, CgroupNamesTest,
                         ::testing::Combine(::testing::Values("static"),
                                            ::testing::Values(Names::kCgroupfs, Names::kSystemd)),
                         CaseName);

}  // namespace
}  // namespace resmgr::test
