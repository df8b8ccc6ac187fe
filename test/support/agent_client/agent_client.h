// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>

#include "pkg/api/agent.grpc.pb.h"
#include "pkg/base/status.h"

namespace resmgr::test {

// A client of v1.Agent, as the daemon is: changes the node as far as the agent permits. Every call
// waits for its answer. Thread-compatible.
class AgentClient {
 public:
  explicit AgentClient(const std::string& socket);

  // The node at the API server. kUnavailable with the agent's message if it gives none.
  StatusOr<nlohmann::json> Node();
  // One operation of a JSON patch; `value` is JSON too.
  grpc::Status Patch(const std::string& op, const std::string& path, const std::string& value);
  grpc::Status SetCapacity(const std::string& name, const std::string& value);
  // "" when the agent is well.
  std::string Health(const std::string& query);

 private:
  std::unique_ptr<v1::Agent::Stub> stub_;
};

}  // namespace resmgr::test
