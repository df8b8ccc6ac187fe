// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>

#include "pkg/config/module_configs.h"
#include "pkg/metrics/node_metrics.h"
#include "pkg/node/policy_host.h"
#include "pkg/resmgr/observer.h"
#include "pkg/schedview/scheduler_view.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Makes a new SchedulerView after changes: one for all changes within `gather`, and at most one in
// `period`. After a view, it pauses for fifty times as long as the view took, `tell` included, but
// at most half a minute, so asking the policy costs the loop a bounded share of its time. A view
// that equals the former one is not reported, and none is before the runtime's first list.
// Loop's thread only.
class SchedulerWatch final : public Observer {
 public:
  struct Options {
    EventLoop& loop;
    const Machine& machine;
    // Gets each new view; `absent`: there is none, under the null policy or without publication.
    std::function<void(const SchedulerView& view)> tell;
    // Also reports views that equal the former one.
    bool repeats = false;
    // Does not ask the policy: views are empty, and each is only a signal to look.
    bool empty = false;
    NodeMetrics* metrics = nullptr;  // counts views unless nullptr
    std::chrono::milliseconds gather{200};
    std::chrono::milliseconds period{1000};
  };

  // All that the options name must outlive this object.
  explicit SchedulerWatch(Options options) : options_(std::move(options)) {}

  // Observes the host's brain from now on. It must live as long as this object.
  void Follow(PolicyHost& host) { host_ = &host; }
  // Called when another configuration, or the first one, is in force. Without publication the view
  // is withdrawn at once. With it, the first view is made at once, and further ones as after other
  // changes.
  void NoteConfiguration(const NrtConfig& config);

  // Requests another view, as an observed change does.
  void Renew() { Note(); }

  void OnPlaced(const Act&) override { Note(); }
  void OnUpdated(const Act&) override { Note(); }
  void OnMoved(const Act&, const Shift&) override { Note(); }
  void OnReleased(const Act&) override { Note(); }
  void OnAdopted(std::span<const Act>) override { Note(); }
  void OnFoundEnded(std::span<const Act>) override { Note(); }
  void OnRemoved(const Act&) override { Note(); }
  void OnClaims(const HeldClaims&) override { Note(); }

 private:
  using Time = std::chrono::steady_clock::time_point;

  void Note();
  void LookAfter(std::chrono::milliseconds wait);
  void Look();
  SchedulerView Make(const ResourceManager& manager);

  const Options options_;
  NrtConfig config_;
  PolicyHost* host_ = nullptr;
  EventLoop::HandlePtr timer_;                   // fires for the next view
  std::optional<Time> looked_;                   // when the last view was made
  std::chrono::steady_clock::duration pause_{};  // the pause after the last view
  std::optional<SchedulerView> told_;
};

}  // namespace resmgr
