// SPDX-License-Identifier: Apache-2.0
// Rules that hold for each door: the relay in front of containerd, or a plugin of containerd's NRI,
// with the client speaking to containerd itself.
#include "test/e2e/front_doors.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "test/e2e/placement_watch.h"
#include "test/support/api_server/api_server.h"
#include "test/support/containerd/child_process.h"
#include "test/support/programs/programs.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using ::testing::HasSubstr;

class CpuFileTest : public FrontDoorsTest {
 protected:
  static std::string ExpectedCpuFile(const CpuSet& cpus, const CpuSet& exclusive) {
    return CpuFileOf(cpus, exclusive, TheMachine().node_ids().ToString());
  }
  void ExpectCpuFile(const RunningPod& pod, const CpuSet& cpus, const CpuSet& exclusive) {
    const std::string expected = ExpectedCpuFile(cpus, exclusive);
    const Status told =
        WaitUntil("the file follows", kPatience, [&] { return CpuFile(pod) == expected; });
    EXPECT_TRUE(told.ok()) << CpuFile(pod) << "in place of " << expected << node().RelayLog();
  }
};

TEST_P(FrontDoorsTest, ExclusiveContainersHaveTheirCpusAndSharedOnesLeaveThem) {
  OpenDoor();
  if (HasFatalFailure() || IsSkipped()) return;
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  ExpectOn(shared, All());
  for (const char* const name : {"first", "second"}) {
    const RunningPod exclusive = Run(Guaranteed(name, 1));
    const CpuSet own = Inside(exclusive);
    EXPECT_EQ(own.size(), 1);
    EXPECT_TRUE((own - Unreserved()).empty());
    EXPECT_EQ(Inside(shared), All() - own);
    Remove(exclusive);
    ExpectOn(shared, All());
  }
  Remove(shared);
}

TEST_P(CpuFileTest, AContainerReadsItsCpusAndEachChange) {
  OpenDoor("static", "cpuFiles: {Containers: all}\n");
  if (HasFatalFailure() || IsSkipped()) return;
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  EXPECT_EQ(CpuFile(shared), ExpectedCpuFile(All(), {})) << "from its first instruction on";
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const CpuSet own = Inside(exclusive);
  EXPECT_EQ(CpuFile(exclusive), ExpectedCpuFile(own, own));
  ExpectCpuFile(shared, All() - own, {});
  RestartDaemon(SIGKILL);
  Remove(exclusive);
  ExpectOn(shared, All());
  ExpectCpuFile(shared, All(), {});
  RestartDaemon(SIGTERM);
  RunningPod resized = Run(Sized("resized", MilliCpu{500}));
  EXPECT_EQ(CpuFile(resized), ExpectedCpuFile(All(), {}));
  Resize(Guaranteed("resized", 1), &resized);
  const Status alone =
      WaitUntil("it has one CPU", kPatience, [&] { return CpuSetOf(resized).size() == 1; });
  ASSERT_TRUE(alone.ok()) << CpusOf(resized);
  ExpectCpuFile(resized, CpuSetOf(resized), CpuSetOf(resized));
  ExpectCpuFile(shared, All() - CpuSetOf(resized), {});
  Remove(resized);
  Remove(shared);
}

TEST_P(FrontDoorsTest, AResizeIsDecided) {
  OpenDoor();
  if (HasFatalFailure() || IsSkipped()) return;
  RunningPod pod = Run(Sized("pod", MilliCpu{500}));
  ExpectOn(pod, All());
  Resize(Guaranteed("pod", 1), &pod);
  const Status alone =
      WaitUntil("it has one CPU", kPatience, [&] { return CpuSetOf(pod).size() == 1; });
  EXPECT_TRUE(alone.ok()) << CpusOf(pod) << node().RelayLog();
  EXPECT_EQ(Inside(pod).size(), 1);
  Resize(Sized("pod", MilliCpu{500}), &pod);
  ExpectOn(pod, All());
  EXPECT_TRUE(HasShares(pod, 512));
}

TEST_P(FrontDoorsTest, AContainerThatDoesNotFitIsRefusedAndChangesNothing) {
  OpenDoor();
  if (HasFatalFailure() || IsSkipped()) return;
  const RunningPod shared = Run(BestEffort("shared"));
  const auto refused = node().Run(Guaranteed("large", All().size()));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("cri-resmgr (static): needs"));
  ExpectOn(shared, All());
  Remove(Run(Guaranteed("small", 1)));
}

// Delivers a configuration as an agent does when a ConfigMap changes.
TEST_P(FrontDoorsTest, PoliciesThatAreDeliveredTakeOverWhatRuns) {
  OpenDoor("");
  if (HasFatalFailure() || IsSkipped()) return;
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  EXPECT_EQ(Inside(shared), All());
  ASSERT_TRUE(node().Deliver("Active: static").ok()) << node().RelayLog();
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const CpuSet own = Inside(exclusive);
  EXPECT_EQ(own.size(), 1);
  ExpectOn(shared, All() - own);

  const Status refused = node().Deliver("Active: no-such-policy");
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("no-such-policy"));
  ASSERT_TRUE(node().Deliver("Active: static-plus").ok()) << node().RelayLog();
  EXPECT_EQ(Inside(exclusive), own);
  Remove(exclusive);
  // This keeps shared containers off the reserved CPU while there are others.
  ExpectOn(shared, Unreserved());
}

INSTANTIATE_TEST_SUITE_P(Containerd, FrontDoorsTest,
                         ::testing::Values(Door::kRelay, Door::kNriPlugin), NameOf);
INSTANTIATE_TEST_SUITE_P(Containerd, CpuFileTest, ::testing::Values(Door::kRelay, Door::kNriPlugin),
                         NameOf);

// ConfigMaps reach the daemon by way of the built agent, whichever door containers come through.
class FrontDoorAgentTest : public FrontDoorsTest {
 protected:
  static constexpr char kNode[] = "n1";
  static constexpr char kMap[] = "cri-resmgr-config.default";

  // The daemon has no policy until a map sets one.
  void Open() {
    OpenDoor("");
    if (HasFatalFailure() || IsSkipped()) return;
    const Status started = api_.Start();
    ASSERT_TRUE(started.ok()) << Describe(started);
    api_.SetNode(kNode, {});
    std::ofstream(directory_.File("kubeconfig")) << api_.Kubeconfig();
    ::setenv("NODE_NAME", kNode, 1);
    auto agent = ChildProcess::Start(
        {Program("cri-resmgr-agent"), "-kubeconfig", directory_.File("kubeconfig"),
         "-cri-resmgr-socket", node().ConfigSocket(), "-agent-socket",
         directory_.File("agent.sock"), "-start-spread=0s", "-report-spread=0s"},
        directory_.File("agent.log"));
    ASSERT_TRUE(agent.ok()) << Describe(agent.status());
    agent_ = *std::move(agent);
  }
  // Waits until the node shows the result of the map.
  void Apply(const std::string& policy, const std::string& fate) {
    api_.SetConfigMap(kMap, {{"policy", policy}});
    const Status told = WaitUntil("the node shows the map's fate", kPatience, [&] {
      return api_.Annotation(kNode, "cri-resource-manager.intel.com/config-status")
          .starts_with(fate);
    });
    EXPECT_TRUE(told.ok()) << LastLines(directory_.File("agent.log")) << node().RelayLog();
  }

  const TempDir directory_;
  ApiServer api_;
  std::unique_ptr<ChildProcess> agent_;
};

TEST_P(FrontDoorAgentTest, AConfigMapChangesThePolicyUnderRunningContainers) {
  Open();
  if (HasFatalFailure() || IsSkipped()) return;
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  EXPECT_EQ(Inside(shared), All());
  Apply("Active: static", "accepted");
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const CpuSet own = Inside(exclusive);
  EXPECT_EQ(own.size(), 1);
  ExpectOn(shared, All() - own);

  Apply("Active: no-such-policy", "rejected");
  EXPECT_EQ(Inside(exclusive), own);
  ExpectOn(shared, All() - own);

  Apply("Active: static-plus", "accepted");
  EXPECT_EQ(Inside(exclusive), own);
  Remove(exclusive);
  // This keeps shared containers off the reserved CPU while there are others.
  ExpectOn(shared, Unreserved());

  Apply("Active: topology-aware", "accepted");
  // This leaves a CPU for shared containers beside the reserved one.
  if (All().size() == 2) return;
  const RunningPod late = Run(Guaranteed("late", 1));
  EXPECT_EQ(Inside(late).size(), 1);
  EXPECT_FALSE(Inside(shared).Intersects(Inside(late)));
}

INSTANTIATE_TEST_SUITE_P(Containerd, FrontDoorAgentTest,
                         ::testing::Values(Door::kRelay, Door::kNriPlugin), NameOf);

// kill -9 and restarts of the daemon and of containerd under running pods, by whichever door they
// came: no container moves, not for a moment, what comes later is placed beside them, and CPUs are
// given back when their containers end, also while containerd is away.
class FrontDoorRestartsTest : public FrontDoorsTest {
 protected:
  void KillContainerd() { node().containerd().Kill(); }

  // After `what` the grant of these CPUs is known and no container has moved meanwhile.
  void ExpectNothingMoved(const std::string& what, const std::vector<RunningPod>& pods,
                          const CpuSet& own, const CpuHistory& history) {
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, what);
    const RunningPod late = Run(BestEffort("late"));
    EXPECT_EQ(Inside(late), All() - own);
    Remove(late);
    for (const RunningPod& pod : pods) {
      const CpuSet cpus = pod.workload.Exclusive() ? own : All() - own;
      EXPECT_EQ(Inside(pod), cpus) << pod.workload.name;
      EXPECT_EQ(CpusOf(pod), cpus.ToString()) << pod.workload.name;
      EXPECT_EQ(MemsOf(pod), mems_) << pod.workload.name;
      EXPECT_EQ(history.Describe(pod.container_id), cpus.ToString()) << pod.workload.name;
    }
  }

  // No other container gets them, and when their own has ended they are free.
  void ExpectReleased(const std::vector<RunningPod>& pods) {
    const auto refused = node().Run(Guaranteed("all", Unreserved().size()));
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("cri-resmgr (static): needs"));
    Remove(pods[1]);
    ExpectOn(pods[0], All());
    const RunningPod next = Run(Guaranteed("next", Unreserved().size()));
    EXPECT_EQ(Inside(next), Unreserved());
    ExpectOn(pods[0], All() - Unreserved());
  }

  std::string mems_;
};

TEST_P(FrontDoorRestartsTest, NothingMovesWhateverIsKilled) {
  OpenDoor();
  if (HasFatalFailure() || IsSkipped()) return;
  const std::vector<RunningPod> pods = {Run(Burstable("shared", MilliCpu{300})),
                                        Run(Guaranteed("exclusive", 1))};
  const CpuSet own = Inside(pods[1]);
  EXPECT_EQ(own.size(), 1);
  EXPECT_TRUE((own - Unreserved()).empty());
  ExpectOn(pods[0], All() - own);
  mems_ = MemsOf(pods[0]);
  CpuHistory history([this](const std::string& id) { return containerd().AllowedCpus(id); });
  for (const RunningPod& pod : pods)
    history.Add(pod.container_id);

  const pid_t daemon = node().relay().process().pid();
  for (const char* const what : {"containerd is killed", "containerd is killed again"}) {
    KillContainerd();
    RestartContainerd();
    ExpectServing();
    ExpectNothingMoved(what, pods, own, history);
  }
  EXPECT_TRUE(node().relay().process().Running());
  EXPECT_EQ(node().relay().process().pid(), daemon) << "it has come back by itself";

  RestartDaemon(SIGKILL);
  ExpectNothingMoved("the daemon is killed", pods, own, history);
  RestartDaemon(SIGTERM);
  ExpectNothingMoved("the daemon is told to end", pods, own, history);

  KillContainerd();
  EndDaemon(SIGKILL);
  RestartContainerd();
  StartDaemon();
  ExpectServing();
  ExpectNothingMoved("both are killed, containerd comes first", pods, own, history);
  EndDaemon(SIGKILL);
  KillContainerd();
  StartDaemon();
  RestartContainerd();
  ExpectServing();
  ExpectNothingMoved("both are killed, the daemon comes first", pods, own, history);
  ExpectReleased(pods);
}

TEST_P(FrontDoorRestartsTest, AContainerThatEndsWhileContainerdIsAwayGivesItsCpusBack) {
  OpenDoor();
  if (HasFatalFailure() || IsSkipped()) return;
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  ExpectOn(shared, All() - CpuSetOf(exclusive));
  ASSERT_TRUE(containerd().AwaitAllowedCpus(exclusive.container_id).has_value());
  node().containerd().Kill();
  ASSERT_TRUE(containerd().EndProcess(exclusive.container_id));
  const Status ended = WaitUntil("the container ends", kPatience, [&] {
    return !containerd().AllowedCpus(exclusive.container_id).has_value();
  });
  ASSERT_TRUE(ended.ok()) << Describe(ended);
  RestartContainerd();
  ExpectServing();
  ExpectOn(shared, All());
  Remove(Run(Guaranteed("next", Unreserved().size())));
}

INSTANTIATE_TEST_SUITE_P(Containerd, FrontDoorRestartsTest,
                         ::testing::Values(Door::kRelay, Door::kNriPlugin), NameOf);

// Pods come and go at the same time, and each exclusive one moves the others: through each door no
// call hangs, and all remaining containers are at their right places. A runtime's NRI before 0.12.1
// can lock up when a plugin updates containers beside such calls (containerd issue 13733).
class LifecycleStormTest : public FrontDoorsTest {
 protected:
  // Plays the life of a pod, from its beginning to its end. From any thread.
  void Live(const Workload& workload) {
    const cri::PodSandboxConfig config = node().PodConfig(workload);
    const auto made = Ok(node().client().RunPod(config));
    const auto created =
        Ok(node().client().CreateContainer(made, config, Node::ContainerConfig(workload)));
    ASSERT_THAT(node().client().StartContainer(created), IsOk());
    ASSERT_THAT(node().client().StopContainer(created), IsOk());
    ASSERT_THAT(node().client().RemoveContainer(created), IsOk());
    ASSERT_THAT(node().client().StopPod(made), IsOk());
    ASSERT_THAT(node().client().RemovePod(made), IsOk());
  }
};

TEST_P(LifecycleStormTest, NoCallHangs) {
  OpenDoor();
  if (HasFatalFailure() || IsSkipped()) return;
  constexpr int kRounds = 12;
  constexpr int kShared = 3;
  const RunningPod stays = Run(Burstable("stays", MilliCpu{300}));
  std::vector<std::thread> threads;
  for (int i = 0; i <= kShared; ++i) {
    threads.emplace_back([this, i] {
      const std::string name = fmt::format("pod{}", i);
      for (int round = 0; round < kRounds && !HasFailure(); ++round)
        Live(i == 0 ? Guaranteed(name, 1) : Burstable(name, MilliCpu{100}));
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  ExpectOn(stays, All());
  EXPECT_THAT(node().WholeRelayLog(), testing::Not(testing::HasSubstr("updated by NRI")));
  Remove(stays);
}

INSTANTIATE_TEST_SUITE_P(Long, LifecycleStormTest,
                         ::testing::Values(Door::kRelay, Door::kNriPlugin), NameOf);

}  // namespace
}  // namespace resmgr::test
