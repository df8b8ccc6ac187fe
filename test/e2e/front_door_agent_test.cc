// SPDX-License-Identifier: Apache-2.0
// ConfigMaps reach the daemon by way of the built agent, whichever door containers come through.
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "test/e2e/front_doors.h"
#include "test/support/api_server/api_server.h"
#include "test/support/containerd/child_process.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

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

}  // namespace
}  // namespace resmgr::test
