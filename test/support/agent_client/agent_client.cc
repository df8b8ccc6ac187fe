// SPDX-License-Identifier: Apache-2.0
#include "test/support/agent_client/agent_client.h"

namespace resmgr::test {

AgentClient::AgentClient(const std::string& socket)
    : stub_(v1::Agent::NewStub(
          grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials()))) {}

StatusOr<nlohmann::json> AgentClient::Node() {
  grpc::ClientContext context;
  v1::GetNodeReply reply;
  const grpc::Status status = stub_->GetNode(&context, {}, &reply);
  if (!status.ok()) return Unavailable("GetNode: {}", status.error_message());
  nlohmann::json node = nlohmann::json::parse(reply.node(), nullptr, false);
  if (node.is_discarded()) return Unavailable("GetNode: {} is not JSON", reply.node());
  return node;
}

grpc::Status AgentClient::Patch(const std::string& op, const std::string& path,
                                const std::string& value) {
  v1::PatchNodeRequest request;
  v1::JsonPatch& patch = *request.add_patches();
  patch.set_op(op);
  patch.set_path(path);
  patch.set_value(value);
  grpc::ClientContext context;
  v1::PatchNodeReply reply;
  return stub_->PatchNode(&context, request, &reply);
}

grpc::Status AgentClient::SetCapacity(const std::string& name, const std::string& value) {
  v1::UpdateNodeCapacityRequest request;
  (*request.mutable_capacities())[name] = value;
  grpc::ClientContext context;
  v1::UpdateNodeCapacityReply reply;
  return stub_->UpdateNodeCapacity(&context, request, &reply);
}

std::string AgentClient::Health(const std::string& query) {
  v1::HealthCheckRequest request;
  request.set_query(query);
  grpc::ClientContext context;
  v1::HealthCheckReply reply;
  const grpc::Status status = stub_->HealthCheck(&context, request, &reply);
  return status.ok() ? reply.error() : status.error_message();
}

}  // namespace resmgr::test
