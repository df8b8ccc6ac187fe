// SPDX-License-Identifier: Apache-2.0
// The questions to the runtime after a connect, with every kind of stage that a node can have.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/stages/node_fixture.h"
#include "test/support/cri_client/specs.h"
#include "test/support/ok.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

class OneListTest : public StagesTest {
 protected:
  ~OneListTest() override { Stop(); }

  void StartNode() {
    NriHostingOptions nri;
    nri.host.socket = File("nri.sock");
    nri.host.plugin_path = "";
    Start({}, std::move(nri), HookHostingOptions{.directory = hooks_.path()});
  }
  // Waits until the runtime got `count` calls.
  void Await(std::string_view method, uint64_t count) {
    ASSERT_TRUE(runtime_.WaitForCalls(method, count, kPatience)) << method;
  }

  TempDir hooks_;
};

TEST_F(OneListTest, ARuntimeIsAskedForEachStatusOnceAfterAConnect) {
  constexpr uint64_t kPods = 3;
  constexpr uint64_t kContainers = 6;
  constexpr uint64_t kRounds = 4;
  StartNode();
  CriClient client = Client();
  for (uint64_t i = 0; i < kPods; ++i) {
    const auto config = MakeBestEffortPod("pod-" + std::to_string(i));
    const std::string pod = Ok(client.RunPod(config));
    for (uint64_t k = 0; k < kContainers / kPods; ++k) {
      ASSERT_THAT(
          client.CreateContainer(pod, config, MakeBestEffortContainer("c-" + std::to_string(k))),
          IsOk());
    }
  }
  // NRI plugins are shown facts of a sandbox that only its status has.
  Await("PodSandboxStatus", kPods);
  runtime_.CutConnections();
  Await("ContainerStatus", kContainers);
  Await("PodSandboxStatus", 2 * kPods);
  const uint64_t pods = runtime_.CallCount("PodSandboxStatus");
  const uint64_t containers = runtime_.CallCount("ContainerStatus");
  // A further question after one connect would be seen by the end of the next one.
  for (uint64_t round = 1; round <= kRounds; ++round) {
    runtime_.CutConnections();
    Await("ContainerStatus", containers + round * kContainers);
    Await("PodSandboxStatus", pods + round * kPods);
  }
  EXPECT_EQ(runtime_.CallCount("ContainerStatus"), containers + kRounds * kContainers);
  EXPECT_EQ(runtime_.CallCount("PodSandboxStatus"), pods + kRounds * kPods);
}

}  // namespace
}  // namespace resmgr::test
