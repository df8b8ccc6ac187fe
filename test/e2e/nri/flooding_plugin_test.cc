// SPDX-License-Identifier: Apache-2.0
// A plugin made with NRI's own library that asks the relay for updates without end.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/nri/hosted_plugins.h"
#include "test/support/containerd/daemon.h"

namespace resmgr::test {
namespace {

using ::testing::HasSubstr;

class FloodingPluginTest : public HostedPluginTest {
 protected:
  // The most memory that the daemon has held, in MiB.
  int64_t PeakMemory() { return ProcStatus(node().relay().process().pid(), "VmHWM:") / 1024; }

  // State and last error of the plugin, as cri-resmgr-ctl shows them.
  std::string Told() {
    const auto told = node().Ctl("plugins");
    EXPECT_TRUE(told.ok()) << Describe(told.status());
    return told.value_or("");
  }
};

TEST_P(FloodingPluginTest, OtherPodsComeAndGoAsBefore) {
  OpenHost();
  if (HasFatalFailure()) return;
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  const size_t before = containerd().Updates();
  StartPlugin({"-flood", "64"});
  if (HasFatalFailure()) return;
  // More than a few under way at a time are refused.
  ExpectLogged("8 requests are not answered yet");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  using Duration = std::chrono::duration<double>;
  Duration longest{0};
  int pods = 0;
  for (; std::chrono::steady_clock::now() < end && !HasFailure(); ++pods) {
    const auto start = std::chrono::steady_clock::now();
    const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
    longest = std::max<Duration>(longest, std::chrono::steady_clock::now() - start);
    const CpuSet own = CpuSetOf(exclusive);
    EXPECT_EQ(own.size(), 1);
    EXPECT_EQ(CpuSetOf(shared), All() - own);
    Remove(exclusive);
    ExpectOn(shared, All());
  }
  EXPECT_GT(pods, 0);
  // Half of the kubelets' time limit.
  EXPECT_LT(longest, std::chrono::seconds(60));
  EXPECT_GT(containerd().Updates(), before + 20) << "some of it is carried out";
  EXPECT_THAT(Told(), HasSubstr("8 requests are not answered yet")) << "it is reported";
  EXPECT_GT(PeakMemory(), 0) << "MiB";
  EXPECT_LT(PeakMemory(), 64) << "MiB";
  std::cout << fmt::format(
      "[ MEASURED ] {} pods, the slowest in {:.1f} s, {} updates, {} MiB at most\n", pods,
      longest.count(), containerd().Updates() - before, PeakMemory());

  plugin_->Signal(SIGKILL);
  const Status gone = WaitUntil("the plugin is gone", kPatience, [&] {
    return Told().find("\"state\":\"ready\"") == std::string::npos;
  });
  EXPECT_TRUE(gone.ok()) << Told();
  Remove(Run(Guaranteed("after", 1)));
}

INSTANTIATE_TEST_SUITE_P(Relay, FloodingPluginTest, ::testing::Values(Host::kRelay),
                         [](const auto&) { return "Relay"; });

}  // namespace
}  // namespace resmgr::test
