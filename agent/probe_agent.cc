// SPDX-License-Identifier: Apache-2.0
#include "agent/probe_agent.h"

#include "pkg/api/agent.pb.h"
#include "pkg/grpc/unary_client.h"

namespace resmgr::agent {

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
