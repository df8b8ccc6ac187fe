// SPDX-License-Identifier: Apache-2.0
// cri-resmgr as a plugin of containerd's NRI: no relay, the client speaks to containerd itself.
#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node_fixture.h"

namespace resmgr::test {
namespace {

using ::testing::HasSubstr;

class NriPluginTest : public NodeTest {
 protected:
  void SetUp() override {
    Open({.nri_plugin = true});
    if (HasFatalFailure()) return;
    cri::VersionResponse version;
    ASSERT_TRUE(node().runtime().Unary("Version", cri::VersionRequest(), &version).ok());
    // "1.6.20~ds1", "v1.6.20"
    if (version.runtime_version().find("1.6.") <= 1) {
      GTEST_SKIP() << "containerd " << version.runtime_version()
                   << " has no NRI; scripts/test-runtimes fetches one that has";
    }
    ExpectSynchronized(1);
  }

  // The plugin has taken containerd's inventory so often.
  void ExpectSynchronized(size_t times) {
    const Status synchronized = WaitUntil("the plugin is synchronized", kPatience, [&] {
      const std::string log = node().WholeRelayLog();
      size_t found = 0;
      for (size_t at = log.find("synchronized: "); at != std::string::npos;
           at = log.find("synchronized: ", at + 1))
        ++found;
      return found >= times;
    });
    EXPECT_TRUE(synchronized.ok()) << Describe(synchronized) << node().RelayLog();
  }

  void EndDaemon(int signal_number) {
    node().relay().process().Signal(signal_number);
    ASSERT_TRUE(node().relay().process().Wait(kPatience).ok());
  }
};

TEST_F(NriPluginTest, ExclusiveContainersHaveTheirCpusAndSharedOnesLeaveThem) {
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  ExpectOn(shared, All());
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const CpuSet own = CpuSetOf(exclusive);
  EXPECT_EQ(own.size(), 1);
  EXPECT_TRUE((own - Unreserved()).empty());
  // The update of the shared one is part of the same answer.
  EXPECT_EQ(CpuSetOf(shared), All() - own);
  const auto inside = node().CpusInside(exclusive);
  ASSERT_TRUE(inside.ok()) << Describe(inside.status());
  EXPECT_EQ(*inside, own);
  Remove(exclusive);
  ExpectOn(shared, All());
  Remove(shared);
}

TEST_F(NriPluginTest, AResizeIsDecided) {
  RunningPod pod = Run(Sized("pod", MilliCpu{500}));
  ExpectOn(pod, All());
  Resize(Guaranteed("pod", 1), &pod);
  const Status alone =
      WaitUntil("it has one CPU", kPatience, [&] { return CpuSetOf(pod).size() == 1; });
  EXPECT_TRUE(alone.ok()) << CpusOf(pod) << node().RelayLog();
  Resize(Sized("pod", MilliCpu{500}), &pod);
  ExpectOn(pod, All());
}

TEST_F(NriPluginTest, AContainerThatDoesNotFitIsRefused) {
  const auto refused = node().Run(Guaranteed("large", All().size()));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("cri-resmgr (static): needs"));
}

TEST_F(NriPluginTest, ARestartOfTheDaemonMovesNoContainer) {
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const auto places = PlacesOf(shared, exclusive);
  size_t lives = 1;
  for (const int signal_number : {SIGKILL, SIGTERM}) {
    EndDaemon(signal_number);
    ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
    ExpectSynchronized(++lives);
    const RunningPod late = Run(BestEffort("late"));
    EXPECT_EQ(CpusOf(late), CpusOf(shared));
    EXPECT_EQ(PlacesOf(shared, exclusive), places);
    Remove(late);
  }
  Remove(exclusive);
  ExpectOn(shared, All());
}

TEST_F(NriPluginTest, ARestartOfContainerdMovesNoContainer) {
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const auto places = PlacesOf(shared, exclusive);
  node().containerd().Kill();
  ASSERT_TRUE(node().RestartContainerd().ok()) << containerd().Log();
  ExpectSynchronized(2);
  EXPECT_EQ(PlacesOf(shared, exclusive), places);
  Remove(exclusive);
  ExpectOn(shared, All());
}

}  // namespace
}  // namespace resmgr::test
