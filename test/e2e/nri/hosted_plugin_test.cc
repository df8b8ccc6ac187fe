// SPDX-License-Identifier: Apache-2.0
// A plugin that is made with NRI's own library, hosted by the relay in front of containerd, and the
// same plugin at containerd's own NRI, if it has one: the plugin's changes are in the container.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/nri/hosted_plugins.h"
#include "test/support/containerd/daemon.h"
#include "test/support/ok.h"

namespace resmgr::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
  const auto written = Ok(node().client().Exec(pod.container_id, {"touch", "/of-plugin/new"}));
  EXPECT_NE(written.exit_code(), 0) << "the mount is read-only";
  EXPECT_THAT(Inside(pod, {"ls", "-l", "/dev/full"}), AllOf(HasSubstr("c"), HasSubstr("1,   7")));
  EXPECT_TRUE(HasShares(pod, 345));
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

// Each creation also sets the shares of the existing containers.
TEST_P(HostedPluginTest, OtherContainersAreUpdatedWithACreation) {
  OpenHost();
  if (HasFatalFailure() || IsSkipped()) return;
  const RunningPod before = Run(Burstable("before", MilliCpu{300}));
  StartPlugin({"-others", "456"});
  if (HasFatalFailure()) return;
  EXPECT_FALSE(HasShares(before, 456));
  const RunningPod created = Run(Burstable("created", MilliCpu{300}));
  const Status updated =
      WaitUntil("the other is updated", kPatience, [&] { return bool{HasShares(before, 456)}; });
  EXPECT_TRUE(updated.ok()) << HasShares(before, 456).message() << node().RelayLog();
  EXPECT_TRUE(HasShares(created, 307));
}

// It costs the first pod the time in which an answer is awaited, two seconds.
TEST_P(HostedPluginTest, AContainerIsCreatedWithoutAPluginThatHangs) {
  OpenHost();
  if (HasFatalFailure() || IsSkipped()) return;
  StartPlugin({"-hang", "CreateContainer"});
  if (HasFatalFailure()) return;
  const auto start = std::chrono::steady_clock::now();
  Remove(Run(BestEffort("first")));
  const auto first = std::chrono::steady_clock::now() - start;
  EXPECT_GE(first, std::chrono::milliseconds(1900));
  EXPECT_LT(first, std::chrono::seconds(15));
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  EXPECT_EQ(CpuSetOf(exclusive).size(), IsContainerd() ? All().size() : 1) << "no policy: all CPUs";
}

class PolicyAndPluginTest : public HostedPluginTest {};

// A plugin's CPUs have no effect; it sees those of the policy.
TEST_P(PolicyAndPluginTest, ThePolicyOwnsTheCpus) {
  OpenHost();
  if (HasFatalFailure()) return;
  StartPlugin({"-cpus", "0"});
  if (HasFatalFailure()) return;
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const CpuSet own = CpuSetOf(exclusive);
  EXPECT_EQ(own.size(), 1);
  EXPECT_FALSE(own.Contains(0)) << "it is reserved";
  ExpectLogged("\"cpus\":\"" + own.ToString() + "\"");
  EXPECT_TRUE(node().RelayLogs("CPUs"));
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
