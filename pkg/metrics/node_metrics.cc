// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/node_metrics.h"

#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include "pkg/metrics/call_times.h"
#include "pkg/metrics/collect.h"

namespace resmgr {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// Values of the label `operation`, in the order of NodeMetrics::Operation.
constexpr std::array kOperations = {"reconcile", "allocate", "update", "release", "rebalance"};

// From a decision about one shared container to the reconciliation of thousands.
constexpr TimeHistogram::Bounds kDecisionBounds = {
    microseconds(1),  nanoseconds(2500), microseconds(5),   microseconds(10),  microseconds(25),
    microseconds(50), microseconds(100), microseconds(250), microseconds(500), milliseconds(1),
    milliseconds(5),  milliseconds(25),  milliseconds(100), seconds(1),        seconds(10)};

// From a claim that already holds its CPUs to a call that takes as long as the kubelet waits.
constexpr TimeHistogram::Bounds kClaimBounds = {
    milliseconds(1),    milliseconds(2),   milliseconds(5),   milliseconds(10),  milliseconds(25),
    milliseconds(50),   milliseconds(100), milliseconds(250), milliseconds(500), seconds(1),
    milliseconds(2500), seconds(5),        seconds(10),       seconds(20),       seconds(40)};

}  // namespace

class NodeMetrics::Impl {
 public:
  const std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  // policy_decision_seconds{operation}
  std::array<TimeHistogram, kOperations.size()> decisions = {
      TimeHistogram(kDecisionBounds), TimeHistogram(kDecisionBounds),
      TimeHistogram(kDecisionBounds), TimeHistogram(kDecisionBounds),
      TimeHistogram(kDecisionBounds)};
  Counters& refusals = AddCounters(*registry, "cri_resmgr_policy_refusals_total",
                                   "Containers and updates that were refused, by reason");
  prometheus::Counter& moves =
      AddCounters(*registry, "cri_resmgr_container_moves_total",
                  "Running containers that were moved to other CPUs or memory")
          .Add({});
  prometheus::Counter& retries =
      AddCounters(*registry, "cri_resmgr_container_update_retries_total",
                  "Updates of running containers that were tried again after a failure")
          .Add({});
  Counters& audits =
      AddCounters(*registry, "cri_resmgr_audits_total",
                  "Comparisons of what containers really have with what was decided");
  prometheus::Counter& audits_clean = audits.Add({{"result", "clean"}});
  prometheus::Counter& audits_drift = audits.Add({{"result", "drift"}});
  prometheus::Counter& audits_failed = audits.Add({{"result", "failed"}});
  prometheus::Gauge& drifted =
      AddGauges(*registry, "cri_resmgr_drifted_containers",
                "Containers that had something else than was decided, at the last audit")
          .Add({});
  prometheus::Counter& drifts =
      AddCounters(*registry, "cri_resmgr_drifts_total",
                  "Values of containers that were not as decided, at each audit anew")
          .Add({});
  prometheus::Counter& repairs =
      AddCounters(*registry, "cri_resmgr_drift_repairs_total",
                  "Containers that were sent what was decided again after an audit")
          .Add({});
  Counters& pod_events = AddCounters(*registry, "cri_resmgr_pod_events_total",
                                     "Events of pods that were to be made by the agent");
  prometheus::Counter& events_taken = pod_events.Add({{"result", "taken"}});
  prometheus::Counter& events_lost = pod_events.Add({{"result", "lost"}});
  prometheus::Counter& scheduler_views =
      AddCounters(*registry, "cri_resmgr_scheduler_views_total",
                  "Pictures of what schedulers may count on that were made")
          .Add({});
  prometheus::Counter& scheduler_view_seconds =
      AddCounters(*registry, "cri_resmgr_scheduler_view_seconds_total",
                  "Time that these pictures took")
          .Add({});
  prometheus::Histogram& lag =
      AddHistograms(*registry, "cri_resmgr_event_loop_lag_seconds",
                    "How late the event loop was with a timer, once a second")
          .Add({}, prometheus::Histogram::BucketBoundaries{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                           0.1, 0.25, 0.5, 1, 5, 15});
  Gauges& cpus = AddGauges(*registry, "cri_resmgr_cpus", "Online CPUs by what they are for");
  Gauges& pool_cpus =
      AddGauges(*registry, "cri_resmgr_pool_cpus", "CPUs of each of the policy's pools");
  Gauges& pool_containers = AddGauges(*registry, "cri_resmgr_pool_containers",
                                      "Containers that each of the policy's pools has");
  Gauges& balloons = AddGauges(*registry, "cri_resmgr_policy_balloons", "Balloons of each type");
  Gauges& balloon_cores =
      AddGauges(*registry, "cri_resmgr_policy_balloons_cores", "CPUs of each balloon");
  Gauges& balloon_containers =
      AddGauges(*registry, "cri_resmgr_policy_balloons_containers", "Containers of each balloon");
  Gauges& balloon_requests = AddGauges(*registry, "cri_resmgr_policy_balloons_requested_cores",
                                       "CPUs that the containers of each balloon request");
  prometheus::Gauge& pods =
      AddGauges(*registry, "cri_resmgr_pods", "Pods that have containers here").Add({});
  prometheus::Gauge& containers =
      AddGauges(*registry, "cri_resmgr_containers", "Containers that are held").Add({});
  prometheus::Gauge& runtime =
      AddGauges(*registry, "cri_resmgr_runtime_ready",
                "1 when what the runtime holds is known; 0 under the policy null, too")
          .Add({});
  prometheus::Gauge& saved =
      AddGauges(*registry, "cri_resmgr_state_saved", "1 when the state is kept on its disk")
          .Add({});
  prometheus::Gauge& configuration =
      AddGauges(*registry, "cri_resmgr_configuration_generation",
                "How many configurations have been in force since the start")
          .Add({});
  Counters& configurations = AddCounters(*registry, "cri_resmgr_configurations_total",
                                         "Configurations that came into force, or were refused");
  prometheus::Counter& configurations_in_force = configurations.Add({{"result", "in_force"}});
  prometheus::Counter& configurations_refused = configurations.Add({{"result", "refused"}});
  Counters& state_writes =
      AddCounters(*registry, "cri_resmgr_state_writes_total", "Writings of the state to its disk");
  prometheus::Counter& state_writes_ok = state_writes.Add({{"result", "ok"}});
  prometheus::Counter& state_writes_failed = state_writes.Add({{"result", "failed"}});
  prometheus::Counter& state_bytes = AddCounters(*registry, "cri_resmgr_state_written_bytes_total",
                                                 "Bytes of the state that were written to its disk")
                                         .Add({});
  prometheus::Gauge& offline =
      AddGauges(*registry, "cri_resmgr_cpus_offline", "CPUs of the machine that are offline")
          .Add({});
  prometheus::Gauge& cpu_files =
      AddGauges(*registry, "cri_resmgr_cpu_files", "Containers with a file that tells their CPUs")
          .Add({});
  prometheus::Gauge& cpu_files_behind =
      AddGauges(*registry, "cri_resmgr_cpu_files_behind",
                "Those of them whose file does not have yet what is in force")
          .Add({});
  prometheus::Gauge& not_updated =
      AddGauges(*registry, "cri_resmgr_not_updated_containers",
                "Containers whose last update by the daemon the runtime did not carry out")
          .Add({});
  prometheus::Gauge& claims =
      AddGauges(*registry, "cri_resmgr_claims", "Claims that hold CPUs").Add({});
  Gauges& claim_cpus =
      AddGauges(*registry, "cri_resmgr_claim_cpus", "CPUs that claims hold, by NUMA node");
  std::map<int, prometheus::Gauge*> claim_nodes;  // of claim_cpus
  Counters& claim_calls =
      AddCounters(*registry, "cri_resmgr_claim_calls_total",
                  "Claims that the kubelet asked to prepare and to unprepare, by result");
  prometheus::Counter& prepared = claim_calls.Add({{"call", "prepare"}, {"result", "ok"}});
  prometheus::Counter& not_prepared = claim_calls.Add({{"call", "prepare"}, {"result", "failed"}});
  prometheus::Counter& unprepared = claim_calls.Add({{"call", "unprepare"}, {"result", "ok"}});
  prometheus::Counter& not_unprepared =
      claim_calls.Add({{"call", "unprepare"}, {"result", "failed"}});
  TimeHistogram claim_times{kClaimBounds};  // claim_prepare_seconds
  Gauges& problems = AddGauges(*registry, "cri_resmgr_problems",
                               "Problems that cri-resmgr-ctl status lists, by kind");
  Gauges& policy = AddGauges(*registry, "cri_resmgr_policy_info",
                             "Always 1; the label says which policy is active");

  std::mutex mutex;  // guards the following members
  struct PoolGauges {
    prometheus::Gauge* exclusive;
    prometheus::Gauge* shared;
    prometheus::Gauge* all;
    prometheus::Gauge* containers;
    // Set for a balloon, else nullptr.
    prometheus::Gauge* cores = nullptr;
    prometheus::Gauge* members = nullptr;
    prometheus::Gauge* request = nullptr;
  };
  std::map<std::string, PoolGauges> pools;
  std::map<std::string, prometheus::Gauge*> balloon_types;
  std::pair<std::string, prometheus::Gauge*> active{"", nullptr};

  std::vector<prometheus::MetricFamily> CollectTimes() const {
    std::vector<prometheus::MetricFamily> families = {
        MakeFamily("cri_resmgr_policy_decision_seconds", "What the policy took for its decisions",
                   prometheus::MetricType::Histogram),
        MakeFamily("cri_resmgr_claim_prepare_seconds",
                   "How long the kubelet waited for a pod's claims",
                   prometheus::MetricType::Histogram)};
    for (size_t i = 0; i < kOperations.size(); ++i)
      families[0].metric.push_back(
          resmgr::CollectTimes(decisions[i], {{"operation", kOperations[i]}}));
    families[1].metric.push_back(resmgr::CollectTimes(claim_times, {}));
    return families;
  }

  void Show(const Pool& pool) {
    const auto [found, added] = pools.try_emplace(pool.name);
    PoolGauges& gauges = found->second;
    if (added) {
      const auto of_class = [&](const char* name) {
        return &pool_cpus.Add({{"pool", pool.name}, {"class", name}});
      };
      gauges = {of_class("exclusive"), of_class("shared"), of_class("all"),
                &pool_containers.Add({{"pool", pool.name}})};
      if (!pool.type.empty()) AddBalloon(pool, gauges);
    }
    gauges.exclusive->Set(pool.exclusive);
    gauges.shared->Set(pool.shared);
    gauges.all->Set(pool.all);
    gauges.containers->Set(pool.containers);
    if (gauges.cores == nullptr) return;
    gauges.cores->Set(pool.all);
    gauges.members->Set(pool.containers);
    gauges.request->Set(pool.request);
  }

  void AddBalloon(const Pool& pool, PoolGauges& gauges) {
    const prometheus::Labels labels = {{"balloon", pool.name}, {"balloon_type", pool.type}};
    gauges.cores = &balloon_cores.Add(labels);
    gauges.members = &balloon_containers.Add(labels);
    gauges.request = &balloon_requests.Add(labels);
  }

  void CountBalloons(std::span<const Pool> all) {
    std::map<std::string, int> counts;
    for (const Pool& pool : all)
      if (!pool.type.empty()) ++counts[pool.type];
    for (const auto& [type, count] : counts) {
      prometheus::Gauge*& gauge = balloon_types[type];
      if (gauge == nullptr) gauge = &balloons.Add({{"balloon_type", type}});
      gauge->Set(count);
    }
    std::erase_if(balloon_types, [&](const auto& shown) {
      if (counts.contains(shown.first)) return false;
      balloons.Remove(shown.second);
      return true;
    });
  }

  void Forget(const PoolGauges& gauges) {
    for (prometheus::Gauge* const gauge : {gauges.exclusive, gauges.shared, gauges.all})
      pool_cpus.Remove(gauge);
    pool_containers.Remove(gauges.containers);
    if (gauges.cores == nullptr) return;
    balloon_cores.Remove(gauges.cores);
    balloon_containers.Remove(gauges.members);
    balloon_requests.Remove(gauges.request);
  }
};

NodeMetrics::NodeMetrics() : impl_(std::make_shared<Impl>()) {
  // The series exist from the start, since increase() does not count the first event of a series
  // that begins with it.
  for (const char* const reason : {"RESOURCE_EXHAUSTED", "INVALID_ARGUMENT"})
    impl_->refusals.Add({{"reason", reason}});
}

NodeMetrics::~NodeMetrics() = default;

void NodeMetrics::Decided(Operation operation, std::chrono::nanoseconds took) {
  impl_->decisions[static_cast<size_t>(operation)].Observe(took);
}

void NodeMetrics::Refused(std::string_view reason) {
  impl_->refusals.Add({{"reason", std::string(reason)}}).Increment();
}

void NodeMetrics::Moved(size_t containers) {
  impl_->moves.Increment(static_cast<double>(containers));
}

void NodeMetrics::UpdateRetried() {
  impl_->retries.Increment();
}

void NodeMetrics::Configured(bool in_force) {
  (in_force ? impl_->configurations_in_force : impl_->configurations_refused).Increment();
}

void NodeMetrics::Audited(const Audit& audit) {
  if (audit.failed) {
    impl_->audits_failed.Increment();
    return;
  }
  (audit.drifted == 0 ? impl_->audits_clean : impl_->audits_drift).Increment();
  impl_->drifted.Set(static_cast<double>(audit.drifted));
  impl_->drifts.Increment(static_cast<double>(audit.drifts));
  impl_->repairs.Increment(static_cast<double>(audit.repaired));
}

void NodeMetrics::NothingDrifted() {
  impl_->drifted.Set(0);
}

void NodeMetrics::PodEvents(size_t taken, size_t lost) {
  impl_->events_taken.Increment(static_cast<double>(taken));
  impl_->events_lost.Increment(static_cast<double>(lost));
}

void NodeMetrics::SchedulerViewMade(std::chrono::nanoseconds took) {
  impl_->scheduler_views.Increment();
  impl_->scheduler_view_seconds.Increment(std::chrono::duration<double>(took).count());
}

// A node that is missing in `cpus` keeps its series, with 0.
void NodeMetrics::ShowClaims(size_t claims, const std::map<int, int>& cpus) {
  impl_->claims.Set(static_cast<double>(claims));
  for (const auto& [node, gauge] : impl_->claim_nodes)
    if (!cpus.contains(node)) gauge->Set(0);
  for (const auto& [node, count] : cpus) {
    prometheus::Gauge*& gauge = impl_->claim_nodes[node];
    if (gauge == nullptr) gauge = &impl_->claim_cpus.Add({{"node", std::to_string(node)}});
    gauge->Set(count);
  }
}

void NodeMetrics::ClaimsAnswered(const ClaimCall& call) {
  (call.prepare ? impl_->prepared : impl_->unprepared).Increment(static_cast<double>(call.ok));
  (call.prepare ? impl_->not_prepared : impl_->not_unprepared)
      .Increment(static_cast<double>(call.failed));
  if (call.prepare) impl_->claim_times.Observe(call.took);
}

void NodeMetrics::ShowProblems(std::string_view kind, size_t count) {
  impl_->problems.Add({{"kind", std::string(kind)}}).Set(static_cast<double>(count));
}

void NodeMetrics::Lagged(std::chrono::nanoseconds late) {
  impl_->lag.Observe(std::chrono::duration<double>(late).count());
}

void NodeMetrics::ShowPools(std::span<const Pool> pools) {
  const std::lock_guard lock(impl_->mutex);
  for (const Pool& pool : pools)
    impl_->Show(pool);
  impl_->CountBalloons(pools);
  std::erase_if(impl_->pools, [&](const auto& shown) {
    for (const Pool& pool : pools)
      if (pool.name == shown.first) return false;
    impl_->Forget(shown.second);
    return true;
  });
}

void NodeMetrics::Show(const Node& node) {
  const std::lock_guard lock(impl_->mutex);
  const auto cpus = [this](const char* name, int count) {
    impl_->cpus.Add({{"class", name}}).Set(count);
  };
  cpus("exclusive", node.exclusive);
  cpus("reserved", node.reserved);
  cpus("shared", node.shared);
  cpus("unassigned", node.unassigned);
  impl_->pods.Set(node.pods);
  impl_->containers.Set(node.containers);
  impl_->runtime.Set(node.runtime_ready ? 1 : 0);
  impl_->saved.Set(node.state_saved ? 1 : 0);
  impl_->configuration.Set(static_cast<double>(node.configuration));
  RaiseTo(impl_->state_writes_ok, node.state.writes);
  RaiseTo(impl_->state_writes_failed, node.state.failures);
  RaiseTo(impl_->state_bytes, node.state.bytes);
  impl_->cpu_files.Set(static_cast<double>(node.cpu_files));
  impl_->offline.Set(node.offline);
  impl_->cpu_files_behind.Set(static_cast<double>(node.cpu_files_behind));
  impl_->not_updated.Set(static_cast<double>(node.not_updated));
  auto& [name, gauge] = impl_->active;
  if (gauge != nullptr && name == node.policy) return;
  if (gauge != nullptr) impl_->policy.Remove(gauge);
  name = node.policy;
  gauge = &impl_->policy.Add({{"policy", name}});
  gauge->Set(1);
}

std::shared_ptr<prometheus::Collectable> NodeMetrics::collectable() const {
  return CollectWith(impl_->registry, [impl = impl_] { return impl->CollectTimes(); });
}

}  // namespace resmgr
