// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "test/e2e/node_fixture.h"
#include "test/support/containerd/child_process.h"

namespace resmgr::test {

// The server of the plugins: the relay in front of containerd, or containerd's own NRI.
enum class Host { kRelay, kContainerd };

// A node that hosts plugins made with NRI's own library.
class PluginNodeTest : public NodeTest {
 protected:
  bool IsContainerd() const { return host_ == Host::kContainerd; }

  // Opens a node with this text as the daemon's configuration, and closes a former one. Skips the
  // test if containerd has no NRI of its own.
  void OpenHost(Host host, const std::string& config, const std::string& policy = "static");
  std::filesystem::path Socket();
  std::filesystem::path PluginLog() { return containerd().directory() / "plugin.log"; }

  // Runs the plugin with these flags and waits until it is synchronized.
  void StartPlugin(std::vector<std::string> flags);
  void ExpectEvent(const std::string& name) { ExpectLogged("\"Event\":\"" + name + "\""); }
  // The plugin logs this, now or soon.
  void ExpectLogged(const std::string& text);

  // The output of this command in the container.
  std::string Inside(const RunningPod& pod, const std::vector<std::string>& command);

  std::unique_ptr<ChildProcess> plugin_;

 private:
  Host host_ = Host::kRelay;
};

// Tests that run with each host.
class HostedPluginTest : public PluginNodeTest, public ::testing::WithParamInterface<Host> {
 protected:
  void OpenHost(const std::string& config = "") { PluginNodeTest::OpenHost(GetParam(), config); }
};

}  // namespace resmgr::test
