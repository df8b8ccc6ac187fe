// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "pkg/metrics/metrics.h"
#include "pkg/resmgr/observer.h"

namespace resmgr {

// Passes everything on to several, in the order in which they were added.
class Observers final : public Observer {
 public:
  // It must outlive this.
  void Add(Observer& observer) { observers_.push_back(&observer); }

  void OnPlaced(const Act& act) override { Tell(&Observer::OnPlaced, act); }
  void OnRefused(const Act& act, const Status& why) override {
    Tell(&Observer::OnRefused, act, why);
  }
  void OnRefusedByStage(const Act& act, const Status& why) override {
    Tell(&Observer::OnRefusedByStage, act, why);
  }
  void OnUpdated(const Act& act) override { Tell(&Observer::OnUpdated, act); }
  void OnMoved(const Act& act, const Shift& shift) override {
    Tell(&Observer::OnMoved, act, shift);
  }
  void OnReleased(const Act& act) override { Tell(&Observer::OnReleased, act); }
  void OnAdopted(std::span<const Act> acts) override { Tell(&Observer::OnAdopted, acts); }
  void OnFoundEnded(std::span<const Act> acts) override { Tell(&Observer::OnFoundEnded, acts); }
  void OnStartWaiting(const Act& act) override { Tell(&Observer::OnStartWaiting, act); }
  void OnStartRefused(const Act& act, const Status& why) override {
    Tell(&Observer::OnStartRefused, act, why);
  }
  void OnStartForced(const Act& act, std::string_view reason) override {
    Tell(&Observer::OnStartForced, act, reason);
  }
  void OnPushed(const Act& act) override { Tell(&Observer::OnPushed, act); }
  void OnFailed(const Act& act, const Status& why) override { Tell(&Observer::OnFailed, act, why); }
  void OnRecovered(const Act& act) override { Tell(&Observer::OnRecovered, act); }
  void OnWritten(const Act& act, const Status& why) override {
    Tell(&Observer::OnWritten, act, why);
  }
  void OnMoot(size_t updates) override { Tell(&Observer::OnMoot, updates); }
  void OnInForce(const Act& act, const Place& place) override {
    Tell(&Observer::OnInForce, act, place);
  }
  void OnRenamed(const Act& act, std::string_view created_name) override {
    Tell(&Observer::OnRenamed, act, created_name);
  }
  void OnRemoved(const Act& act) override { Tell(&Observer::OnRemoved, act); }
  void OnListed(const Snapshot& all) override { Tell(&Observer::OnListed, all); }
  void OnClaims(const HeldClaims& held) override { Tell(&Observer::OnClaims, held); }

 private:
  template <typename... Parameters, typename... Arguments>
  void Tell(void (Observer::*event)(Parameters...), const Arguments&... arguments) {
    for (Observer* const observer : observers_)
      (observer->*event)(arguments...);
  }

  std::vector<Observer*> observers_;
};

// Counts decisions, held starts and updates.
class MetricsObserver final : public Observer {
 public:
  // Nullptr: nothing is counted. It must outlive this.
  explicit MetricsObserver(Metrics* metrics) : metrics_(metrics) {}

  void OnPlaced(const Act&) override { Count(Metrics::Event::kDecisionOk); }
  void OnRefused(const Act&, const Status&) override { Count(Metrics::Event::kDecisionRefused); }
  void OnUpdated(const Act&) override { Count(Metrics::Event::kDecisionOk); }
  void OnStartWaiting(const Act&) override { Count(Metrics::Event::kStartWaited); }
  void OnStartRefused(const Act&, const Status&) override { Count(Metrics::Event::kStartRefused); }
  void OnStartForced(const Act&, std::string_view) override {
    Count(Metrics::Event::kStartLetThrough);
  }
  void OnPushed(const Act&) override { Count(Metrics::Event::kUpdatePushed); }
  void OnFailed(const Act&, const Status&) override { Count(Metrics::Event::kUpdateFailed); }
  void OnWritten(const Act&, const Status&) override { Count(Metrics::Event::kUpdateFailed); }
  void OnMoot(size_t updates) override { Count(Metrics::Event::kUpdateMoot, updates); }

 private:
  void Count(Metrics::Event event, uint64_t times = 1) const {
    if (metrics_ != nullptr) metrics_->Count(event, times);
  }

  Metrics* const metrics_;
};

}  // namespace resmgr
