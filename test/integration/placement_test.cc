// SPDX-License-Identifier: Apache-2.0
// The static policy at work between a client and a runtime: which container runs where, and when.
#include <chrono>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest-spi.h>

#include "test/integration/control_fixture.h"

namespace resmgr::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using grpc::StatusCode::OK;

class PlacementTest : public DaemonTest, public testing::WithParamInterface<ApiVersion> {
 protected:
  void SetUp() override { StartBoth(); }
  CriClient Client() const { return Relayed(GetParam()); }

  static cri::StartContainerRequest StartRequest(const std::string& id) {
    cri::StartContainerRequest request;
    request.set_container_id(id);
    return request;
  }
};

INSTANTIATE_TEST_SUITE_P(BothVersions, PlacementTest,
                         testing::Values(ApiVersion::kV1, ApiVersion::kV1Alpha2),
                         [](const auto& version) {
                           return version.param == ApiVersion::kV1 ? "V1" : "V1Alpha2";
                         });

TEST_P(PlacementTest, ExclusiveCpusAreTakenFromTheSharedOnesAndGivenBack) {
  CriClient client = Client();
  const Running shared = Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  const CpuSet before = CpusAtRuntime(shared.container);
  EXPECT_GE(before.size(), kCpus - 1);

  const Running first = Run(client, MakeGuaranteedPod("a"), MakeGuaranteedContainer("main", 2));
  const Running second = Run(client, MakeGuaranteedPod("b"), MakeGuaranteedContainer("main", 3));
  const CpuSet a = CpusAtRuntime(first.container);
  const CpuSet b = CpusAtRuntime(second.container);
  EXPECT_EQ(a.size(), 2);
  EXPECT_EQ(b.size(), 3);
  EXPECT_FALSE(a.Intersects(b));
  EXPECT_FALSE(CpusAtRuntime(shared.container).Intersects(a | b));
  EXPECT_EQ(CpusAtRuntime(shared.container), before - a - b);
  EXPECT_EQ(client.AllowedCpus(shared.container).value_or(""), (before - a - b).ToString());

  ASSERT_THAT(client.StopContainer(first.container), IsOk());
  EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(shared.container) == before - b; }));
  ASSERT_THAT(client.StopPod(second.pod), IsOk());
  EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(shared.container) == before; }));
}

TEST_P(PlacementTest, NewSharedContainersStayOffExclusiveCpus) {
  CriClient client = Client();
  const Running exclusive = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 4));
  const Running burstable =
      Run(client, MakeBurstablePod("b"), MakeBurstableContainer("main", {1500}));
  // Guaranteed, but not whole CPUs.
  const Running fraction =
      Run(client, MakeGuaranteedPod("f"),
          MakeContainer({.cpu_request = {1500}, .cpu_limit = {1500}, .memory_limit = {1 << 20}}));
  for (const Running& shared : {burstable, fraction}) {
    const CpuSet cpus = CpusAtRuntime(shared.container);
    EXPECT_FALSE(cpus.empty());
    EXPECT_FALSE(cpus.Intersects(CpusAtRuntime(exclusive.container)));
  }
}

TEST_P(PlacementTest, RefusesWhatDoesNotFitAndNamesIt) {
  CriClient client = Client();
  Run(client, MakeGuaranteedPod("a"), MakeGuaranteedContainer("main", 5));
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("too-big")));
  const auto refused = client.CreateContainer(pod, MakeGuaranteedPod("too-big"),
                                              MakeGuaranteedContainer("hungry", 3));
  ASSERT_THAT(refused, HasCode(StatusCode::kResourceExhausted));
  EXPECT_THAT(std::string(Message(refused.status())),
              testing::AllOf(testing::HasSubstr("too-big"), testing::HasSubstr("hungry")));
  const Running fits = Run(client, MakeGuaranteedPod("c"), MakeGuaranteedContainer("main", 2));
  EXPECT_EQ(CpusAtRuntime(fits.container).size(), 2);
}

TEST_P(PlacementTest, AContainerThatEndedByItselfGivesItsCpusBackOnceTheKubeletLooks) {
  CriClient client = Client();
  const Running shared = Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  const CpuSet before = CpusAtRuntime(shared.container);
  const Running init = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("init", 2));
  ASSERT_THAT(client.ContainerStatus(init.container), IsOk());
  EXPECT_EQ(CpusAtRuntime(shared.container), before - CpusAtRuntime(init.container))
      << "it still runs";
  runtime_.WithStore([&](CriStore& store) { store.Exit(init.container); });
  ASSERT_THAT(client.ContainerStatus(init.container), IsOk());
  EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(shared.container) == before; }));
}

TEST_P(PlacementTest, FailedCreationGivesItsCpusBack) {
  CriClient client = Client();
  const Running shared = Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  const CpuSet before = CpusAtRuntime(shared.container);
  runtime_.Script("CreateContainer",
                  {.times = 1, .error = grpc::Status(grpc::StatusCode::UNKNOWN, "no such image")});
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  const auto failed = client.CreateContainer(pod, MakeGuaranteedPod("g"),
                                             MakeGuaranteedContainer("main", kCpus - 2));
  EXPECT_THAT(failed, HasCode(StatusCode::kUnknown));
  EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(shared.container) == before; }));
  EXPECT_THAT(client.CreateContainer(pod, MakeGuaranteedPod("g"),
                                     MakeGuaranteedContainer("main", kCpus - 2)),
              IsOk());
}

TEST_P(PlacementTest, CancelledCreationGivesItsCpusBack) {
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  runtime_.Script("CreateContainer", {.times = 1, .hold = true});
  const auto call = client.Start(
      "CreateContainer",
      CreateRequest(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", kCpus - 2)));
  ASSERT_TRUE(runtime_.WaitForHeld("CreateContainer", 1));
  call->Cancel();
  ASSERT_TRUE(runtime_.WaitForCancelled("CreateContainer", 1, kAtOnce));
  const Running next =
      Run(client, MakeGuaranteedPod("h"), MakeGuaranteedContainer("main", kCpus - 2));
  EXPECT_EQ(CpusAtRuntime(next.container).size(), kCpus - 2);
}

TEST_P(PlacementTest, SlowCreationDelaysNoOtherCall) {
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("slow")));
  runtime_.Script("CreateContainer", {.times = 1, .hold = true});
  const auto slow = client.Start(
      "CreateContainer",
      CreateRequest(pod, MakeGuaranteedPod("slow"), MakeGuaranteedContainer("main", 2)));
  ASSERT_TRUE(runtime_.WaitForHeld("CreateContainer", 1));

  const Running other = Run(client, MakeGuaranteedPod("quick"), MakeGuaranteedContainer("main", 2));
  ASSERT_THAT(client.StopContainer(other.container), IsOk());
  EXPECT_FALSE(slow->Wait(milliseconds(0)).has_value());

  runtime_.Release("CreateContainer");
  const auto result = slow->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  ASSERT_EQ(result->status.error_code(), OK);
  cri::CreateContainerResponse created;
  ASSERT_TRUE(created.ParseFromString(result->messages.at(0)));
  EXPECT_EQ(CpusAtRuntime(created.container_id()).size(), 2);
}

TEST_P(PlacementTest, StartWaitsUntilOthersHaveLeftItsCpus) {
  CriClient client = Client();
  const Running shared = Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  runtime_.Script("UpdateContainerResources", {.hold = true});
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  // The creation does not wait for the other container's update.
  const std::string id =
      Ok(client.CreateContainer(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2)));
  ASSERT_TRUE(runtime_.WaitForHeld("UpdateContainerResources", 1));
  const size_t starts = runtime_.Calls("StartContainer").size();
  const auto start = client.Start("StartContainer", StartRequest(id));
  // When the answer to this is back, the start has been read, too.
  ASSERT_TRUE(client.Call(client.PathOf("Version"), {""}).status.ok());
  EXPECT_EQ(runtime_.Calls("StartContainer").size(), starts);
  EXPECT_FALSE(start->Wait(milliseconds(0)).has_value());

  runtime_.Release("UpdateContainerResources");
  const auto result = start->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status.error_code(), OK) << result->status.error_message();
  EXPECT_FALSE(CpusAtRuntime(shared.container).Intersects(CpusAtRuntime(id)));
}

TEST_P(PlacementTest, StartIsRefusedWhileAnotherCannotLeaveItsCpus) {
  CriClient client = Client();
  Run(client, MakeBestEffortPod("stubborn"), MakeBestEffortContainer("main"));
  runtime_.Script("UpdateContainerResources",
                  {.error = grpc::Status(grpc::StatusCode::UNKNOWN, "the runtime will not")});
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  const std::string id =
      Ok(client.CreateContainer(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2)));
  const size_t starts = runtime_.Calls("StartContainer").size();
  const Status refused = client.StartContainer(id);
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(std::string(Message(refused)), testing::HasSubstr("stubborn"));
  EXPECT_EQ(runtime_.Calls("StartContainer").size(), starts);

  // The update is tried again by itself, and then the start goes through.
  runtime_.ClearScripts();
  EXPECT_THAT(client.StartContainer(id), IsOk());
}

TEST_P(PlacementTest, CancelledStartIsWithdrawn) {
  CriClient client = Client();
  Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  runtime_.Script("UpdateContainerResources", {.hold = true});
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  const std::string id =
      Ok(client.CreateContainer(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2)));
  const size_t starts = runtime_.Calls("StartContainer").size();
  const auto start = client.Start("StartContainer", StartRequest(id));
  ASSERT_TRUE(client.Call(client.PathOf("Version"), {""}).status.ok());
  start->Cancel();
  ASSERT_TRUE(start->Wait(kPatience).has_value());
  ASSERT_TRUE(client.Call(client.PathOf("Version"), {""}).status.ok());
  runtime_.Release("UpdateContainerResources");
  EXPECT_THAT(client.StartContainer(id), IsOk());
  EXPECT_EQ(runtime_.Calls("StartContainer").size(), starts + 1);
}

TEST_P(PlacementTest, RestartedContainerGetsItsCpusAgain) {
  CriClient client = Client();
  const Running first = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  Run(client, MakeGuaranteedPod("h"), MakeGuaranteedContainer("main", 2));
  const CpuSet cpus = CpusAtRuntime(first.container);
  std::string last = first.container;
  for (uint32_t attempt = 1; attempt <= 3; ++attempt) {
    // The dead container stays until the next one has died, as with a kubelet.
    runtime_.WithStore([&](CriStore& store) { store.Exit(last); });
    auto config = MakeGuaranteedContainer("main", 2);
    config.mutable_metadata()->set_attempt(attempt);
    const std::string id = Ok(client.CreateContainer(first.pod, MakeGuaranteedPod("g"), config));
    ASSERT_THAT(client.StartContainer(id), IsOk());
    EXPECT_EQ(CpusAtRuntime(id), cpus);
    ASSERT_THAT(client.RemoveContainer(last), IsOk());
    // The removal of the dead container takes no CPU from the living one.
    const Running probe = Run(client, MakeGuaranteedPod(fmt::format("p{}", attempt)),
                              MakeGuaranteedContainer("main", 2));
    EXPECT_FALSE(CpusAtRuntime(probe.container).Intersects(cpus));
    ASSERT_THAT(client.RemovePod(probe.pod), IsOk());
    last = id;
  }
}

TEST_P(PlacementTest, UpdateKeepsThePolicysCpusAndPassesTheRest) {
  CriClient client = Client();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  const CpuSet cpus = CpusAtRuntime(running.container);
  cri::LinuxContainerResources resources;
  resources.set_cpuset_cpus("0-7");  // as a kubelet's own CPU manager might say
  resources.set_memory_limit_in_bytes(123 << 20);
  ASSERT_THAT(client.UpdateContainer(running.container, resources), IsOk());
  EXPECT_EQ(CpusAtRuntime(running.container), cpus);
  EXPECT_EQ(runtime_.FindContainer(running.container)->resources.memory_limit_in_bytes(),
            123 << 20);
}

TEST_P(PlacementTest, ResizeInPlaceChangesTheExclusiveCpus) {
  CriClient client = Client();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  const CpuSet before = CpusAtRuntime(running.container);
  const auto resize = [&](int cpus) {
    return client.UpdateContainer(running.container,
                                  MakeGuaranteedContainer("main", cpus).linux().resources());
  };
  ASSERT_THAT(resize(4), IsOk());
  EXPECT_EQ(CpusAtRuntime(running.container).size(), 4);
  EXPECT_TRUE(before.IsSubsetOf(CpusAtRuntime(running.container)));
  EXPECT_FALSE(resize(kCpus).ok()) << "one CPU is reserved";
  EXPECT_EQ(CpusAtRuntime(running.container).size(), 4);
  ASSERT_THAT(resize(1), IsOk());
  EXPECT_EQ(CpusAtRuntime(running.container).size(), 1);
}

// Containers that begin with PMEM alone under the real daemon: its timer, the start that the
// runtime reports, and a daemon that is killed meanwhile.

// Node 0 has CPUs 0-7, node 2 is the PMEM beside it.
class ColdStartTest : public DaemonTest {
 protected:
  void SetUp() override { StartRuntime(); }

  void StartHere() {
    StartDaemon(
        Flags({"-policy", "topology-aware", "-reserved-resources", "CPU=1", "-available-resources",
               "CPU=0-7", "-topology", RESMGR_SOURCE_DIR "/test/data/topology/xeon-2s-pmem.xml"}));
  }

  // Runs it; returns its id.
  std::string RunCold(const std::string& duration) {
    CriClient client = Relayed();
    cri::PodSandboxConfig pod = MakeGuaranteedPod("etl");
    (*pod.mutable_annotations())["cold-start.resource-policy.nri.io"] = "duration: " + duration;
    return Run(client, pod, MakeGuaranteedContainer("load", 2)).container;
  }

  std::string MemsOf(const std::string& container) {
    const auto found = runtime_.FindContainer(container);
    return found ? found->resources.cpuset_mems() : "";
  }
};

TEST_F(ColdStartTest, IsCreatedWithPmemAloneAndGetsTheRestInTime) {
  StartHere();
  const std::string id = RunCold("300ms");
  EXPECT_EQ(runtime_.FindContainer(id)->config.linux().resources().cpuset_mems(), "2");
  const CpuSet cpus = CpusAtRuntime(id);
  EXPECT_TRUE(Eventually([&] { return MemsOf(id) == "0,2"; })) << MemsOf(id);
  EXPECT_EQ(CpusAtRuntime(id), cpus);
}

TEST_F(ColdStartTest, EndsUnderANewDaemonWhenTheOldOneWasKilled) {
  StartHere();
  const std::string id = RunCold("1s");
  daemon_->Kill();
  StartHere();
  EXPECT_TRUE(Eventually([&] { return MemsOf(id) == "0,2"; })) << MemsOf(id);
}

TEST_F(ColdStartTest, IsNotCutShortByANewDaemon) {
  StartHere();
  const std::string id = RunCold("1h");
  daemon_->Kill();
  StartHere();
  // The daemon places new containers only after it has taken over the running ones.
  CriClient client = Relayed();
  const Running other = Run(client, MakeGuaranteedPod("web"), MakeGuaranteedContainer("main", 2));
  EXPECT_EQ(MemsOf(other.container), "0,2");
  EXPECT_EQ(MemsOf(id), "2");
}

// A container that may start only when another one has left its CPUs, and that one does not.
class StartFailureTest : public ControlTest {
 protected:
  // Creates a container that wants CPUs of others exclusively, without starting it.
  std::string CreateExclusive(CriClient& client) {
    const auto pod = client.RunPod(MakeGuaranteedPod("g"));
    EXPECT_THAT(pod, IsOk());
    const auto id =
        client.CreateContainer(*pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
    EXPECT_THAT(id, IsOk());
    return id.value_or("");
  }
  bool CountsNotUpdated(int containers) {
    const std::string line = fmt::format("not_updated_containers {}\n", containers);
    return Counts().find(line) != std::string::npos;
  }
};

// Each caller of a fixture would else go on without a daemon, and crash.
TEST_F(StartFailureTest, ADaemonThatDoesNotStartEndsTheTestWithItsLog) {
  bool ended = false;
  const auto start = [&] {
    try {
      StartDaemon(Flags({"-policy", "no-such-policy"}));
    } catch (const std::runtime_error&) {
      ended = true;
    }
  };
  EXPECT_NONFATAL_FAILURE(
      start(), "cri-resmgr ended: cri-resmgr: -policy: there is no policy \"no-such-policy\"");
  EXPECT_TRUE(ended);
  EXPECT_EQ(daemon_, nullptr);
}

TEST_F(StartFailureTest, IsRefusedUntilTheConfigurationLetsItThrough) {
  StartWithMetrics({});
  CriClient client = Relayed();
  const Running stubborn = Run(client, MakeBestEffortPod("stubborn"), MakeBestEffortContainer("s"));
  runtime_.Script("UpdateContainerResources", {.hold = true});
  const std::string id = CreateExclusive(client);
  const size_t starts = runtime_.Calls("StartContainer").size();
  const Status refused = client.StartContainer(id);
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(refused)),
              AllOf(testing::StartsWith("cri-resmgr (static): cannot start: after 10000 ms "),
                    HasSubstr("container default/stubborn/s may still")));
  EXPECT_EQ(runtime_.Calls("StartContainer").size(), starts);
  EXPECT_THAT(Counts(), AllOf(HasSubstr("held_starts_total{result=\"refused\"} 1"),
                              HasSubstr("held_starts_total{result=\"let_through\"} 0")));

  EXPECT_THAT(SetConfig({{"policy", "StartFailurePolicy: perhaps"}}),
              HasSubstr("agent key policy:1: policy.StartFailurePolicy: \"perhaps\" is not"));
  ASSERT_EQ(SetConfig({{"policy", "StartFailurePolicy: ignore"}}), "");
  EXPECT_THAT(Ctl({"config", "show"}).out, HasSubstr("StartFailurePolicy: ignore"));
  EXPECT_THAT(client.StartContainer(id), IsOk());
  EXPECT_EQ(runtime_.Calls("StartContainer").size(), starts + 1);
  EXPECT_TRUE(Logged("container default/g/main is started anyway"));
  EXPECT_THAT(Counts(), AllOf(HasSubstr("held_starts_total{result=\"refused\"} 1"),
                              HasSubstr("held_starts_total{result=\"let_through\"} 1")));

  // The other one is moved as soon as the runtime can.
  runtime_.Release("UpdateContainerResources");
  EXPECT_TRUE(
      Eventually([&] { return !CpusAtRuntime(stubborn.container).Intersects(CpusAtRuntime(id)); }));
}

TEST_F(StartFailureTest, IsLetThroughWhenTheRuntimeRefusesToMoveTheOther) {
  StartWithMetrics({"-start-failure-policy", "ignore"});
  CriClient client = Relayed();
  const Running stubborn = Run(client, MakeBestEffortPod("stubborn"), MakeBestEffortContainer("s"));
  runtime_.Script("UpdateContainerResources",
                  {.error = grpc::Status(grpc::StatusCode::UNKNOWN, "the runtime will not")});
  const std::string id = CreateExclusive(client);
  EXPECT_THAT(client.StartContainer(id), IsOk());
  EXPECT_TRUE(CpusAtRuntime(stubborn.container).Intersects(CpusAtRuntime(id)));
  ASSERT_TRUE(Logged("container default/g/main is started anyway"));
  EXPECT_THAT(daemon_->Log(), AllOf(HasSubstr("container default/g/main is started anyway"),
                                    HasSubstr("container default/stubborn/s may still run on its "
                                              "exclusive CPUs " +
                                              CpusAtRuntime(id).ToString()),
                                    HasSubstr("the runtime will not")));
  EXPECT_THAT(Counts(), AllOf(HasSubstr("held_starts_total{result=\"refused\"} 0"),
                              HasSubstr("held_starts_total{result=\"let_through\"} 1")));
  EXPECT_TRUE(Eventually([&] { return CountsNotUpdated(1); }));
  runtime_.ClearScripts();
  EXPECT_TRUE(
      Eventually([&] { return !CpusAtRuntime(stubborn.container).Intersects(CpusAtRuntime(id)); }));
  EXPECT_TRUE(Eventually([&] { return CountsNotUpdated(0); }));
  EXPECT_TRUE(Logged("the runtime updates container default/stubborn/s again"));
}

// A container that the runtime can never update must not stop the node.
TEST_F(StartFailureTest, OneStartIsRefusedForAContainerThatTheRuntimeRefusesToMove) {
  StartWithMetrics({});
  CriClient client = Relayed();
  Run(client, MakeBestEffortPod("stubborn"), MakeBestEffortContainer("s"));
  runtime_.Script(
      "UpdateContainerResources",
      {.error = grpc::Status(grpc::StatusCode::UNKNOWN, "write cpu.weight: invalid argument")});
  const std::string id = CreateExclusive(client);
  const Status refused = client.StartContainer(id);
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(refused)),
              AllOf(HasSubstr("container default/stubborn/s may still"),
                    HasSubstr("if cpu.idle is 1 in its cgroup, set it to 0; or delete pod "
                              "default/stubborn")));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(client.StartContainer(id), IsOk());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10))
      << "a start that is held is held so long";
  EXPECT_THAT(Ctl({"status"}).out,
              AllOf(HasSubstr("does not update default/stubborn/s"), HasSubstr("cpu.idle")));
  EXPECT_THAT(Ctl({"explain", "stubborn"}).out, HasSubstr("not updated"));
  EXPECT_THAT(Ctl({"history"}).out, HasSubstr("let through"));
}

// The containers of this runtime have no cgroups.
TEST_F(StartFailureTest, RefusedUpdatesAreWrittenOnceTheConfigurationSaysSo) {
  StartWithMetrics({});
  CriClient client = Relayed();
  Run(client, MakeBestEffortPod("stubborn"), MakeBestEffortContainer("s"));
  runtime_.Script("UpdateContainerResources",
                  {.error = grpc::Status(grpc::StatusCode::UNKNOWN, "it will not")});
  CreateExclusive(client);
  EXPECT_TRUE(Logged("cannot update container default/stubborn/s"));
  EXPECT_THAT(Ctl({"status"}).out, Not(HasSubstr("its cpuset cannot be written")));

  EXPECT_THAT(SetConfig({{"policy", "RefusedUpdates: perhaps"}}),
              HasSubstr("agent key policy:1: policy.RefusedUpdates: \"perhaps\" is not one of"));
  ASSERT_EQ(SetConfig({{"policy", "RefusedUpdates: write"}}), "");
  EXPECT_THAT(Ctl({"config", "show"}).out, HasSubstr("RefusedUpdates: write"));
  EXPECT_TRUE(Logged("it will not; its cpuset cannot be written either: there is no cgroup of"));
  EXPECT_THAT(Ctl({"explain", "stubborn"}).out, HasSubstr("its cpuset cannot be written either"));
}

}  // namespace
}  // namespace resmgr::test
