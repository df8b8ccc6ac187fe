// SPDX-License-Identifier: Apache-2.0
// v1.Agent as the daemon uses it.
#include <algorithm>
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

using testing::HasSubstr;

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
  const auto node = client_.Node();
  ASSERT_THAT(node, IsOk());
  EXPECT_EQ((*node)["metadata"]["name"], kNode);
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
  auto second = ChildProcess::Start(Flags(), Path("second.log"));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ((*second)->Wait(std::chrono::seconds(20)).value_or(-1), 2)
      << TextOf(Path("second.log"));
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
