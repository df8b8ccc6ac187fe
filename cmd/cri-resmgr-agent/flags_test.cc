// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-agent/flags.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using resmgr::test::Must;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

StatusOr<AgentFlags> Parse(std::vector<const char*> arguments, std::string_view node = "n1") {
  arguments.insert(arguments.begin(), "cri-resmgr-agent");
  return ParseAgentFlags(static_cast<int>(arguments.size()), arguments.data(), node);
}

TEST(AgentFlagsTest, HasTheDefaultsThatUsersKnow) {
  const auto flags = Must(Parse({}));
  EXPECT_EQ(flags.agent.node, "n1");
  EXPECT_EQ(flags.kubeconfig, "");
  EXPECT_EQ(flags.agent.retry.start_spread, std::chrono::seconds(1));
  EXPECT_EQ(flags.agent.report.spread, std::chrono::seconds(5));
  EXPECT_TRUE(flags.agent.show_cpus);
  EXPECT_TRUE(flags.agent.pod_events);
  EXPECT_TRUE(flags.agent.topology);
  EXPECT_TRUE(flags.agent.claims);
  EXPECT_EQ(flags.agent.map_namespace, "kube-system");
  EXPECT_EQ(flags.agent.map_name, "cri-resmgr-config");
  EXPECT_EQ(flags.agent.group_label, "cri-resource-manager.intel.com/group");
  EXPECT_EQ(flags.cri_resmgr_socket, "/var/run/cri-resmgr/cri-resmgr-config.sock");
  EXPECT_EQ(flags.agent_socket, "/var/run/cri-resmgr/cri-resmgr-agent.sock");
}

TEST(AgentFlagsTest, ReadsAllFlags) {
  const auto flags = Must(
      Parse({"-kubeconfig", "/kc", "--config-ns=ns", "-configmap-name", "cm", "-label-name", "l/g",
             "-cri-resmgr-socket", "unix:///c.sock", "-agent-socket=/a.sock", "-allow-domains",
             "a.io, b.io", "-logger-level", "debug", "-start-spread=8m", "-report-spread", "0s"}));
  EXPECT_EQ(flags.kubeconfig, "/kc");
  EXPECT_EQ(flags.agent.map_namespace, "ns");
  EXPECT_EQ(flags.agent.map_name, "cm");
  EXPECT_EQ(flags.agent.group_label, "l/g");
  EXPECT_EQ(flags.cri_resmgr_socket, "/c.sock");
  EXPECT_EQ(flags.agent_socket, "/a.sock");
  EXPECT_THAT(flags.agent.allowed_domains, ElementsAre("a.io", "b.io"));
  EXPECT_EQ(flags.log.level, LogLevel::kDebug);
  EXPECT_EQ(flags.agent.retry.start_spread, std::chrono::minutes(8));
  EXPECT_EQ(flags.agent.report.spread, std::chrono::seconds(0));
}

TEST(AgentFlagsTest, ReportsAreThoseThatAreNamed) {
  const auto none = Must(Parse({"-node-reports="}));
  EXPECT_FALSE(none.agent.show_cpus);
  EXPECT_FALSE(none.agent.pod_events);
  EXPECT_FALSE(none.agent.topology);
  EXPECT_FALSE(none.agent.claims);
  const auto cpus = Must(Parse({"-node-reports", " cpus,"}));
  EXPECT_TRUE(cpus.agent.show_cpus);
  EXPECT_FALSE(cpus.agent.pod_events);
  const auto events = Must(Parse({"-node-reports=pod-events"}));
  EXPECT_FALSE(events.agent.show_cpus);
  EXPECT_TRUE(events.agent.pod_events);
  const auto topology = Must(Parse({"-node-reports=topology"}));
  EXPECT_FALSE(topology.agent.pod_events);
  EXPECT_TRUE(topology.agent.topology);
  EXPECT_FALSE(topology.agent.claims);
  const auto claims = Must(Parse({"-node-reports=claims"}));
  EXPECT_TRUE(claims.agent.claims);
}

TEST(AgentFlagsTest, TheNodesNameHasSmallLettersAsTheKubeletsHas) {
  const auto flags = Must(Parse({}, "Worker-1.Example"));
  EXPECT_EQ(flags.agent.node, "worker-1.example");
}

TEST(AgentFlagsTest, NeedsTheNodesName) {
  EXPECT_THAT(std::string(Message(Parse({}, "").status())), HasSubstr("NODE_NAME"));
  for (const char* action : {"-help", "-version", "-probe=alive"}) {
    EXPECT_TRUE(Parse({action}, "").ok()) << action;
  }
}

TEST(AgentFlagsTest, RefusesWhatCannotBe) {
  const std::vector<std::vector<const char*>> bad = {
      {"-no-such-flag"},
      {"-probe", "weather"},
      {"-agent-socket="},
      {"-cri-resmgr-socket="},
      {"-agent-socket=/s", "-cri-resmgr-socket=/s"},
      {"-config-ns="},
      {"-configmap-name="},
      {"-label-name="},
      {"-logger-level=loud"},
      {"-start-spread=soon"},
      {"-report-spread=2h"},
      {"-node-reports=memory"},
      {"argument"},
  };
  for (const auto& arguments : bad) {
    EXPECT_EQ(Parse(arguments).status().code(), StatusCode::kInvalidArgument) << arguments[0];
  }
}

TEST(AgentFlagsTest, SaysWhatIsNoNameAndNoSocket) {
  const std::string long_socket = "-cri-resmgr-socket=/" + std::string(150, 'x');
  const std::string own_socket = "-agent-socket=/" + std::string(150, 'x');
  const std::vector<std::pair<std::vector<const char*>, const char*>> bad = {
      {{"-config-ns=A/b"}, "-config-ns: \"A/b\" is not the name of a namespace"},
      {{"-configmap-name=a_b"}, "-configmap-name: \"a_b\" is not the name of a ConfigMap"},
      {{"-label-name=a/b/c"}, "-label-name: \"a/b/c\" is not the name of a label"},
      {{"-allow-domains=a.io,*"}, "-allow-domains: \"*\" is not a domain"},
      {{long_socket.c_str()}, "-cri-resmgr-socket: socket path /x"},
      {{own_socket.c_str()}, "-agent-socket: socket path /x"},
      {{own_socket.c_str(), "-probe=alive"}, "-agent-socket: socket path /x"},
  };
  for (const auto& [arguments, message] : bad) {
    EXPECT_THAT(std::string(Message(Parse(arguments).status())), StartsWith(message));
  }
  EXPECT_EQ(Message(Parse({}, "a\nb").status()),
            "NODE_NAME: \"a\\x0ab\" is not the name of a node");
}

TEST(AgentFlagsTest, HelpNamesEveryFlag) {
  const auto flags = Must(Parse({"-help"}, ""));
  for (const char* flag :
       {"-kubeconfig", "-config-ns", "-configmap-name", "-label-name", "-cri-resmgr-socket",
        "-agent-socket", "-allow-domains", "-probe", "-logger-level", "-version", "-start-spread",
        "-report-spread", "-node-reports"}) {
    EXPECT_THAT(flags.help, HasSubstr(flag));
  }
}

}  // namespace
}  // namespace resmgr
