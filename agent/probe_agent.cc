// SPDX-License-Identifier: Apache-2.0
#include "agent/probe_agent.h"

#include <string>

#include <grpcpp/grpcpp.h>

#include "pkg/api/agent.grpc.pb.h"

namespace resmgr::agent {

Status ProbeAgent(std::string_view socket, std::string_view query,
                  std::chrono::milliseconds timeout) {
  const auto channel =
      grpc::CreateChannel(fmt::format("unix:{}", socket), grpc::InsecureChannelCredentials());
  const auto stub = v1::Agent::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  v1::HealthCheckRequest request;
  request.set_query(std::string(query));
  v1::HealthCheckReply reply;
  const grpc::Status status = stub->HealthCheck(&context, request, &reply);
  if (!status.ok()) return Unavailable("{}: {}", socket, status.error_message());
  if (!reply.error().empty()) return FailedPrecondition("{}", reply.error());
  return OkStatus();
}

}  // namespace resmgr::agent
