// SPDX-License-Identifier: Apache-2.0
// kill -9 and restarts of the daemon and of containerd under running pods, by whichever door they
// came: no container moves, not for a moment, what comes later is placed beside them, and CPUs are
// given back when their containers end, also while containerd is away.
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/cpu_history.h"
#include "test/e2e/front_doors.h"

namespace resmgr::test {
namespace {

using ::testing::HasSubstr;

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

}  // namespace
}  // namespace resmgr::test
