// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/node_patch.h"
#include "agent/pod_events.h"
#include "agent/slice_writer.h"
#include "pkg/api/node_reports.pb.h"
#include "pkg/base/status.h"
#include "pkg/grpc/unary_server.h"

namespace resmgr::agent {

// Handles the calls of v1.Agent, cri_resmgr.v1.NodeReports and cri_resmgr.v1.NodeClaims on the
// loop's thread. Each callback is called at most once, at once or later on the same thread; never
// after this object's end.
class AgentHandler {
 public:
  using TextDone = std::function<void(StatusOr<std::string> text)>;
  using Done = std::function<void(Status status)>;

  virtual ~AgentHandler() = default;
  virtual void GetNode(TextDone done) = 0;
  virtual void PatchNode(std::vector<PatchOperation> operations, Done done) = 0;
  virtual void UpdateNodeCapacity(std::map<std::string, std::string> capacities, Done done) = 0;
  // The text describes the problem; it is empty when there is none.
  virtual void HealthCheck(std::string query, TextDone done) = 0;
  // OK: accepted and written later. kFailedPrecondition, kInvalidArgument: it will never be
  // written.
  virtual Status ShowCpus(std::string cpus) = 0;
  // Returns the number of dropped events; the others are written later. kFailedPrecondition: none
  // will ever be written.
  virtual StatusOr<uint64_t> AddPodEvents(const cri_resmgr::v1::AddPodEventsRequest& request) = 0;
  // nullopt: the object is to be removed. Results as from ShowCpus.
  virtual Status ShowTopology(std::optional<cri_resmgr::v1::ShowTopologyRequest> view) = 0;
  // The ResourceClaim as JSON.
  virtual void GetClaim(const std::string& namespace_name, const std::string& name,
                        TextDone done) = 0;
  // nullopt: the ResourceSlice is to be removed. Results as from ShowCpus, and kPermissionDenied:
  // accepted, but the API server has refused the last write.
  virtual Status ShowDevices(std::optional<ShowDevicesRequest> report) = 0;
  // The name of the pool that the reported devices belong to.
  virtual std::string Pool() const = 0;
};

// The methods of v1.Agent, cri_resmgr.v1.NodeReports and NodeClaims. The handler must outlive the
// server that has them.
UnaryServer::Methods AgentService(AgentHandler& handler);

// Asks an agent's HealthCheck and waits for its answer. kFailedPrecondition: the problem, as the
// agent describes it. kUnavailable: no agent answers there.
Status ProbeAgent(const std::string& socket, std::string_view query,
                  std::chrono::milliseconds timeout);

}  // namespace resmgr::agent
