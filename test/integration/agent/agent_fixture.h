// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "test/integration/agent/fake_config_service.h"
#include "test/support/api_server/api_server.h"
#include "test/support/containerd/child_process.h"
#include "test/support/wait.h"

namespace resmgr::test {

// A real agent process between an API server of the test's own and a fake daemon. The node is
// "n1". The API server runs from the start, the daemon and the agent when the test says so.
class AgentTest : public testing::Test {
 protected:
  static constexpr char kNode[] = "n1";
  static constexpr char kGroupLabel[] = "cri-resource-manager.intel.com/group";
  static constexpr char kNodeMap[] = "cri-resmgr-config.node.n1";
  static constexpr char kDefaultMap[] = "cri-resmgr-config.default";
  // Annotations of the node.
  static constexpr char kStatus[] = "cri-resource-manager.intel.com/config-status";
  static constexpr char kError[] = "cri-resource-manager.intel.com/config-error";

  AgentTest();

  std::string Path(const std::string& name) const { return directory_.File(name); }
  // A kubeconfig with these lines of a cluster and a user, in flow style.
  void WriteKubeconfig(const std::string& cluster_more, const std::string& user) const;
  // Flags that keep an agent within the directory, and from waiting for the sake of a cluster.
  std::vector<std::string> Flags() const;
  void StartAgent(const std::vector<std::string>& more = {});
  // On a machine whose certificate authorities are those in this directory, as `openssl rehash`
  // leaves it. Needs root: the agent gets a mount namespace of its own.
  void StartAgentTrusting(const std::string& system_certificates);
  // Starts both, with the policy "first" in the default map; returns when the daemon has it and all
  // objects are watched: the node, its own map and the default one, and one more for a node in a
  // group.
  void StartAll(int watches = 3);

  void SetPolicy(const std::string& map, const std::string& policy);
  bool DaemonGets(const std::string& policy) {
    return Eventually([&] { return daemon_.policy() == policy; });
  }
  bool NodeSays(std::string_view annotation, const std::string& value) {
    return Eventually([&] { return api_.Annotation(kNode, annotation) == value; });
  }
  bool IsWatching(int watches) {
    return Eventually([&] { return api_.watches() == watches; });
  }
  std::string AgentLog() const { return LastLines(Path("agent.log")); }
  // Exit status of the agent's own -probe.
  int Probe(const std::string& query);

  void Start(const std::vector<std::string>& argv);

  TempDir directory_;
  ApiServer api_;
  FakeConfigService daemon_{Path("config.sock")};
  std::unique_ptr<ChildProcess> agent_;
};

}  // namespace resmgr::test
