// SPDX-License-Identifier: Apache-2.0
// ConfigMaps on their way to the daemon, and its verdict on its way to the node.
#include <algorithm>
#include <csignal>

#include "pkg/sys/unix_socket.h"
#include "test/integration/agent/agent_fixture.h"

namespace resmgr::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

constexpr char kMap[] = "cri-resource-manager.intel.com/config-map";

// How long it takes until a delivery counts as pending is judged by a clock of the test's own
// (agent/config_pusher_test.cc).
class AgentConfigTest : public AgentTest {};

TEST_F(AgentConfigTest, BringsTheWholeMapUnderTheNodesName) {
  api_.SetConfigMap(kDefaultMap, {{"policy", "Active: static"}, {"logger", "Debug: '*'"}});
  daemon_.Start();
  StartAgent();
  ASSERT_TRUE(DaemonGets("Active: static")) << AgentLog();
  EXPECT_EQ(daemon_.node(), kNode);
  EXPECT_EQ(daemon_.received()[0].at("logger"), "Debug: '*'");
  EXPECT_EQ(daemon_.received().size(), 1u);
}

TEST_F(AgentConfigTest, EditArrivesAtOnce) {
  StartAll();
  std::vector<milliseconds> times;
  for (int i = 0; i < 40; ++i) {
    const auto start = std::chrono::steady_clock::now();
    SetPolicy(kDefaultMap, "edit " + std::to_string(i));
    ASSERT_TRUE(DaemonGets("edit " + std::to_string(i))) << AgentLog();
    times.push_back(
        std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start));
  }
  std::sort(times.begin(), times.end());
  EXPECT_LT(times[times.size() / 2], seconds(2)) << "lists come minutes apart";
}

TEST_F(AgentConfigTest, NodeBeatsGroupBeatsDefault) {
  api_.SetNode(kNode, {{kGroupLabel, "hpc"}});
  StartAll(4);  // the group has no map yet
  SetPolicy("cri-resmgr-config.group.hpc", "group");
  ASSERT_TRUE(DaemonGets("group")) << AgentLog();
  SetPolicy(kNodeMap, "node");
  ASSERT_TRUE(DaemonGets("node"));
  SetPolicy("cri-resmgr-config.group.hpc", "group 2");
  api_.DeleteConfigMap(kNodeMap);
  ASSERT_TRUE(DaemonGets("group 2"));
  api_.DeleteConfigMap("cri-resmgr-config.group.hpc");
  ASSERT_TRUE(DaemonGets("first"));
}

TEST_F(AgentConfigTest, LabelChangeSwitchesTheGroup) {
  SetPolicy("cri-resmgr-config.group.a", "of a");
  SetPolicy("cri-resmgr-config.group.b", "of b");
  StartAll();
  api_.SetNode(kNode, {{kGroupLabel, "a"}});
  ASSERT_TRUE(DaemonGets("of a")) << AgentLog();
  api_.SetNode(kNode, {{kGroupLabel, "b"}});
  ASSERT_TRUE(DaemonGets("of b"));
  api_.SetNode(kNode, {{kGroupLabel, "without a map"}});
  ASSERT_TRUE(DaemonGets("first"));
  api_.SetNode(kNode, {{kGroupLabel, "a"}});
  ASSERT_TRUE(DaemonGets("of a"));
  api_.SetNode(kNode, {});
  ASSERT_TRUE(DaemonGets("first"));
}

TEST_F(AgentConfigTest, VerdictIsOnTheNodeAndInEvents) {
  StartAll();
  ASSERT_TRUE(NodeSays(kStatus, "accepted")) << AgentLog();
  EXPECT_EQ(api_.Annotation(kNode, kMap), kDefaultMap);
  EXPECT_EQ(Probe("config-status"), 0);
  SetPolicy(kDefaultMap, "bad: there is no policy \"bad\"");
  ASSERT_TRUE(NodeSays(kStatus, "rejected")) << AgentLog();
  EXPECT_EQ(api_.Annotation(kNode, kError), "there is no policy \"bad\"");
  EXPECT_EQ(Probe("config-status"), 1);
  EXPECT_THAT(TextOf(Path("probe.log")), HasSubstr("there is no policy"));
  EXPECT_EQ(Probe("alive"), 0);
  SetPolicy(kDefaultMap, "good again");
  ASSERT_TRUE(NodeSays(kStatus, "accepted"));
  EXPECT_EQ(api_.Annotation(kNode, kError), "");
  ASSERT_TRUE(Eventually([this] { return !api_.Events().empty(); }));
  EXPECT_EQ(api_.Events().size(), 1u) << "only what needs an administrator is an Event";
  EXPECT_EQ(api_.Events()[0]["reason"], "ConfigRejected");
  EXPECT_THAT(api_.Events()[0]["message"].get<std::string>(),
              AllOf(HasSubstr("there is no policy"), HasSubstr(kDefaultMap)));
}

TEST_F(AgentConfigTest, DeliversNothingWhereNoMapExists) {
  daemon_.Start();
  StartAgent();
  ASSERT_TRUE(NodeSays(kStatus, "none")) << AgentLog();
  EXPECT_TRUE(daemon_.received().empty());
  SetPolicy(kDefaultMap, "now");
  ASSERT_TRUE(DaemonGets("now"));
  api_.DeleteConfigMap(kDefaultMap);
  ASSERT_TRUE(NodeSays(kStatus, "none"));
  EXPECT_EQ(daemon_.received().size(), 1u) << "the daemon keeps what it has";
}

TEST_F(AgentConfigTest, WaitsForTheDaemonAndComesBackToIt) {
  SetPolicy(kDefaultMap, "first");
  StartAgent();
  ASSERT_TRUE(NodeSays(kStatus, "pending")) << AgentLog();
  EXPECT_EQ(Probe("config-status"), 1);
  daemon_.Start();
  ASSERT_TRUE(DaemonGets("first")) << AgentLog();
  daemon_.Stop();
  daemon_.Start();
  ASSERT_TRUE(Eventually([this] { return daemon_.received().size() >= 2; })) << AgentLog();
  EXPECT_EQ(daemon_.policy(), "first");
  ASSERT_TRUE(NodeSays(kStatus, "accepted"));
}

TEST_F(AgentConfigTest, ADaemonThatDoesNotAnswerADeliveryIsPending) {
  StartAll();
  ASSERT_TRUE(NodeSays(kStatus, "accepted")) << AgentLog();
  daemon_.Hold();
  SetPolicy(kDefaultMap, "second");
  ASSERT_TRUE(DaemonGets("second")) << AgentLog();
  EXPECT_TRUE(NodeSays(kStatus, "pending")) << AgentLog();
  EXPECT_THAT(api_.Annotation(kNode, kError), HasSubstr("does not answer"));
  daemon_.Release();
  EXPECT_TRUE(NodeSays(kStatus, "accepted")) << AgentLog();
  EXPECT_EQ(daemon_.received().size(), 2u) << "delivered once, however late the answer";
}

TEST_F(AgentConfigTest, ASocketWithAFullQueueIsPending) {
  const auto socket = ListeningSocket::Create(Path("config.sock"));
  ASSERT_TRUE(socket.ok()) << Describe(socket.status());
  SetPolicy(kDefaultMap, "first");
  StartAgent();
  EXPECT_TRUE(NodeSays(kStatus, "pending")) << AgentLog();
}

TEST_F(AgentConfigTest, AsksOnlyForItsNodeAndItsMaps) {
  StartAll();
  for (const ApiServer::Request& request : api_.Requests()) {
    if (request.method != "GET") continue;
    EXPECT_THAT(request.query, testing::Contains(testing::Key("fieldSelector"))) << request.path;
  }
}

TEST_F(AgentConfigTest, EndsInGoodOrder) {
  StartAll();
  agent_->Signal(SIGTERM);
  const auto status = agent_->Wait(seconds(20));
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(*status, 0) << AgentLog();
  EXPECT_NE(Probe("alive"), 0);
}

}  // namespace
}  // namespace resmgr::test
