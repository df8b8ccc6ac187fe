// SPDX-License-Identifier: Apache-2.0
// Pods come and go at the same time, and each exclusive one moves the others: through each door no
// call hangs, and all remaining containers are at their right places. A runtime's NRI before 0.12.1
// can lock up when a plugin updates containers beside such calls (containerd issue 13733).
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/front_doors.h"
#include "test/support/ok.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

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

INSTANTIATE_TEST_SUITE_P(Containerd, LifecycleStormTest,
                         ::testing::Values(Door::kRelay, Door::kNriPlugin), NameOf);

}  // namespace
}  // namespace resmgr::test
