// SPDX-License-Identifier: Apache-2.0
// Container events of a real runtime: changes by other clients are learned at once, without any
// call that passes the relay.
#include <chrono>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "test/e2e/node_fixture.h"

namespace resmgr::test {
namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

// The relay lists by itself some seconds after it has connected, and then each minute: within this
// time at most two of the steps below could be learned so.
constexpr seconds kFewLists{50};
constexpr seconds kSoon{15};

class EventsTest : public NodeTest {
 protected:
  void SetUp() override {
    Open({});
    if (HasFatalFailure()) return;
    cri::VersionResponse version;
    ASSERT_TRUE(node().runtime().Unary("Version", cri::VersionRequest(), &version).ok());
    // "1.6.20~ds1", "v1.6.20"
    if (version.runtime_version().find("1.6.") <= 1) {
      GTEST_SKIP() << "containerd " << version.runtime_version()
                   << " has no container events; scripts/test-runtimes fetches one that has";
    }
  }
  static bool Soon(const std::function<bool()>& condition) {
    return WaitUntil("it is learned", kSoon, condition).ok();
  }
};

TEST_F(EventsTest, ExitsRemovalsAndCreationsOfOthersAreLearnedWithoutALookAtTheRuntime) {
  const auto start = Clock::now();
  const RunningPod shared = Run(BestEffort("shared"));
  CriClient& runtime = node().runtime();
  for (const std::string name : {"exits-1", "exits-2"}) {
    const RunningPod exclusive = Run(Guaranteed(name, 1));
    ASSERT_NE(CpuSetOf(shared), All());
    ASSERT_TRUE(runtime.StopContainer(exclusive.container_id).ok());
    EXPECT_TRUE(Soon([&] { return CpusOf(shared) == All().ToString(); })) << name;
  }
  const RunningPod removed = Run(Guaranteed("removed", 1));
  ASSERT_TRUE(runtime.StopPod(removed.pod_id).ok());
  ASSERT_TRUE(runtime.RemovePod(removed.pod_id).ok());
  EXPECT_TRUE(Soon([&] { return CpusOf(shared) == All().ToString(); })) << "removed";

  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const Workload stranger = BestEffort("stranger");
  const cri::PodSandboxConfig config = node().PodConfig(stranger);
  const auto pod = Ok(runtime.RunPod(config));
  const auto container = Ok(runtime.CreateContainer(pod, config, Node::ContainerConfig(stranger)));
  ASSERT_TRUE(runtime.StartContainer(container).ok());
  EXPECT_TRUE(Soon([&] { return containerd().CgroupCpus(container) == CpusOf(shared); }))
      << "the stranger is on " << containerd().CgroupCpus(container);
  EXPECT_LT(Clock::now() - start, kFewLists);
  ASSERT_TRUE(runtime.StopPod(pod).ok());
  ASSERT_TRUE(runtime.RemovePod(pod).ok());
}

}  // namespace
}  // namespace resmgr::test
