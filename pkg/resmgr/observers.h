// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "pkg/log/log.h"
#include "pkg/metrics/metrics.h"
#include "pkg/resmgr/observer.h"

namespace resmgr {

// Passes every act on to several observers, in the order in which they were added.
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

// Logs one line for each act:
//   placed default/dsp/main: CPU 1, exclusive (static); moved 2 shared containers 0-1 -> 0
// Refusals and failures are warnings, what the runtime has carried out is a debug message, and
// everything else is information. At the debug level a placed container's candidates follow. If one
// list brings news of more than 20 containers, as at the start on a full node, one line has their
// sum, and single lines are debug messages. Texts are only formatted for levels that are on.
class LogObserver final : public Observer {
 public:
  explicit LogObserver(Logger& log) : log_(log) {}

  void OnPlaced(const Act& act) override;
  void OnRefused(const Act& act, const Status& why) override;
  void OnUpdated(const Act& act) override;
  void OnMoved(const Act& act, const Shift& shift) override;
  void OnReleased(const Act& act) override;
  void OnAdopted(std::span<const Act> acts) override;
  void OnFoundEnded(std::span<const Act> acts) override;
  void OnStartForced(const Act& act, std::string_view reason) override;
  void OnPushed(const Act& act) override;
  void OnFailed(const Act& act, const Status& why) override;
  void OnWritten(const Act& act, const Status& why) override { OnFailed(act, why); }
  void OnRecovered(const Act& act) override;
  void OnRemoved(const Act& act) override;

 private:
  void LogCandidates(const Act& act);
  // One container found by a list, with the place and the reason that count for it.
  struct Found {
    const Act& act;
    Place place;
    std::string_view why;
  };
  // Each as "WHATns/pod/main: CPU 1, exclusive (WHY)", or the sum of many with the reason `why`.
  void LogFound(std::string_view what, std::span<const Found> all, std::string_view why);
  // An empty line, which reuses the memory of the last one.
  fmt::memory_buffer& Begin();
  // "WHATns/pod/main: "
  fmt::memory_buffer& Begin(std::string_view what, const Act& act);

  // Cached, since most containers that share CPUs are placed where the last one was.
  const std::string& TextOf(const Place& place);

  Logger& log_;
  fmt::memory_buffer line_;
  Place place_;
  std::string text_of_place_;
  std::map<ContainerKey, Status> failed_;  // containers whose last update failed, and why
};

// "CPU 1, exclusive", "CPUs 0-3, shared, memory node 0", "CPUs 1-7, of which 1,5 are exclusive",
// "any CPU".
std::string Describe(const Place& place);

}  // namespace resmgr
