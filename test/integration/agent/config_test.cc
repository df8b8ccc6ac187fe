// SPDX-License-Identifier: Apache-2.0
// ConfigMaps on their way to the daemon, and its verdict on its way to the node.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <ranges>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include "pkg/sys/unix_socket.h"
#include "test/integration/agent/agent_fixture.h"
#include "test/support/agent_client/agent_client.h"
#include "test/support/status_matchers.h"

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
  const auto socket = Must(ListeningSocket::Create(Path("config.sock")));
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
  const auto status = Must(agent_->Wait(seconds(20)));
  EXPECT_EQ(status, 0) << AgentLog();
  EXPECT_NE(Probe("alive"), 0);
}

// v1.Agent as the daemon uses it.
class NodeAccessTest : public AgentTest {
 protected:
  NodeAccessTest() {
    api_.SetNode(kNode, {{"theirs.io/label", "x"}});
    StartAgent();
    EXPECT_TRUE(Eventually([this] { return Probe("alive") == 0; })) << AgentLog();
  }

  Json Node() { return api_.objects().Get(std::string(ApiServer::kNodes), kNode).value_or(Json()); }

  AgentClient client_{Path("agent.sock")};
};

TEST_F(NodeAccessTest, OnlyOwnerAndGroupMayConnect) {
  struct stat info {};
  ASSERT_EQ(::stat(Path("agent.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0660U);
}

TEST_F(NodeAccessTest, GivesTheNode) {
  const auto node = Must(client_.Node());
  EXPECT_EQ(node["metadata"]["name"], kNode);
}

TEST_F(NodeAccessTest, PatchesWhatIsAllowed) {
  const grpc::Status status =
      client_.Patch("add", "/metadata/labels/cri-resource-manager.intel.com~1zone", "\"a\"");
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Node()["metadata"]["labels"]["cri-resource-manager.intel.com/zone"], "a");
  EXPECT_EQ(Node()["metadata"]["labels"]["theirs.io/label"], "x");
}

TEST_F(NodeAccessTest, TaintsTheNode) {
  const grpc::Status status =
      client_.Patch("add", "/spec", R"({"taints":[{"key":"resource-policy.nri.io/full"}]})");
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Node()["spec"]["taints"][0]["key"], "resource-policy.nri.io/full");
}

TEST_F(NodeAccessTest, RefusesTheRest) {
  for (const char* path : {"/metadata/labels/theirs.io~1label",
                           "/metadata/labels/cri-resource-manager.intel.com~1group",
                           "/metadata/labels/plain", "/spec/unschedulable"}) {
    const grpc::Status status = client_.Patch("add", path, "\"y\"");
    EXPECT_NE(status.error_code(), grpc::StatusCode::OK) << path;
  }
  EXPECT_EQ(Node()["metadata"]["labels"], Json({{"theirs.io/label", "x"}}));
}

TEST_F(NodeAccessTest, SetsExtendedResources) {
  const grpc::Status status = client_.SetCapacity("cri-resource-manager.intel.com/cpus", "4");
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Node()["status"]["capacity"]["cri-resource-manager.intel.com/cpus"], "4");
  EXPECT_EQ(client_.SetCapacity("cpu", "400").error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(NodeAccessTest, PassesOnWhatTheServerSays) {
  // The agent itself reads the node, whenever it likes.
  api_.FailNext(1, 503, "/api/v1/nodes/n1/status");
  const grpc::Status status = client_.SetCapacity("cri-resource-manager.intel.com/cpus", "4");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("503"));
}

TEST_F(NodeAccessTest, ASecondAgentDoesNotTakeTheSocket) {
  auto second = Must(ChildProcess::Start(Flags(), Path("second.log")));
  EXPECT_EQ(second->Wait(std::chrono::seconds(20)).value_or(-1), 2) << TextOf(Path("second.log"));
  EXPECT_EQ(Probe("alive"), 0);
}

// Clients that connect and send nothing.
class SilentClientsTest : public AgentTest {
 protected:
  // Starts the agent with this limit of file descriptors.
  void StartAgentWith(int files) {
    std::vector<std::string> argv = {"sh", "-c",
                                     "ulimit -n " + std::to_string(files) + R"(; exec "$0" "$@")"};
    std::ranges::copy(Flags(), std::back_inserter(argv));
    Start(argv);
    ASSERT_TRUE(Eventually([this] { return Probe("alive") == 0; })) << AgentLog();
  }
  void Connect(int clients) {
    for (int i = 0; i < clients; ++i) {
      ASSERT_TRUE(Eventually([this] {
        auto connection = ConnectUnix(Path("agent.sock"));
        if (!connection.ok()) return false;  // the queue is full
        clients_.push_back(*std::move(connection));
        return true;
      })) << i;
    }
  }
  int64_t OpenFiles() const {
    return std::ranges::distance(
        std::filesystem::directory_iterator("/proc/" + std::to_string(agent_->pid()) + "/fd"),
        std::filesystem::directory_iterator());
  }

  std::vector<UniqueFd> clients_;
};

TEST_F(SilentClientsTest, TheLongestIdleOneEnds) {
  StartAgentWith(1024);
  const int64_t before = OpenFiles();
  Connect(300);
  EXPECT_EQ(Probe("alive"), 0) << AgentLog();
  EXPECT_TRUE(Eventually([&] { return OpenFiles() < before + 100; })) << OpenFiles();
}

TEST_F(SilentClientsTest, NewClientsGetInWithoutFiles) {
  StartAgentWith(48);
  Connect(100);
  EXPECT_EQ(Probe("alive"), 0) << AgentLog();
  const std::string log = TextOf(Path("agent.log"));
  EXPECT_LT(std::ranges::count(log, '\n'), 40) << AgentLog();
}

}  // namespace
}  // namespace resmgr::test
