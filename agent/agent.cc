// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/log/log.h"

namespace resmgr::agent {
namespace {

// How long the API server may take to show the node to an agent that has asked for it. Patches wait
// until then, since the node's state may show that they change nothing.
constexpr std::chrono::seconds kFirstViewPatience{5};
// Limits of the waiting patches. A patch beyond them does not wait. A single patch is at most as
// long as a gRPC message.
constexpr size_t kMostHeldPatches = 256;
constexpr size_t kMostHeldBytes = size_t{4} << 20;
constexpr std::chrono::seconds kBadEventsPeriod{60};
// Added to the agent's seed, so that the random waits of these parts differ.
constexpr uint64_t kPodEventsSeed = 100;
constexpr uint64_t kTopologySeed = 200;
constexpr uint64_t kSlicesSeed = 300;

Status NotNamed(std::string_view report) {
  return FailedPrecondition("the flag -node-reports of cri-resmgr-agent does not name {}", report);
}

KeyRules Rules(const AgentOptions& options) {
  KeyRules rules{.domains = options.allowed_domains, .reserved = {}};
  // The group chooses the node's configuration, so only administrators may set the label.
  rules.reserved.insert(options.group_label);
  rules.reserved.insert(kStatusAnnotations.begin(), kStatusAnnotations.end());
  return rules;
}

}  // namespace

Agent::Agent(const AgentOptions& options, HttpTransport& transport, Clock& timers,
             ConfigClient& client)
    : node_(options.node),
      own_map_(NodeMapName(options.map_name, options.node)),
      rules_(Rules(options)),
      start_spread_(options.retry.start_spread),
      timers_(timers),
      view_(rules_),
      reporter_(transport, timers, options.node, own_map_, options.report, options.retry.seed),
      pusher_(client, timers, options.push_backoff, options.retry.seed,
              [this](const Verdict& verdict) { reporter_.Report(verdict); }),
      source_(
          transport, timers,
          {.node = options.node,
           .map_namespace = options.map_namespace,
           .map_name = options.map_name,
           .group_label = options.group_label,
           .retry = options.retry},
          [this](const std::optional<ConfigMap>& map) { pusher_.Set(map); },
          [this](const Json& node) { NodeSeen(node); }),
      access_(transport, options.node, rules_,
              [this](const Json& annotations) { view_.Written(annotations); }),
      bad_events_(1, kBadEventsPeriod) {
  reporter_.TellOthersWritten([this](const Json& annotations) { view_.Written(annotations); });
  if (options.show_cpus) cpus_.emplace(reporter_);
  if (options.pod_events) {
    pod_events_.emplace(
        transport, timers, options.node,
        PodEvents::Options{.spread = options.report.spread, .backoff = options.report.backoff},
        options.retry.seed + kPodEventsSeed);
  }
  if (options.topology) {
    topology_.emplace(
        transport, timers, options.node,
        TopologyWriter::Options{.spread = options.report.spread, .backoff = options.report.backoff},
        options.retry.seed + kTopologySeed);
  }
  if (options.claims) {
    claims_.emplace(transport);
    slices_.emplace(transport, timers, options.node,
                    SliceWriter::Options{.spread = options.report.spread,
                                         .backoff = options.report.backoff,
                                         .watch = options.retry},
                    options.retry.seed + kSlicesSeed);
  }
}

void Agent::Start() {
  source_.Start();
  first_view_ = timers_.After(start_spread_ + kFirstViewPatience, [this] { ReleasePatches(); });
}

void Agent::ReleasePatches() {
  holds_patches_ = false;
  held_bytes_ = 0;
  for (HeldPatch& held : std::exchange(held_patches_, {}))
    PatchNode(std::move(held.operations), held.done);
}

void Agent::NodeSeen(const Json& node) {
  view_.Seen(node);
  reporter_.NodeSeen(node);
  if (cpus_) cpus_->NodeSeen(node);
  if (topology_) topology_->NodeSeen(node);
  if (slices_) slices_->NodeSeen(node);
  if (holds_patches_) ReleasePatches();
}

bool Agent::FollowsSharedMap() const {
  const std::optional<ConfigMap>& pushing = pusher_.pushing();
  // While annotations wait for the agent's report, later annotations wait, too: otherwise they
  // would be written first.
  if (!reporter_.taken_along().empty() || reporter_.WaitsWithSharedNews()) return true;
  return pushing && pushing->name != own_map_;
}

void Agent::GetNode(TextDone done) {
  access_.Get(std::move(done));
}

// If the node shows the values already, no request is sent. Annotations that follow from a map that
// thousands of nodes share are sent with the agent's own report about that map.
void Agent::PatchNode(std::vector<PatchOperation> operations, Done done) {
  if (holds_patches_) {
    const size_t bytes = SizeOf(operations);
    if (held_patches_.size() < kMostHeldPatches && held_bytes_ + bytes <= kMostHeldBytes) {
      held_bytes_ += bytes;
      held_patches_.push_back({std::move(operations), std::move(done)});
      return;
    }
    // In their order: the last value of an annotation has to stay.
    ReleasePatches();
  }
  const std::optional<Json> annotations =
      view_.ChangedAnnotations(operations, reporter_.taken_along());
  // Sent with the report, an annotation could be written before the patches that are under way.
  if (annotations && !access_.patching()) {
    if (annotations->empty()) return done(OkStatus());
    if (FollowsSharedMap() && reporter_.TakeAlong(*annotations)) return done(OkStatus());
  }
  if (annotations && !reporter_.LeaveOut(*annotations)) {
    return done(Unavailable("the API server has not answered an earlier patch of the node"));
  }
  access_.Patch(std::move(operations), done);
}

void Agent::UpdateNodeCapacity(std::map<std::string, std::string> capacities, Done done) {
  access_.SetCapacity(capacities, done);
}

void Agent::HealthCheck(std::string query, TextDone done) {
  if (query == kAliveQuery) return done("");
  if (query == kConfigQuery) return done(Complaint(pusher_.verdict()));
  done(fmt::format("unknown query \"{}\"", Printable(query)));
}

Status Agent::ShowCpus(std::string cpus) {
  return cpus_ ? cpus_->Show(std::move(cpus)) : NotNamed("cpus");
}

Status Agent::ShowTopology(std::optional<cri_resmgr::v1::ShowTopologyRequest> view) {
  return topology_ ? topology_->Show(std::move(view)) : NotNamed("topology");
}

void Agent::GetClaim(const std::string& namespace_name, const std::string& name, TextDone done) {
  if (!claims_) return done(NotNamed("claims"));
  claims_->Get(namespace_name, name, std::move(done));
}

Status Agent::ShowDevices(std::optional<ShowDevicesRequest> report) {
  return slices_ ? slices_->Show(std::move(report)) : NotNamed("claims");
}

StatusOr<uint64_t> Agent::AddPodEvents(const cri_resmgr::v1::AddPodEventsRequest& request) {
  if (!pod_events_) return NotNamed("pod-events");
  uint64_t dropped = 0;
  for (const PodEvent& event : request.events()) {
    const Status status = CheckPodEvent(event);
    if (!status.ok() && bad_events_.Pass(timers_.Steady())) {
      GetLogger("agent").Warn("an event of a pod is dropped: {}", Message(status));
    }
    if (!status.ok() || !pod_events_->Add(event)) ++dropped;
  }
  return dropped;
}

}  // namespace resmgr::agent
