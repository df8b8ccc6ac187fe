// SPDX-License-Identifier: Apache-2.0
#include "test/integration/agent/agent_fixture.h"

#include <cstdlib>
#include <fstream>

#include "test/support/programs/programs.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {

AgentTest::AgentTest() {
  const Status started = api_.Start();
  EXPECT_TRUE(started.ok()) << Describe(started);
  api_.SetNode(kNode, {});
  WriteKubeconfig("", "{}");
}

void AgentTest::WriteKubeconfig(const std::string& cluster_more, const std::string& user) const {
  std::ofstream(Path("kubeconfig")) << api_.Kubeconfig(cluster_more, user);
}

std::vector<std::string> AgentTest::Flags() const {
  return {Program("cri-resmgr-agent"), "-kubeconfig",       Path("kubeconfig"),
          "-cri-resmgr-socket",        Path("config.sock"), "-agent-socket",
          Path("agent.sock"),          "-start-spread=0s",  "-report-spread=0s"};
}

void AgentTest::StartAgent(const std::vector<std::string>& more) {
  std::vector<std::string> argv = Flags();
  argv.insert(argv.end(), more.begin(), more.end());
  Start(argv);
}

void AgentTest::StartAgentTrusting(const std::string& system_certificates) {
  std::vector<std::string> argv = {"unshare",
                                   "--mount",
                                   "sh",
                                   "-c",
                                   "mount --bind \"$0\" /etc/ssl/certs && exec \"$@\"",
                                   system_certificates};
  const std::vector<std::string> flags = Flags();
  argv.insert(argv.end(), flags.begin(), flags.end());
  Start(argv);
}

void AgentTest::Start(const std::vector<std::string>& argv) {
  ::setenv("NODE_NAME", kNode, 1);
  agent_.reset();
  agent_ = Must(ChildProcess::Start(argv, Path("agent.log")));
}

void AgentTest::StartAll(int watches) {
  SetPolicy(kDefaultMap, "first");
  daemon_.Start();
  StartAgent();
  ASSERT_TRUE(DaemonGets("first")) << AgentLog();
  ASSERT_TRUE(IsWatching(watches)) << AgentLog();
}

void AgentTest::SetPolicy(const std::string& map, const std::string& policy) {
  api_.SetConfigMap(map, {{"policy", policy}});
}

int AgentTest::Probe(const std::string& query) {
  auto probe = ChildProcess::Start(
      {Program("cri-resmgr-agent"), "-agent-socket", Path("agent.sock"), "-probe", query},
      Path("probe.log"));
  if (!probe.ok()) return -1;
  return (*probe)->Wait(std::chrono::seconds(20)).value_or(-1);
}

}  // namespace resmgr::test
