// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/nri/hosted_plugins.h"

#include "test/e2e/nri/reference_host.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {

void PluginNodeTest::OpenHost(Host host, const std::string& config, const std::string& policy) {
  host_ = host;
  ASSERT_FALSE(NriPrograms().empty()) << "RESMGR_NRI_PROGRAMS is not set: use scripts/test-nri";
  Open({.relayed = !IsContainerd(),
        .nri_host = !IsContainerd(),
        .policy = policy,
        .config = config});
  if (HasFatalFailure()) return;
  if (IsContainerd() && !std::filesystem::exists(containerd().nri_socket())) {
    GTEST_SKIP() << "this containerd has no NRI";
  }
}

std::filesystem::path PluginNodeTest::Socket() {
  return IsContainerd() ? containerd().nri_socket() : node().HostSocket();
}

void PluginNodeTest::StartPlugin(std::vector<std::string> flags) {
  flags.insert(flags.begin(), {NriPrograms() / "plugin", "-socket", Socket()});
  const Status listening = WaitUntil("the host of plugins listens", kPatience,
                                     [&] { return std::filesystem::exists(Socket()); });
  ASSERT_TRUE(listening.ok()) << node().RelayLog();
  plugin_ = Must(ChildProcess::Start(flags, PluginLog()));
  ExpectEvent("Synchronize");
}

void PluginNodeTest::ExpectLogged(const std::string& text) {
  const Status logged = WaitUntil("the plugin logs " + text, kPatience, [&] {
    return TextOf(PluginLog()).find(text) != std::string::npos;
  });
  EXPECT_TRUE(logged.ok()) << Describe(logged) << TextOf(PluginLog()) << node().RelayLog();
}

std::string PluginNodeTest::Inside(const RunningPod& pod, const std::vector<std::string>& command) {
  const auto result = node().client().Exec(pod.container_id, command);
  EXPECT_TRUE(result.ok()) << Describe(result.status());
  return result.ok() ? result->stdout() : "";
}

}  // namespace resmgr::test
