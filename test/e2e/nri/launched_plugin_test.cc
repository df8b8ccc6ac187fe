// SPDX-License-Identifier: Apache-2.0
// Plugins made with NRI's own library that the relay launches from its plugin directory.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/base/parse.h"
#include "pkg/sys/temp_dir.h"
#include "test/e2e/nri/hosted_plugins.h"
#include "test/e2e/nri/reference_host.h"
#include "test/support/containerd/daemon.h"

namespace resmgr::test {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
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
