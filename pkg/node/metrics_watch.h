// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "pkg/audit/auditor.h"
#include "pkg/dra/dra_service.h"
#include "pkg/metrics/metrics.h"
#include "pkg/metrics/metrics_server.h"
#include "pkg/metrics/node_metrics.h"
#include "pkg/node/brain_host.h"
#include "pkg/node/node_options.h"
#include "pkg/node/policy_host.h"
#include "pkg/node/usage_metrics.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/resmgr/observer.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Feeds NodeMetrics: counts the resource manager's acts, and checks once a second how late the loop
// is and, after any act, the brain's state. Loop's thread only.
class MetricsWatch final : public Observer {
 public:
  MetricsWatch(EventLoop& loop, const Machine& machine, NodeMetrics& metrics, Health& health)
      : loop_(loop), machine_(machine), metrics_(metrics), health_(health) {}

  struct Sources {
    PolicyHost& host;
    std::function<bool()> state_saved;
    std::function<StateStore::Written()> state_written;
    std::function<std::string()> policy;  // from the configuration
    // CPUs of the machine that went offline since it was read.
    std::function<CpuSet()> offline = [] { return CpuSet(); };
    // Number of CPU files of containers, and number of files that are out of date. May be empty.
    std::function<std::pair<size_t, size_t>()> cpu_files{};
  };
  // Counts as long as the handle exists. The sources must live as long.
  EventLoop::HandlePtr Follow(Sources sources,
                              std::chrono::milliseconds period = std::chrono::seconds(1));
  // Called when another configuration is in force.
  void NoteConfiguration() {
    ++configurations_;
    changed_ = true;  // another policy has other pools, even if no container moves
    metrics_.Configured(true);
  }
  // Called when a configuration was refused.
  void NoteRefusedConfiguration() { metrics_.Configured(false); }

  void OnPlaced(const Act& act) override { NoteMoves(act); }
  void OnRefused(const Act& act, const Status& why) override;
  void OnUpdated(const Act& act) override { NoteMoves(act); }
  void OnMoved(const Act& act, const Shift& shift) override;
  void OnReleased(const Act& act) override;
  void OnAdopted(std::span<const Act> acts) override;
  void OnFoundEnded(std::span<const Act> acts) override;
  void OnPushed(const Act& act) override;
  void OnFailed(const Act& act, const Status& why) override;
  void OnWritten(const Act& act, const Status& why) override { OnFailed(act, why); }
  void OnRecovered(const Act& act) override { OnPushed(act); }
  void OnRemoved(const Act& act) override;
  void OnListed(const Snapshot& /*all*/) override { changed_ = true; }
  void OnClaims(const HeldClaims& /*held*/) override { changed_ = true; }

 private:
  void NoteMoves(const Act& act);
  void Show(const Sources& sources);
  // Shows the brain's containers, their CPUs by class and the pools.
  void ShowHeld(const ResourceManager& manager, NodeMetrics::Node& node);
  void ShowClaims(size_t claims, const CpuSet& held);

  EventLoop& loop_;
  const Machine& machine_;
  NodeMetrics& metrics_;
  Health& health_;
  uint64_t configurations_ = 0;
  bool changed_ = true;
  CpuSet offline_;
  const ResourceManager* shown_ = nullptr;  // the manager whose pools are shown; only compared
  NodeMetrics::Node node_;
  // Containers whose last update failed, to count retries. By ids: each resource manager counts its
  // keys anew.
  std::set<ContainerId> failed_;
};

// The metrics objects, if metrics are requested. They are made before the loop and destroyed after
// its end.
struct Counted {
  explicit Counted(const NodeOptions& options)
      : metrics(options.version, options.door.counted_methods), page(options.page) {}

  ServedMetrics Served() const {
    return {{metrics.collectable(), node.collectable(), usage.collectable()}, health, page};
  }

  Metrics metrics;
  NodeMetrics node;
  UsageMetrics usage;
  const std::shared_ptr<Health> health = std::make_shared<Health>();
  const std::shared_ptr<NodePage> page;
  std::unique_ptr<MetricsWatch> watch;
};

// Counts the kubelet's calls about claims. Empty if `counted` is nullptr, else it must outlive the
// result.
std::function<void(const dra::AnsweredCall&)> ClaimCounter(Counted* counted);

// The options, with decisions and acts counted unless `counted` is nullptr. It must outlive the
// brain host.
BrainHost::Options WithCounts(BrainHost::Options options, Counted* counted);

// Options for comparing the containers of the host's active brain; results are counted unless
// `counted` is nullptr. All arguments must outlive the auditor.
Auditor::Options AuditorOptions(EventLoop& loop, BrainHost& host, const Pipeline& pipeline,
                                Counted* counted);

}  // namespace resmgr
