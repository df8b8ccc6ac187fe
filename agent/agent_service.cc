// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_service.h"

#include <utility>

#include "pkg/api/agent.pb.h"
#include "pkg/api/node_claims.pb.h"
#include "pkg/grpc/unary_client.h"

namespace resmgr::agent {
namespace {

// A method that parses its request, and answers INVALID_ARGUMENT if that fails.
template <typename Request>
UnaryServer::Method Reads(std::function<void(const Request&, const UnaryServer::Reply&)> method) {
  return [method = std::move(method)](const std::string& message, const UnaryServer::Reply& reply) {
    Request request;
    if (!request.ParseFromString(message)) {
      return reply(InvalidArgument("not a {}", request.GetTypeName()));
    }
    method(request, reply);
  };
}

// Sends an empty answer, or the status of the failure.
template <typename Answer>
AgentHandler::Done WithStatus(const UnaryServer::Reply& reply) {
  return [reply](const Status& status) {
    reply(status.ok() ? StatusOr<std::string>(Answer().SerializeAsString()) : status);
  };
}

// Returns kUnavailable if the API server is late. From DEADLINE_EXCEEDED the daemon would conclude
// that the agent itself is late, connect anew, and so end its other calls.
Status ForDaemon(const Status& of_server) {
  if (of_server.code() != StatusCode::kDeadlineExceeded) return of_server;
  return Unavailable("{}", Message(of_server));
}

void AddClaims(AgentHandler& handler, UnaryServer::Methods& methods) {
  methods["/cri_resmgr.v1.NodeClaims/GetClaim"] =
      Reads<cri_resmgr::v1::GetClaimRequest>([&handler](const auto& request, const auto& reply) {
        handler.GetClaim(request.claim_namespace(), request.claim(),
                         [reply](const StatusOr<std::string>& claim) {
                           if (!claim.ok()) return reply(ForDaemon(claim.status()));
                           cri_resmgr::v1::GetClaimReply answer;
                           answer.set_claim(*claim);
                           reply(answer.SerializeAsString());
                         });
      });
  methods["/cri_resmgr.v1.NodeClaims/ShowDevices"] =
      Reads<ShowDevicesRequest>([&handler](const auto& request, const auto& reply) {
        const Status shown =
            handler.ShowDevices(request.absent() ? std::nullopt : std::optional(request));
        if (!shown.ok()) return reply(shown);
        cri_resmgr::v1::ShowDevicesReply answer;
        answer.set_pool(handler.Pool());
        reply(answer.SerializeAsString());
      });
}

}  // namespace

UnaryServer::Methods AgentService(AgentHandler& handler) {
  UnaryServer::Methods methods = {
      {"/v1.Agent/GetNode",
       Reads<v1::GetNodeRequest>([&handler](const auto& /*request*/, const auto& reply) {
         handler.GetNode([reply](const StatusOr<std::string>& node) {
           if (!node.ok()) return reply(node.status());
           v1::GetNodeReply answer;
           answer.set_node(*node);
           reply(answer.SerializeAsString());
         });
       })},
      {"/v1.Agent/PatchNode",
       Reads<v1::PatchNodeRequest>([&handler](const auto& request, const auto& reply) {
         std::vector<PatchOperation> operations;
         for (const v1::JsonPatch& patch : request.patches()) {
           operations.push_back({.op = patch.op(), .path = patch.path(), .value = patch.value()});
         }
         handler.PatchNode(std::move(operations), WithStatus<v1::PatchNodeReply>(reply));
       })},
      {"/v1.Agent/UpdateNodeCapacity",
       Reads<v1::UpdateNodeCapacityRequest>([&handler](const auto& request, const auto& reply) {
         handler.UpdateNodeCapacity({request.capacities().begin(), request.capacities().end()},
                                    WithStatus<v1::UpdateNodeCapacityReply>(reply));
       })},
      {"/v1.Agent/HealthCheck",
       Reads<v1::HealthCheckRequest>([&handler](const auto& request, const auto& reply) {
         handler.HealthCheck(request.query(), [reply](const StatusOr<std::string>& complaint) {
           if (!complaint.ok()) return reply(complaint.status());
           v1::HealthCheckReply answer;
           answer.set_error(*complaint);
           reply(answer.SerializeAsString());
         });
       })},
      {"/cri_resmgr.v1.NodeReports/ShowCpus",
       Reads<cri_resmgr::v1::ShowCpusRequest>([&handler](const auto& request, const auto& reply) {
         WithStatus<cri_resmgr::v1::ShowCpusReply>(reply)(handler.ShowCpus(request.cpus()));
       })},
      {"/cri_resmgr.v1.NodeReports/AddPodEvents",
       Reads<cri_resmgr::v1::AddPodEventsRequest>(
           [&handler](const auto& request, const auto& reply) {
             const StatusOr<uint64_t> dropped = handler.AddPodEvents(request);
             if (!dropped.ok()) return reply(dropped.status());
             cri_resmgr::v1::AddPodEventsReply answer;
             answer.set_dropped(*dropped);
             reply(answer.SerializeAsString());
           })},
      {"/cri_resmgr.v1.NodeReports/ShowTopology",
       Reads<cri_resmgr::v1::ShowTopologyRequest>(
           [&handler](const auto& request, const auto& reply) {
             WithStatus<cri_resmgr::v1::ShowTopologyReply>(reply)(
                 handler.ShowTopology(request.absent() ? std::nullopt : std::optional(request)));
           })},
  };
  AddClaims(handler, methods);
  return methods;
}

Status ProbeAgent(const std::string& socket, std::string_view query,
                  std::chrono::milliseconds timeout) {
  v1::HealthCheckRequest request;
  request.set_query(std::string(query));
  const UnaryAnswer answer =
      AskUnary(socket, "/v1.Agent/HealthCheck", request.SerializeAsString(), timeout);
  if (!answer.connected.ok()) return answer.connected;
  v1::HealthCheckReply reply;
  if (!answer.reply.ok() || !reply.ParseFromString(*answer.reply)) {
    return Unavailable("{}: {}", socket,
                       answer.reply.ok() ? "the answer is not a HealthCheckReply"
                                         : Message(answer.reply.status()));
  }
  if (!reply.error().empty()) return FailedPrecondition("{}", reply.error());
  return OkStatus();
}

}  // namespace resmgr::agent
