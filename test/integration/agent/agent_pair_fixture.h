// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "test/integration/daemon_fixture.h"
#include "test/support/api_server/api_server.h"
#include "test/support/containerd/child_process.h"

namespace resmgr::test {

// The real daemon and the real agent as a pair, before a runtime and an API server of the test's
// own, which run from the start. The node is "n1".
class AgentPairTest : public DaemonTest {
 protected:
  static constexpr char kNode[] = "n1";

  // The runtime's containers can have CPUs 0 to cpus-1.
  explicit AgentPairTest(int cpus = kCpus);

  // Starts an agent; a former one ends.
  void StartAgent(const std::vector<std::string>& more = {});
  // The flags of a daemon that takes the file policy.yaml and tells the agent, then `more`.
  std::vector<std::string> PairFlags(const std::vector<std::string>& more = {}) const;
  // Writes of an object are a second apart at least; times of the acceptance table are those of a
  // change by itself.
  static void LetWritesPass();
  static milliseconds TimeOf(const std::function<void()>& act);
  std::string AgentLog() const { return LastLines(Path("agent.log")); }

  ApiServer api_;
  std::unique_ptr<ChildProcess> agent_;
};

}  // namespace resmgr::test
