// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "pkg/metrics/health.h"
#include "pkg/metrics/node_metrics.h"
#include "pkg/node/policy_host.h"
#include "pkg/resmgr/observer.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Feeds NodeMetrics: counts what the resource manager does, and looks once a second how late the
// loop is and, where anything happened, what the brain holds. Loop's thread only.
class MetricsWatch final : public Observer {
 public:
  MetricsWatch(EventLoop& loop, const Machine& machine, NodeMetrics& metrics, Health& health)
      : loop_(loop), machine_(machine), metrics_(metrics), health_(health) {}

  struct Sources {
    PolicyHost& host;
    std::function<bool()> state_saved;
    std::function<StateStore::Written()> state_written;
    std::function<std::string()> policy;  // the configuration's
    // Files that tell containers their CPUs, and those of them that are behind. May be empty.
    std::function<std::pair<size_t, size_t>()> cpu_files{};
  };
  // The daemon is at work, and is looked at for as long as the handle exists. The sources must live
  // as long.
  EventLoop::HandlePtr Follow(Sources sources,
                              std::chrono::milliseconds period = std::chrono::seconds(1));
  // Another configuration is in force.
  void NoteConfiguration() {
    ++configurations_;
    metrics_.Configured(true);
  }
  // One was refused.
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

 private:
  void NoteMoves(const Act& act);
  void Show(const Sources& sources);
  // What the brain holds, the containers' CPUs by class and the pools.
  void ShowHeld(const ResourceManager& manager, NodeMetrics::Node& node);

  EventLoop& loop_;
  const Machine& machine_;
  NodeMetrics& metrics_;
  Health& health_;
  uint64_t configurations_ = 0;
  bool changed_ = true;
  const ResourceManager* shown_ = nullptr;  // whose pools are shown, for comparison alone
  NodeMetrics::Node node_;
  std::set<ContainerKey> failed_;  // whose last update failed
};

}  // namespace resmgr
