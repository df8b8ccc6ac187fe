// SPDX-License-Identifier: Apache-2.0
// The daemon dies and comes back: containers stay where they run, and containers that are gone
// leave nothing behind.
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "test/integration/daemon_fixture.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

class RecoveryTest : public DaemonTest {
 protected:
  void SetUp() override { StartBoth(); }
};

TEST_F(RecoveryTest, RestartMovesNoContainer) {
  CriClient client = Relayed();
  const Running shared = Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  const Running first = Run(client, MakeGuaranteedPod("a"), MakeGuaranteedContainer("main", 2));
  const Running second = Run(client, MakeGuaranteedPod("b"), MakeGuaranteedContainer("main", 3));
  const CpuSet cpus[] = {CpusAtRuntime(shared.container), CpusAtRuntime(first.container),
                         CpusAtRuntime(second.container)};
  daemon_->Kill();
  runtime_.ForgetCalls();
  StartDaemon(StaticFlags());

  CriClient again = Relayed();
  const Running third = Run(again, MakeGuaranteedPod("c"), MakeGuaranteedContainer("main", 1));
  const CpuSet taken = CpusAtRuntime(third.container);
  EXPECT_EQ(taken.size(), 1);
  EXPECT_FALSE(taken.Intersects(cpus[1] | cpus[2]));
  EXPECT_EQ(CpusAtRuntime(first.container), cpus[1]);
  EXPECT_EQ(CpusAtRuntime(second.container), cpus[2]);
  EXPECT_EQ(CpusAtRuntime(shared.container), cpus[0] - taken);
  // The shared one shrank for the third; no other was updated.
  for (const RecordedCall& call : runtime_.Calls("UpdateContainerResources")) {
    cri::UpdateContainerResourcesRequest request;
    ASSERT_TRUE(request.ParseFromString(call.messages.at(0)));
    EXPECT_EQ(request.container_id(), shared.container);
  }
}

TEST_F(RecoveryTest, StoppedWhileTheDaemonWasAwayFreesItsCpus) {
  CriClient client = Relayed();
  const Running running =
      Run(client, MakeGuaranteedPod("a"), MakeGuaranteedContainer("main", kCpus - 2));
  daemon_->Kill();
  ASSERT_THAT(Direct().StopContainer(running.container), IsOk());
  StartDaemon(StaticFlags());
  CriClient again = Relayed();
  const Running next =
      Run(again, MakeGuaranteedPod("b"), MakeGuaranteedContainer("main", kCpus - 2));
  EXPECT_EQ(CpusAtRuntime(next.container).size(), kCpus - 2);
}

TEST_F(RecoveryTest, CallsUnderWayAreNotedBesideTheSocket) {
  CriClient client = Relayed();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  const std::string container =
      Ok(client.CreateContainer(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2)));
  const std::filesystem::path notes = RelaySocket() + ".calls";
  EXPECT_FALSE(std::filesystem::exists(notes));
  runtime_.Script("StartContainer", {.times = 1, .hold = true});
  cri::StartContainerRequest request;
  request.set_container_id(container);
  const auto call = client.Start("StartContainer", request);
  ASSERT_TRUE(runtime_.WaitForHeld("StartContainer", 1));
  EXPECT_EQ(std::filesystem::file_size(notes), 16U);  // the header and one note
  runtime_.Release("StartContainer");
  const auto result = call->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->status.ok());
  EXPECT_EQ(std::filesystem::file_size(notes), 24U);  // and its end
}

TEST_F(RecoveryTest, RequestsDuringTheFirstLookAtTheRuntimeWaitForIt) {
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("a"), MakeGuaranteedContainer("main", 3));
  const CpuSet cpus = CpusAtRuntime(running.container);
  daemon_->Kill();
  runtime_.Script("ListPodSandbox", {.hold = true});
  StartDaemon(StaticFlags());
  ASSERT_TRUE(runtime_.WaitForHeld("ListPodSandbox", 1));

  CriClient again = Relayed();
  const std::string pod = Ok(Direct().RunPod(MakeGuaranteedPod("b")));
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(pod);
  *request.mutable_config() = MakeGuaranteedContainer("main", 3);
  *request.mutable_sandbox_config() = MakeGuaranteedPod("b");
  const auto call = again.Start("CreateContainer", request);
  // Calls that need no decision pass.
  EXPECT_TRUE(again.Call(again.PathOf("Version"), {""}).status.ok());
  EXPECT_FALSE(call->Wait(milliseconds(0)).has_value());
  runtime_.Release("ListPodSandbox");
  const auto result = call->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  ASSERT_TRUE(result->status.ok()) << result->status.error_message();
  cri::CreateContainerResponse created;
  ASSERT_TRUE(created.ParseFromString(result->messages.at(0)));
  EXPECT_EQ(CpusAtRuntime(created.container_id()).size(), 3);
  EXPECT_FALSE(CpusAtRuntime(created.container_id()).Intersects(cpus));
}

// The lists work, but some status calls fail, as with a pod whose shim hangs.
TEST_F(RecoveryTest, UnknownStatusOfAContainerDelaysNoOther) {
  for (const std::string method : {"PodSandboxStatus", "ContainerStatus"}) {
    CriClient client = Relayed();
    const Running shared = Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
    const Running app = Run(client, MakeGuaranteedPod("a"), MakeGuaranteedContainer("main", 2));
    const CpuSet cpus = CpusAtRuntime(app.container);
    const CpuSet others = CpusAtRuntime(shared.container);
    ASSERT_TRUE(daemon_->Terminate().ok());
    runtime_.Script(method, {.error = grpc::Status(grpc::StatusCode::UNKNOWN, "no shim")});
    runtime_.ForgetCalls();
    StartDaemon(StaticFlags());
    CriClient again = Relayed();
    const Running next = Run(again, MakeGuaranteedPod("b"), MakeGuaranteedContainer("main", 3));
    const CpuSet taken = CpusAtRuntime(next.container);
    EXPECT_EQ(taken.size(), 3) << method;
    EXPECT_FALSE(taken.Intersects(cpus)) << method;
    EXPECT_EQ(CpusAtRuntime(app.container), cpus) << method;
    EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(shared.container) == others - taken; }));

    runtime_.ClearScripts();
    runtime_.ForgetCalls();
    EXPECT_TRUE(runtime_.WaitForCalls(method, 1)) << "it is looked for again";
    EXPECT_EQ(CpusAtRuntime(app.container), cpus) << method;
    EXPECT_EQ(CpusAtRuntime(next.container), taken) << method;
    for (const Running& running : {shared, app, next})
      ASSERT_THAT(again.RemovePod(running.pod), IsOk());
  }
}

TEST_F(RecoveryTest, ThousandsOfContainersLeaveNothing) {
  // With a sanitizer fewer containers suffice.
  const int containers = SanitizedPrograms() ? 500 : 4'000;
  constexpr int kWarmUp = 1'000;
  constexpr int64_t kMostGrowthKib = 512;
  CriClient client = Relayed();
  const Running probe = Run(client, MakeGuaranteedPod("probe"), MakeGuaranteedContainer("main", 3));
  const CpuSet first = CpusAtRuntime(probe.container);
  ASSERT_THAT(client.RemovePod(probe.pod), IsOk());

  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("many")));
  int64_t warm = 0;
  for (int i = 0; i < containers; ++i) {
    auto config = MakeGuaranteedContainer(fmt::format("c{}", i % 7), i % 3);
    config.mutable_metadata()->set_attempt(static_cast<uint32_t>(i));
    const auto id = Ok(client.CreateContainer(pod, MakeGuaranteedPod("many"), config));
    ASSERT_THAT(client.RemoveContainer(id), IsOk()) << "container " << i;
    if (i % 500 == 0) runtime_.ForgetCalls();
    if (i == kWarmUp) warm = ProcStatus("VmRSS:");
  }
  if (!SanitizedPrograms()) {
    EXPECT_LE(ProcStatus("VmRSS:"), warm + kMostGrowthKib);
  }
  ASSERT_THAT(client.RemovePod(pod), IsOk());

  const Running again = Run(client, MakeGuaranteedPod("again"), MakeGuaranteedContainer("main", 3));
  EXPECT_EQ(CpusAtRuntime(again.container), first) << "the same CPUs as on an empty machine";
  const Running rest =
      Run(client, MakeGuaranteedPod("rest"), MakeGuaranteedContainer("main", kCpus - 1 - 3));
  EXPECT_EQ(CpusAtRuntime(rest.container).size(), kCpus - 1 - 3);
}

}  // namespace
}  // namespace resmgr::test
