// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace prometheus {
class Collectable;
}  // namespace prometheus

namespace resmgr {

// Metrics of the decisions and the state of the node's resource manager, with the prefix
// cri_resmgr_. Events of the front doors are counted by Metrics. Thread-safe, except that one
// thread reports decisions; counting never allocates.
class NodeMetrics {
 public:
  NodeMetrics();
  ~NodeMetrics();
  NodeMetrics(const NodeMetrics&) = delete;
  NodeMetrics& operator=(const NodeMetrics&) = delete;

  enum class Operation { kReconcile, kAllocate, kUpdate, kRelease, kRebalance };
  // policy_decision_seconds{operation}: the time of the policy. Only on the event loop's thread.
  void Decided(Operation operation, std::chrono::nanoseconds took);
  // policy_refusals_total{reason}: by the name of the status code.
  void Refused(std::string_view reason);
  // container_moves_total: moves of running containers.
  void Moved(size_t containers);
  // container_update_retries_total.
  void UpdateRetried();
  // The counts of one audit: audits_total{result}, drifted_containers, drifts_total,
  // drift_repairs_total.
  struct Audit {
    bool failed = false;  // the other figures are meaningless then
    size_t drifted = 0;   // containers that differ from the decision
    size_t drifts = 0;    // differing values
    size_t repaired = 0;  // containers that were sent the decided values again
  };
  void Audited(const Audit& audit);
  // drifted_containers: under the null policy no decision is left from which one could differ.
  void NothingDrifted();
  // configurations_total{result}: counts a configuration that came into force or was refused.
  void Configured(bool in_force);
  // pod_events_total{result}: Events of pods that the agent has taken, and Events that were lost.
  void PodEvents(size_t taken, size_t lost);
  // scheduler_views_total, scheduler_view_seconds_total: pictures of the node for schedulers.
  void SchedulerViewMade(std::chrono::nanoseconds took);
  // claims, claim_cpus{node}: claims that hold CPUs, and the number of their CPUs by NUMA node.
  void ShowClaims(size_t claims, const std::map<int, int>& cpus);
  struct ClaimCall {
    bool prepare = false;  // else Unprepare
    size_t ok = 0;         // claims of the call
    size_t failed = 0;
    std::chrono::nanoseconds took{};
  };
  // claim_calls_total{call,result}, claim_prepare_seconds. Only on the event loop's thread.
  void ClaimsAnswered(const ClaimCall& call);
  // problems{kind}: the number of listed problems.
  void ShowProblems(std::string_view kind, size_t count);
  // event_loop_lag_seconds: the delay of a timer.
  void Lagged(std::chrono::nanoseconds late);

  struct Pool {
    std::string name{};
    int exclusive = 0;  // number of CPUs, as for the next members
    int shared = 0;
    int all = 0;
    int containers = 0;
    std::string type{};  // the type of a balloon; else empty
    double request = 0;  // CPUs that the containers of a balloon ask for
  };
  // pool_cpus{pool,class}, pool_containers{pool}; of balloons also policy_balloons{balloon_type},
  // and policy_balloons_cores, _containers and _requested_cores{balloon,balloon_type}. The series
  // of pools that are missing in `pools` are removed.
  void ShowPools(std::span<const Pool> pools);

  // Totals of writes of the saved state: state_writes_total{result}, state_written_bytes_total.
  struct State {
    uint64_t writes = 0;    // successful ones
    uint64_t failures = 0;  // failed ones, which are tried again
    uint64_t bytes = 0;     // of successful writes
  };

  // Each online CPU is in one class.
  struct Node {
    int exclusive = 0;  // cpus{class="exclusive"}, and so on
    int reserved = 0;
    int shared = 0;
    int unassigned = 0;
    int offline = 0;             // cpus_offline
    int pods = 0;                // pods
    int containers = 0;          // containers
    bool runtime_ready = false;  // runtime_ready
    bool state_saved = false;    // state_saved
    State state{};
    uint64_t configuration = 0;   // configuration_generation
    size_t cpu_files = 0;         // cpu_files
    size_t cpu_files_behind = 0;  // cpu_files_behind
    size_t not_updated = 0;       // not_updated_containers
    std::string policy{};         // policy_info{policy}
  };
  void Show(const Node& node);

  // The collectable for a scrape.
  std::shared_ptr<prometheus::Collectable> collectable() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace resmgr
