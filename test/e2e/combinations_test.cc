// SPDX-License-Identifier: Apache-2.0
// Real containers beside other programs that change them: a hook server, an NRI plugin at our host,
// a plugin of the runtime's own NRI, files of CPUs. After any restart, kill or change of the
// configuration no container has moved, no CPU is lost, and the extension's values stay set.
#include <csignal>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node_fixture.h"
#include "test/e2e/placement_watch.h"
#include "test/support/extensions/extensions.h"
#include "test/support/policy_text.h"

namespace resmgr::test {
namespace {

enum class Beside { kHookServer, kPlugin, kPluginOfTheRuntime, kCpuFiles };

std::string NameOfBeside(Beside beside) {
  switch (beside) {
    case Beside::kHookServer:
      return "HookServer";
    case Beside::kPlugin:
      return "Plugin";
    case Beside::kPluginOfTheRuntime:
      return "PluginOfTheRuntime";
    case Beside::kCpuFiles:
      return "CpuFiles";
  }
  return "";
}

class RealCombinationsTest : public NodeTest,
                             public ::testing::WithParamInterface<std::tuple<std::string, Beside>> {
 protected:
  const std::string& policy() const { return std::get<0>(GetParam()); }
  Beside beside() const { return std::get<1>(GetParam()); }
  bool ChangesShares() const { return beside() != Beside::kCpuFiles; }
  // The others share no reserved CPU, and two CPUs are all that machines may have.
  bool SharesReserved() const { return policy() != "topology-aware" && policy() != "balloons"; }

  // Skips the test if the extension is a plugin of containerd's NRI and containerd has none.
  void OpenNode() {
    Open({.nri_host = beside() == Beside::kPlugin,
          .hook_servers = beside() == Beside::kHookServer,
          .policy = "",
          .reserved = SharesReserved() ? "cpuset:0" : "",
          .starts_alone = policy() != "balloons",
          .config = beside() == Beside::kCpuFiles ? "cpuFiles: {Containers: all}\n" : ""});
    if (HasFatalFailure()) return;
    const std::filesystem::path& directory = containerd().directory();
    if (beside() == Beside::kHookServer) {
      auto server = SharesHookServer::Start(node().HookDirectory(), directory / "hooks.sock",
                                            directory / "hooks.log");
      ASSERT_TRUE(server.ok()) << Describe(server.status());
      hook_server_ = *std::move(server);
    }
    if (beside() == Beside::kPlugin) {
      plugin_ = std::make_unique<SharesPlugin>(node().HostSocket());
    }
    if (beside() == Beside::kPluginOfTheRuntime) {
      NeedsNewerThan16("NRI");
      if (HasFatalFailure() || IsSkipped()) return;
      plugin_ =
          std::make_unique<SharesPlugin>(containerd().nri_socket(), SharesPlugin::Speaks::k061);
    }
    ASSERT_TRUE(node().Deliver(PolicyText(policy(), false)).ok()) << node().RelayLog();
    ExpectServing();
  }
  void ExpectServing() {
    const Status serving = WaitUntil("the daemon and what is beside it serve", kPatience, [this] {
      cri::ListContainersResponse list;
      if (!node().client().Unary("ListContainers", cri::ListContainersRequest(), &list).ok()) {
        return false;
      }
      if (plugin_ != nullptr && !plugin_->synchronized()) return false;
      if (beside() != Beside::kHookServer) return true;
      const auto plugins = node().Ctl("plugins");
      return plugins.ok() && plugins->find("\"ready\"") != std::string::npos;
    });
    ASSERT_TRUE(serving.ok()) << Describe(serving) << node().RelayLog();
  }
  void RestartDaemon(int signal_number) {
    node().relay().process().Signal(signal_number);
    ASSERT_TRUE(node().relay().process().Wait(kPatience).ok());
    ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
  }
  void RestartContainerd() {
    node().containerd().Kill();
    ASSERT_TRUE(node().RestartContainerd().ok()) << containerd().Log();
  }
  void KillInTheMiddleOfACreation() {
    const Workload workload = Guaranteed("cut", 1);
    auto creation = std::async(std::launch::async, [&] { return node().Run(workload); });
    const Status begun = WaitUntil("the sandbox is there", kPatience, [this] {
      cri::ListPodSandboxResponse list;
      const bool listed =
          node().runtime().Unary("ListPodSandbox", cri::ListPodSandboxRequest(), &list).ok();
      for (const cri::PodSandbox& sandbox : list.items())
        if (sandbox.metadata().name() == "cut") return listed;
      return false;
    });
    ASSERT_TRUE(begun.ok()) << Describe(begun);
    node().relay().process().Signal(SIGKILL);
    ASSERT_TRUE(node().relay().process().Wait(kPatience).ok());
    static_cast<void>(creation.get());
    ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
    ExpectServing();
    cri::ListPodSandboxResponse list;
    ASSERT_TRUE(node().client().Unary("ListPodSandbox", cri::ListPodSandboxRequest(), &list).ok());
    for (const cri::PodSandbox& sandbox : list.items()) {
      if (sandbox.metadata().name() != "cut") continue;
      EXPECT_TRUE(node().client().StopPod(sandbox.id()).ok());
      EXPECT_TRUE(node().client().RemovePod(sandbox.id()).ok());
    }
  }

  // CPUs and memory nodes in cgroupfs, and shares.
  std::map<std::string, std::string> InForce(const std::vector<RunningPod>& pods) const {
    std::map<std::string, std::string> in_force;
    for (const RunningPod& pod : pods) {
      in_force[pod.workload.name] =
          CpusOf(pod) + " mems " + MemsOf(pod) + " shares " +
          std::to_string(containerd().CgroupShares(pod.container_id, kExtensionShares));
    }
    return in_force;
  }
  void ExpectInForce(const std::vector<RunningPod>& pods,
                     const std::map<std::string, std::string>& expected) const {
    const Status same =
        WaitUntil("all is as before", kPatience, [&] { return InForce(pods) == expected; });
    EXPECT_TRUE(same.ok()) << ::testing::PrintToString(InForce(pods)) << " in place of "
                           << ::testing::PrintToString(expected);
  }

  std::unique_ptr<SharesHookServer> hook_server_;
  std::unique_ptr<SharesPlugin> plugin_;
};

TEST_P(RealCombinationsTest, NothingMovesNothingLeaks) {
  OpenNode();
  if (HasFatalFailure() || IsSkipped()) return;
  const std::vector<RunningPod> pods = {Run(Burstable("shared", MilliCpu{300})),
                                        Run(Guaranteed("exclusive", 1))};
  const CpuSet own = CpuSetOf(pods[1]);
  EXPECT_EQ(own.size(), 1);
  ExpectOn(pods[0], All() - own);
  if (ChangesShares()) {
    for (const RunningPod& pod : pods)
      EXPECT_TRUE(HasShares(pod, kExtensionShares));
  }
  const auto before = InForce(pods);
  for (const RunningPod& pod : pods) {
    const Status runs = WaitUntil("its process runs", kPatience, [&] {
      return containerd().AllowedCpus(pod.container_id) == CpuSetOf(pod);
    });
    ASSERT_TRUE(runs.ok()) << Describe(runs);
  }
  CpuHistory history([this](const std::string& id) { return containerd().AllowedCpus(id); });
  for (const RunningPod& pod : pods)
    history.Add(pod.container_id);

  const std::map<std::string, std::function<void()>> upsets = {
      {"1: SIGTERM", [this] { RestartDaemon(SIGTERM); }},
      {"2: kill -9", [this] { RestartDaemon(SIGKILL); }},
      {"3: kill -9 in a creation", [this] { KillInTheMiddleOfACreation(); }},
      {"4: containerd is killed", [this] { RestartContainerd(); }},
  };
  for (const auto& [what, upset] : upsets) {
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, what);
    upset();
    if (HasFatalFailure()) return;
    ExpectServing();
    if (HasFatalFailure()) return;
    ExpectInForce(pods, before);
    // A new container goes beside those that run.
    const RunningPod late = Run(BestEffort("late"));
    EXPECT_EQ(CpuSetOf(late), All() - own);
    Remove(late);
    for (const RunningPod& pod : pods)
      EXPECT_EQ(history.Describe(pod.container_id), CpusOf(pod)) << pod.workload.name;
  }

  const std::string other = policy() == "static-plus" ? "static" : "static-plus";
  ASSERT_TRUE(node().Deliver("Active: " + other).ok()) << node().RelayLog();
  EXPECT_EQ(CpuSetOf(pods[1]), own) << "an exclusive container keeps its CPU in a change";
  EXPECT_FALSE(CpuSetOf(pods[0]).Intersects(own));

  // The watch looks for shared containers on exclusive CPUs, of which there are none any more.
  for (const RunningPod& pod : pods)
    node().watch().Remove(pod.container_id);
  const auto uninstalled = Ok(node().Ctl(Node::Words{"uninstall", "-apply"}));
  for (const RunningPod& pod : pods) {
    ExpectOn(pod, All());
    if (ChangesShares()) {
      EXPECT_TRUE(HasShares(pod, kExtensionShares));
    }
  }
}

using Combination = std::tuple<std::string, Beside>;

std::string NameOfCombination(const ::testing::TestParamInfo<Combination>& info) {
  std::string name = std::get<0>(info.param) + NameOfBeside(std::get<1>(info.param));
  std::erase(name, '-');
  return name;
}

// Each policy once, and each extension that Debian's containerd takes.
INSTANTIATE_TEST_SUITE_P(Containerd, RealCombinationsTest,
                         ::testing::Values(Combination{"static", Beside::kHookServer},
                                           Combination{"static-plus", Beside::kCpuFiles},
                                           Combination{"topology-aware", Beside::kPlugin},
                                           Combination{"balloons", Beside::kHookServer}),
                         NameOfCombination);
INSTANTIATE_TEST_SUITE_P(Long, RealCombinationsTest,
                         ::testing::Values(Combination{"static", Beside::kPlugin},
                                           Combination{"static", Beside::kPluginOfTheRuntime},
                                           Combination{"static", Beside::kCpuFiles},
                                           Combination{"static-plus", Beside::kHookServer},
                                           Combination{"static-plus", Beside::kPlugin},
                                           Combination{"static-plus", Beside::kPluginOfTheRuntime},
                                           Combination{"topology-aware", Beside::kHookServer},
                                           Combination{"topology-aware",
                                                       Beside::kPluginOfTheRuntime},
                                           Combination{"topology-aware", Beside::kCpuFiles},
                                           Combination{"balloons", Beside::kPlugin},
                                           Combination{"balloons", Beside::kPluginOfTheRuntime},
                                           Combination{"balloons", Beside::kCpuFiles}),
                         NameOfCombination);

}  // namespace
}  // namespace resmgr::test
