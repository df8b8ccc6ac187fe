// SPDX-License-Identifier: Apache-2.0
// A plugin that is made with NRI's own library, hosted by the relay in front of containerd, and the
// same plugin at containerd's own NRI, where it has one: what it sets is in the container.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node_fixture.h"
#include "test/e2e/nri/reference_host.h"
#include "test/support/containerd/daemon.h"

namespace resmgr::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

enum class Host { kRelay, kContainerd };

class HostedPluginTest : public NodeTest, public ::testing::WithParamInterface<Host> {
 protected:
  static bool IsContainerd() { return GetParam() == Host::kContainerd; }

  // Skips the test where containerd has no NRI of its own.
  void OpenHost() {
    ASSERT_FALSE(NriPrograms().empty()) << "RESMGR_NRI_PROGRAMS is not set: use scripts/test-nri";
    Open({.relayed = !IsContainerd(), .nri_host = !IsContainerd()});
    if (HasFatalFailure()) return;
    if (IsContainerd() && !std::filesystem::exists(containerd().nri_socket())) {
      GTEST_SKIP() << "this containerd has no NRI";
    }
  }
  std::filesystem::path Socket() {
    return IsContainerd() ? containerd().nri_socket() : node().HostSocket();
  }
  std::filesystem::path PluginLog() { return containerd().directory() / "plugin.log"; }

  // Runs the plugin with these flags until it has what is there.
  void StartPlugin(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {NriPrograms() / "plugin", "-socket", Socket()});
    const Status listening = WaitUntil("the host of plugins listens", kPatience,
                                       [&] { return std::filesystem::exists(Socket()); });
    ASSERT_TRUE(listening.ok()) << node().RelayLog();
    auto plugin = ChildProcess::Start(flags, PluginLog());
    ASSERT_TRUE(plugin.ok()) << Describe(plugin.status());
    plugin_ = *std::move(plugin);
    ExpectEvent("Synchronize");
  }
  void ExpectEvent(const std::string& name) {
    const Status told = WaitUntil("the plugin is told of " + name, kPatience, [&] {
      return TextOf(PluginLog()).find("\"Event\":\"" + name + "\"") != std::string::npos;
    });
    EXPECT_TRUE(told.ok()) << Describe(told) << TextOf(PluginLog()) << node().RelayLog();
  }

  std::string Inside(const RunningPod& pod, const std::vector<std::string>& command) {
    const auto result = node().client().Exec(pod.container_id, command);
    EXPECT_TRUE(result.ok()) << Describe(result.status());
    return result.ok() ? result->stdout() : "";
  }

  std::unique_ptr<ChildProcess> plugin_;
};

TEST_P(HostedPluginTest, WhatItSetsIsInTheContainer) {
  OpenHost();
  if (HasFatalFailure() || IsSkipped()) return;
  const std::filesystem::path shared = containerd().directory() / "shared";
  std::filesystem::create_directories(shared);
  { std::ofstream(shared / "text") << "of the plugin"; }
  StartPlugin({"-env", "FROM_PLUGIN=yes", "-mount", shared.string() + ":/of-plugin", "-device",
               "/dev/full", "-shares", "345"});
  if (HasFatalFailure()) return;
  const RunningPod pod = Run(Burstable("app", MilliCpu{300}));
  ASSERT_FALSE(pod.container_id.empty()) << node().RelayLog();

  EXPECT_THAT(Inside(pod, {"env"}), HasSubstr("FROM_PLUGIN=yes"));
  EXPECT_EQ(Inside(pod, {"cat", "/of-plugin/text"}), "of the plugin");
  const auto written = node().client().Exec(pod.container_id, {"touch", "/of-plugin/new"});
  ASSERT_TRUE(written.ok());
  EXPECT_NE(written->exit_code(), 0) << "the mount is read-only";
  EXPECT_THAT(Inside(pod, {"ls", "-l", "/dev/full"}), AllOf(HasSubstr("c"), HasSubstr("1,   7")));
  EXPECT_EQ(containerd().CgroupShares(pod.container_id), 345);
  for (const char* const event : {"RunPodSandbox", "CreateContainer", "PostCreateContainer",
                                  "StartContainer", "PostStartContainer"})
    ExpectEvent(event);

  Remove(pod);
  for (const char* const event :
       {"StopContainer", "RemoveContainer", "StopPodSandbox", "RemovePodSandbox"})
    ExpectEvent(event);
}

TEST_P(HostedPluginTest, ARefusedContainerIsNotCreated) {
  OpenHost();
  if (HasFatalFailure() || IsSkipped()) return;
  StartPlugin({"-refuse", "CreateContainer", "-only", "bad"});
  if (HasFatalFailure()) return;
  const auto refused = node().Run(BestEffort("bad"));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("the plugin refuses"));
  Remove(Run(BestEffort("good")));
}

TEST_P(HostedPluginTest, AContainerIsCreatedWithoutAPluginThatDies) {
  OpenHost();
  if (HasFatalFailure() || IsSkipped()) return;
  StartPlugin({"-die", "CreateContainer"});
  if (HasFatalFailure()) return;
  const RunningPod pod = Run(BestEffort("app"));
  EXPECT_TRUE(plugin_->Wait(kPatience).ok());
  Remove(pod);
}

class PolicyAndPluginTest : public HostedPluginTest {};

// Whatever a plugin says of CPUs; it sees what the policy decided.
TEST_P(PolicyAndPluginTest, ThePolicyOwnsTheCpus) {
  OpenHost();
  if (HasFatalFailure()) return;
  StartPlugin({"-cpus", "0"});
  if (HasFatalFailure()) return;
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const CpuSet own = CpuSetOf(exclusive);
  EXPECT_EQ(own.size(), 1);
  EXPECT_FALSE(own.Contains(0)) << "it is reserved";
  EXPECT_THAT(TextOf(PluginLog()), HasSubstr("\"cpus\":\"" + own.ToString() + "\""));
  EXPECT_THAT(node().RelayLog(), HasSubstr("CPUs"));
  Remove(exclusive);
}

INSTANTIATE_TEST_SUITE_P(Relay, PolicyAndPluginTest, ::testing::Values(Host::kRelay),
                         [](const auto&) { return "Relay"; });

INSTANTIATE_TEST_SUITE_P(Hosts, HostedPluginTest,
                         ::testing::Values(Host::kRelay, Host::kContainerd), [](const auto& which) {
                           return which.param == Host::kRelay ? "Relay" : "Containerd";
                         });

}  // namespace
}  // namespace resmgr::test
