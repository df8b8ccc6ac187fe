// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/agent_service.h"
#include "agent/config_pusher.h"
#include "agent/config_source.h"
#include "agent/cpus_annotation.h"
#include "agent/http.h"
#include "agent/node_access.h"
#include "agent/node_patch.h"
#include "agent/pod_events.h"
#include "agent/slice_writer.h"
#include "agent/status_reporter.h"
#include "agent/topology_writer.h"
#include "pkg/log/rate_limit.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {

// Queries of v1.Agent/HealthCheck.
inline constexpr std::string_view kAliveQuery;                     // whether the agent answers
inline constexpr std::string_view kConfigQuery = "config-status";  // the last delivery's outcome

struct AgentOptions {
  std::string node{};  // $NODE_NAME
  std::string map_namespace = "kube-system";
  std::string map_name = "cri-resmgr-config";
  std::string group_label = "cri-resource-manager.intel.com/group";
  // Label, annotation and taint domains that the daemon may change on the node.
  std::vector<std::string> allowed_domains = {"cri-resource-manager.intel.com",
                                              "resource-policy.nri.io"};
  // Reports about the node that the daemon may send. Its policy may always be reported.
  bool show_cpus = true;
  bool pod_events = true;
  bool topology = true;
  // Whether the daemon may read claims and have its ResourceSlice written.
  bool claims = true;
  RetryOptions retry{.start_spread = std::chrono::seconds(1)};
  ReportOptions report{.spread = std::chrono::seconds(5)};
  Backoff::Options push_backoff{.first = Backoff::Duration(100), .limit = Backoff::Duration(2000)};
};

// The agent of one node: cluster ──▶ ConfigSource ──▶ ConfigPusher ──▶ daemon, the daemon's verdict
// ──▶ StatusReporter ──▶ cluster, and the daemon's own access to its node. Everything happens on
// the loop's thread. Thread-compatible.
class Agent : public AgentHandler {
 public:
  // All must outlive this object.
  Agent(const AgentOptions& options, HttpTransport& transport, Clock& timers, ConfigClient& client);

  void Start();

  void GetNode(TextDone done) override;
  void PatchNode(std::vector<PatchOperation> operations, Done done) override;
  void UpdateNodeCapacity(std::map<std::string, std::string> capacities, Done done) override;
  void HealthCheck(std::string query, TextDone done) override;
  Status ShowCpus(std::string cpus) override;
  StatusOr<uint64_t> AddPodEvents(const cri_resmgr::v1::AddPodEventsRequest& request) override;
  Status ShowTopology(std::optional<cri_resmgr::v1::ShowTopologyRequest> view) override;
  void GetClaim(const std::string& namespace_name, const std::string& name, TextDone done) override;
  Status ShowDevices(std::optional<ShowDevicesRequest> report) override;
  std::string Pool() const override { return node_; }

 private:
  struct HeldPatch {
    std::vector<PatchOperation> operations{};
    Done done{};
  };

  void NodeSeen(const Json& node);
  void ReleasePatches();
  // Whether the daemon's present changes follow from a map that other nodes use, too, or must wait
  // behind such changes.
  bool FollowsSharedMap() const;

  const std::string node_;
  const std::string own_map_;
  const KeyRules rules_;
  const std::chrono::milliseconds start_spread_;
  Clock& timers_;
  NodeView view_;
  // True until the node has been seen, or should have been seen: patches wait.
  bool holds_patches_ = true;
  std::vector<HeldPatch> held_patches_;
  size_t held_bytes_ = 0;
  EventLoop::HandlePtr first_view_;
  StatusReporter reporter_;
  std::optional<CpusAnnotation> cpus_;  // nullopt: not shown
  ConfigPusher pusher_;
  ConfigSource source_;
  NodeAccess access_;
  std::optional<PodEvents> pod_events_;     // nullopt: not reported
  std::optional<TopologyWriter> topology_;  // nullopt: not written
  std::optional<ClaimReader> claims_;       // nullopt: not read
  std::optional<SliceWriter> slices_;       // nullopt: not written
  RateLimit bad_events_;                    // limits the log lines about them
};

}  // namespace resmgr::agent
