// SPDX-License-Identifier: Apache-2.0
#include "test/integration/agent/agent_pair_fixture.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "test/support/programs/programs.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {

AgentPairTest::AgentPairTest(int cpus) : DaemonTest(cpus) {
  EXPECT_THAT(api_.Start(), IsOk());
  api_.SetNode(kNode, {});
  std::ofstream(Path("kubeconfig")) << api_.Kubeconfig();
  StartRuntime();
}

void AgentPairTest::StartAgent(const std::vector<std::string>& more) {
  ::setenv("NODE_NAME", kNode, 1);
  agent_.reset();
  std::vector<std::string> argv = {
      Program("cri-resmgr-agent"), "-kubeconfig",   Path("kubeconfig"), "-cri-resmgr-socket",
      Path("config.sock"),         "-agent-socket", Path("agent.sock"), "-report-spread=0s"};
  argv.insert(argv.end(), more.begin(), more.end());
  agent_ = Must(ChildProcess::Start(argv, Path("agent.log")));
}

std::vector<std::string> AgentPairTest::PairFlags(const std::vector<std::string>& more) const {
  std::vector<std::string> flags = {"-agent-socket", Path("agent.sock"), "-config",
                                    Path("policy.yaml")};
  flags.insert(flags.end(), more.begin(), more.end());
  return Flags(flags);
}

void AgentPairTest::LetWritesPass() {
  const auto end = std::chrono::steady_clock::now() + seconds(2);
  EXPECT_TRUE(Eventually([end] { return std::chrono::steady_clock::now() >= end; }));
}

milliseconds AgentPairTest::TimeOf(const std::function<void()>& act) {
  const auto start = std::chrono::steady_clock::now();
  act();
  return std::chrono::ceil<milliseconds>(std::chrono::steady_clock::now() - start);
}

}  // namespace resmgr::test
