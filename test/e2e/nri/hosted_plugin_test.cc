// SPDX-License-Identifier: Apache-2.0
// A plugin that is made with NRI's own library, hosted by the relay in front of containerd, and the
// same plugin at containerd's own NRI, if it has one: the plugin's changes are in the container.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/base/parse.h"
#include "pkg/sys/temp_dir.h"
#include "test/e2e/nri/hosted_plugins.h"
#include "test/e2e/nri/reference_host.h"
#include "test/support/containerd/child_process.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using std::chrono::milliseconds;

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

// A plugin made with NRI's own library that asks the relay for updates without end.
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
  // The last error, of many a second: on a busy machine it is sometimes another one.
  const Status reported = WaitUntil("the refusals are reported", kPatience, [&] {
    return Told().find("8 requests are not answered yet") != std::string::npos;
  });
  EXPECT_TRUE(reported.ok()) << Describe(reported);
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

// Plugins made with NRI's own library that the relay launches from its plugin directory.

using ::testing::Not;

class LaunchedPluginTest : public HostedPluginTest {
 protected:
  std::filesystem::path Plugins() const {
    return std::filesystem::path(directory_.path()) / "plugins";
  }
  std::filesystem::path Configs() const {
    return std::filesystem::path(directory_.path()) / "conf.d";
  }
  std::filesystem::path LogOf(const std::string& name) const {
    return std::filesystem::path(directory_.path()) / (name + ".log");
  }

  // A program "NN-name" in the plugin directory, and the flags that it is configured with.
  void Install(const std::string& name, const std::string& flags) {
    ASSERT_FALSE(NriPrograms().empty()) << "RESMGR_NRI_PROGRAMS is not set: use scripts/test-nri";
    std::filesystem::create_directories(Plugins());
    std::filesystem::create_directories(Configs());
    std::filesystem::copy_file(NriPrograms() / "plugin", Plugins() / name);
    std::ofstream(Configs() / (name + ".conf")) << "-log " << LogOf(name).string() << " " << flags;
  }
  void OpenWithPlugins() {
    OpenHost(fmt::format("nri: {{Host: {{PluginPath: {}, PluginConfigPath: {}}}}}\n",
                         Plugins().string(), Configs().string()));
  }

  // The number of synchronizations of the plugin.
  size_t Synchronizations(const std::string& name) const {
    return TimesIn(TextOf(LogOf(name)), "\"Event\":\"Synchronize\"");
  }
  void ExpectSynchronized(const std::string& name, size_t times) {
    const Status done = WaitUntil(name + " is synchronized", kPatience,
                                  [&] { return Synchronizations(name) == times; });
    ASSERT_TRUE(done.ok()) << Describe(done) << node().WholeRelayLog();
  }

  // Its process: the child of the daemon that runs the file.
  pid_t ProcessOf(const std::string& name) {
    const pid_t daemon = node().relay().process().pid();
    for (const auto& thread :
         std::filesystem::directory_iterator(fmt::format("/proc/{}/task", daemon))) {
      std::istringstream children(TextOf(thread.path() / "children"));
      for (std::string pid; children >> pid;) {
        std::error_code ignored;
        const auto program = std::filesystem::read_symlink("/proc/" + pid + "/exe", ignored);
        if (program == Plugins() / name) return static_cast<pid_t>(ParseUint(pid).value_or(0));
      }
    }
    return 0;
  }

  // The line of the plugin's log that tells of this event of the container.
  std::string EventOf(const std::string& name, const std::string& event) const {
    std::istringstream lines(TextOf(LogOf(name)));
    for (std::string line; std::getline(lines, line);) {
      if (line.find("\"Event\":\"" + event + "\"") != std::string::npos) return line;
    }
    return "";
  }

 private:
  const TempDir directory_;
};

// Names are in another order than indices.
TEST_P(LaunchedPluginTest, TheyAreAskedInTheOrderOfTheirIndices) {
  Install("10-zoo", "-env FIRST=zoo");
  Install("20-ant", "-env SECOND=ant");
  OpenWithPlugins();
  if (HasFatalFailure()) return;
  ExpectSynchronized("10-zoo", 1);
  ExpectSynchronized("20-ant", 1);
  if (HasFatalFailure()) return;
  const RunningPod pod = Run(Burstable("app", MilliCpu{300}));
  EXPECT_THAT(Inside(pod, {"env"}), AllOf(HasSubstr("FIRST=zoo\n"), HasSubstr("SECOND=ant\n")));
  EXPECT_THAT(EventOf("10-zoo", "CreateContainer"), Not(HasSubstr("SECOND=ant")));
  EXPECT_THAT(EventOf("20-ant", "CreateContainer"), HasSubstr("FIRST=zoo"));
}

// The plugin starts again after one second, then after two, and is synchronized each time; the
// other plugin stays.
TEST_P(LaunchedPluginTest, OneThatCrashesIsStartedAgainAfterGrowingPauses) {
  Install("10-crashing", "-env BACK=yes");
  Install("20-steady", "-env STEADY=yes");
  OpenWithPlugins();
  if (HasFatalFailure()) return;
  ExpectSynchronized("10-crashing", 1);
  ExpectSynchronized("20-steady", 1);
  if (HasFatalFailure()) return;
  const pid_t steady = ProcessOf("20-steady");
  EXPECT_NE(steady, 0);
  size_t lives = 1;
  for (const milliseconds pause : {milliseconds(1000), milliseconds(2000)}) {
    const pid_t crashing = ProcessOf("10-crashing");
    ASSERT_NE(crashing, 0);
    ASSERT_EQ(::kill(crashing, SIGKILL), 0);
    const auto killed = std::chrono::steady_clock::now();
    const RunningPod meanwhile = Run(BestEffort("meanwhile"));
    EXPECT_THAT(Inside(meanwhile, {"env"}),
                AllOf(HasSubstr("STEADY=yes"), Not(HasSubstr("BACK=yes"))));
    ExpectSynchronized("10-crashing", ++lives);
    if (HasFatalFailure()) return;
    EXPECT_GE(std::chrono::steady_clock::now() - killed, pause);
    const RunningPod after = Run(BestEffort("after"));
    EXPECT_THAT(Inside(after, {"env"}), HasSubstr("BACK=yes"));
    Remove(after);
    Remove(meanwhile);
  }
  EXPECT_EQ(ProcessOf("20-steady"), steady);
  EXPECT_EQ(Synchronizations("20-steady"), 1U);
  for (const int pause : {1000, 2000})
    EXPECT_TRUE(
        node().RelayLogs(fmt::format("plugin 10-crashing is started again in {} ms", pause)));
}

TEST_P(LaunchedPluginTest, OneThatDiesInTheMiddleOfACreationComesBack) {
  Install("10-dying", "-die CreateContainer -only bad");
  OpenWithPlugins();
  if (HasFatalFailure()) return;
  ExpectSynchronized("10-dying", 1);
  if (HasFatalFailure()) return;
  const RunningPod bad = Run(Burstable("bad", MilliCpu{300}));
  ExpectSynchronized("10-dying", 2);
  const std::string log = TextOf(LogOf("10-dying"));
  EXPECT_THAT(log.substr(log.rfind("\"Event\":\"Synchronize\"")), HasSubstr(bad.container_id));
  Remove(Run(BestEffort("good")));
}

TEST_P(LaunchedPluginTest, TheyEndWithTheDaemon) {
  Install("10-logger", "");
  OpenWithPlugins();
  if (HasFatalFailure()) return;
  ExpectSynchronized("10-logger", 1);
  const pid_t process = ProcessOf("10-logger");
  ASSERT_NE(process, 0);
  EXPECT_EQ(node().relay().Terminate().value_or(-1), 0);
  const Status ended = WaitUntil("the plugin ends", kPatience, [&] {
    return !std::filesystem::exists(fmt::format("/proc/{}", process));
  });
  EXPECT_TRUE(ended.ok());
  EXPECT_THAT(TextOf(LogOf("10-logger")), HasSubstr("\"Event\":\"Shutdown\""));
  ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
  ExpectSynchronized("10-logger", 2);
}

INSTANTIATE_TEST_SUITE_P(Relay, LaunchedPluginTest, ::testing::Values(Host::kRelay),
                         [](const auto&) { return "Relay"; });

}  // namespace
}  // namespace resmgr::test
