// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace prometheus {
class Collectable;
}  // namespace prometheus

namespace resmgr {

// What the node's brain decides and holds, under the prefix cri_resmgr_, beside Metrics, which
// counts what every door does. Thread-safe, except that one thread tells decisions; counting never
// allocates.
class NodeMetrics {
 public:
  NodeMetrics();
  ~NodeMetrics();
  NodeMetrics(const NodeMetrics&) = delete;
  NodeMetrics& operator=(const NodeMetrics&) = delete;

  enum class Operation { kReconcile, kAllocate, kUpdate, kRelease, kRebalance };
  // policy_decision_seconds{operation}: what the policy took. By the event loop's thread only.
  void Decided(Operation operation, std::chrono::nanoseconds took);
  // policy_refusals_total{reason}: by the name of the code, of which there are few.
  void Refused(std::string_view reason);
  // container_moves_total: of containers that run.
  void Moved(size_t containers);
  // container_update_retries_total.
  void UpdateRetried();
  // Of one audit: audits_total{result}, drifted_containers, drifts_total, drift_repairs_total.
  struct Audit {
    bool failed = false;  // the other figures say nothing then
    size_t drifted = 0;   // containers that have something else than was decided
    size_t drifts = 0;    // values of theirs
    size_t repaired = 0;  // containers that were sent what was decided again
  };
  void Audited(const Audit& audit);
  // configurations_total{result}: one came into force, or was refused.
  void Configured(bool in_force);
  // pod_events_total{result}: Events of pods that the agent took, and that are lost.
  void PodEvents(size_t taken, size_t lost);
  // event_loop_lag_seconds: how late a timer was.
  void Lagged(std::chrono::nanoseconds late);

  struct Pool {
    std::string name{};
    int exclusive = 0;  // CPUs, as the next ones
    int shared = 0;
    int all = 0;
    int containers = 0;
  };
  // pool_cpus{pool,class}, pool_containers{pool}. Pools that are not among them any more are
  // forgotten.
  void ShowPools(std::span<const Pool> pools);

  // What was written of the state so far: state_writes_total{result}, state_written_bytes_total.
  struct State {
    uint64_t writes = 0;    // that succeeded
    uint64_t failures = 0;  // that are tried again
    uint64_t bytes = 0;     // of those that succeeded
  };

  // Each online CPU is in one class.
  struct Node {
    int exclusive = 0;  // cpus{class="exclusive"}, and so on
    int reserved = 0;
    int shared = 0;
    int unassigned = 0;
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

  // What a scrape reads.
  std::shared_ptr<prometheus::Collectable> collectable() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace resmgr
