// SPDX-License-Identifier: Apache-2.0
// Restarts of the relay and of containerd under running pods: no container is moved or updated.
#include <csignal>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node_fixture.h"

namespace resmgr::test {
namespace {

struct Case {
  const char* name;
  const char* policy;
  const char* reserved;
};

class RestartTest : public NodeTest, public ::testing::WithParamInterface<Case> {
 protected:
  void SetUp() override { Open({.policy = GetParam().policy, .reserved = GetParam().reserved}); }

  // Runs `restart` under three containers.
  template <typename Restart>
  void MovesNobody(const Restart& restart) {
    const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
    const CpuSet everywhere = CpuSetOf(shared);
    const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
    const RunningPod idle = Run(BestEffort("idle"));
    EXPECT_EQ(CpuSetOf(exclusive).size(), 1);
    const auto places = PlacesOf(shared, exclusive, idle);
    const size_t updates = containerd().Updates();

    restart();
    // A new container is placed beside the existing ones, which shows that they are known again.
    const RunningPod late = Run(BestEffort("late"));
    EXPECT_EQ(CpusOf(late), CpusOf(idle));
    EXPECT_EQ(PlacesOf(shared, exclusive, idle), places);
    EXPECT_EQ(containerd().Updates(), updates);

    Remove(exclusive);
    ExpectOn(shared, everywhere);
    ExpectOn(late, everywhere);
  }

  void EndRelay(int signal_number) {
    node().relay().process().Signal(signal_number);
    ASSERT_TRUE(node().relay().process().Wait(kPatience).ok());
  }
  void StartRelay() { ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog(); }
  void RestartContainerd() {
    ASSERT_TRUE(node().RestartContainerd().ok()) << containerd().Log();
    cri::VersionResponse version;
    const Status back = WaitUntil("the runtime is back", kPatience, [&] {
      return node().client().Unary("Version", cri::VersionRequest(), &version).ok();
    });
    ASSERT_TRUE(back.ok()) << Describe(back);
  }
};

TEST_P(RestartTest, OfAKilledRelay) {
  MovesNobody([this] {
    EndRelay(SIGKILL);
    StartRelay();
  });
}

TEST_P(RestartTest, OfAStoppedRelay) {
  MovesNobody([this] {
    EndRelay(SIGTERM);
    StartRelay();
  });
}

TEST_P(RestartTest, OfContainerd) {
  MovesNobody([this] {
    node().containerd().Kill();
    RestartContainerd();
  });
}

TEST_P(RestartTest, OfBoth) {
  MovesNobody([this] {
    node().containerd().Kill();
    EndRelay(SIGKILL);
    StartRelay();
    RestartContainerd();
  });
}

std::string NameOfCase(const ::testing::TestParamInfo<Case>& tested) {
  return tested.param.name;
}

INSTANTIATE_TEST_SUITE_P(Containerd, RestartTest,
                         ::testing::Values(Case{"TopologyAware", "topology-aware", ""}),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(Long, RestartTest,
                         ::testing::Values(Case{"StaticPlus", "static-plus", "cpuset:0"}),
                         NameOfCase);

}  // namespace
}  // namespace resmgr::test
