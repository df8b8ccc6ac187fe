// SPDX-License-Identifier: Apache-2.0
// v1.Agent as the daemon uses it.
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include "pkg/api/agent.grpc.pb.h"
#include "test/integration/agent/agent_fixture.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;

class NodeAccessTest : public AgentTest {
 protected:
  NodeAccessTest() {
    api_.SetNode(kNode, {{"theirs.io/label", "x"}});
    StartAgent();
    EXPECT_TRUE(Eventually([this] { return Probe("alive") == 0; })) << AgentLog();
    stub_ = v1::Agent::NewStub(
        grpc::CreateChannel("unix:" + Path("agent.sock"), grpc::InsecureChannelCredentials()));
  }

  grpc::Status Patch(const std::string& op, const std::string& path, const std::string& value) {
    v1::PatchNodeRequest request;
    v1::JsonPatch& patch = *request.add_patches();
    patch.set_op(op);
    patch.set_path(path);
    patch.set_value(value);
    grpc::ClientContext context;
    v1::PatchNodeReply reply;
    return stub_->PatchNode(&context, request, &reply);
  }
  grpc::Status SetCapacity(const std::string& name, const std::string& value) {
    v1::UpdateNodeCapacityRequest request;
    (*request.mutable_capacities())[name] = value;
    grpc::ClientContext context;
    v1::UpdateNodeCapacityReply reply;
    return stub_->UpdateNodeCapacity(&context, request, &reply);
  }
  Json Node() { return api_.objects().Get(std::string(ApiServer::kNodes), kNode).value_or(Json()); }

  std::unique_ptr<v1::Agent::Stub> stub_;
};

TEST_F(NodeAccessTest, OnlyOwnerAndGroupMayConnect) {
  struct stat info {};
  ASSERT_EQ(::stat(Path("agent.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0660U);
}

TEST_F(NodeAccessTest, GivesTheNode) {
  grpc::ClientContext context;
  v1::GetNodeReply reply;
  const grpc::Status status = stub_->GetNode(&context, {}, &reply);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Json::parse(reply.node())["metadata"]["name"], kNode);
}

TEST_F(NodeAccessTest, PatchesWhatIsAllowed) {
  const grpc::Status status =
      Patch("add", "/metadata/labels/cri-resource-manager.intel.com~1zone", "\"a\"");
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Node()["metadata"]["labels"]["cri-resource-manager.intel.com/zone"], "a");
  EXPECT_EQ(Node()["metadata"]["labels"]["theirs.io/label"], "x");
}

TEST_F(NodeAccessTest, TaintsTheNode) {
  const grpc::Status status =
      Patch("add", "/spec", R"({"taints":[{"key":"resource-policy.nri.io/full"}]})");
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Node()["spec"]["taints"][0]["key"], "resource-policy.nri.io/full");
}

TEST_F(NodeAccessTest, RefusesTheRest) {
  for (const char* path : {"/metadata/labels/theirs.io~1label",
                           "/metadata/labels/cri-resource-manager.intel.com~1group",
                           "/metadata/labels/plain", "/spec/unschedulable"}) {
    const grpc::Status status = Patch("add", path, "\"y\"");
    EXPECT_NE(status.error_code(), grpc::StatusCode::OK) << path;
  }
  EXPECT_EQ(Node()["metadata"]["labels"], Json({{"theirs.io/label", "x"}}));
}

TEST_F(NodeAccessTest, SetsExtendedResources) {
  const grpc::Status status = SetCapacity("cri-resource-manager.intel.com/cpus", "4");
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Node()["status"]["capacity"]["cri-resource-manager.intel.com/cpus"], "4");
  EXPECT_EQ(SetCapacity("cpu", "400").error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(NodeAccessTest, PassesOnWhatTheServerSays) {
  api_.FailNext(1, 503, "/api/v1/nodes/n1");
  const grpc::Status status = SetCapacity("cri-resource-manager.intel.com/cpus", "4");
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

}  // namespace
}  // namespace resmgr::test
