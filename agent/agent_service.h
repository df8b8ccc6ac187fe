// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/node_patch.h"
#include "agent/pod_events.h"
#include "pkg/base/status.h"
#include "pkg/grpc/unary_server.h"

namespace resmgr::agent {

// What v1.Agent and cri_resmgr.v1.NodeReports are asked for, on the loop's thread. Each callback is
// called once, then or later on the same thread, or never where this object ends before.
class AgentHandler {
 public:
  using TextDone = std::function<void(StatusOr<std::string> text)>;
  using Done = std::function<void(Status status)>;

  virtual ~AgentHandler() = default;
  virtual void GetNode(TextDone done) = 0;
  virtual void PatchNode(std::vector<PatchOperation> operations, Done done) = 0;
  virtual void UpdateNodeCapacity(std::map<std::string, std::string> capacities, Done done) = 0;
  // The text says what is not well, or nothing.
  virtual void HealthCheck(std::string query, TextDone done) = 0;
  // OK: taken; it is written later. kFailedPrecondition, kInvalidArgument: never.
  virtual Status ShowCpus(std::string cpus) = 0;
  // How many of them are dropped; the others are taken, and written later. kFailedPrecondition:
  // none is, ever.
  virtual StatusOr<uint64_t> AddPodEvents(const std::vector<PodEvent>& events) = 0;
};

// The methods of both services. The handler must outlive their server.
UnaryServer::Methods AgentService(AgentHandler& handler);

}  // namespace resmgr::agent
