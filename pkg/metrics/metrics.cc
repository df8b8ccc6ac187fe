// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/metrics.h"

#include <array>
#include <utility>

#include "pkg/metrics/call_metrics.h"
#include "pkg/metrics/collect.h"
#include "pkg/metrics/stage_metrics.h"
#include "pkg/metrics/traffic_metrics.h"

namespace resmgr {

class Metrics::Impl {
 public:
  Impl(std::string_view version, const std::vector<std::string>& known_methods);

  CallMetrics& calls() { return calls_; }
  prometheus::Counter& Of(Event event) { return *events_[static_cast<size_t>(event)]; }
  prometheus::Gauge& Of(Peer peer) { return *connections_[static_cast<size_t>(peer)]; }
  StageMetrics& stages() { return stages_; }
  TrafficMetrics& traffic() { return traffic_; }
  void ShowRuntime(std::string_view name, const RuntimeFigures& figures);
  const std::shared_ptr<prometheus::Registry>& registry() const { return registry_; }

 private:
  void MakeEvents();
  void MakeConnections();

  const std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  Counters& runtime_calls_ =
      AddCounters(*registry_, "cri_resmgr_runtime_calls_total",
                  "CRI calls that ended at one of several runtimes, with or without an error");
  Counters& refused_claims_ =
      AddCounters(*registry_, "cri_resmgr_runtime_refused_claims_total",
                  "Pod sandboxes and containers of one of several runtimes whose ids another has");
  Gauges& runtime_connected_ = AddGauges(*registry_, "cri_resmgr_runtime_connected",
                                         "1 while this one of several runtimes answers");
  CallMetrics calls_;
  std::array<prometheus::Counter*, 10> events_{};
  std::array<prometheus::Gauge*, 3> connections_{};
  TrafficMetrics traffic_{{"client", "runtime", "image"}};  // in the order of Peer
  StageMetrics stages_{*registry_};
};

Metrics::Impl::Impl(std::string_view version, const std::vector<std::string>& known_methods)
    : calls_(known_methods) {
  MakeEvents();
  MakeConnections();
  AddGauges(*registry_, "cri_resmgr_build_info", "Always 1; the label says which version runs")
      .Add({{"version", std::string(version)}})
      .Set(1);
}

void Metrics::Impl::MakeEvents() {
  const auto set = [this](Event event, Counters& family, const prometheus::Labels& labels) {
    events_[static_cast<size_t>(event)] = &family.Add(labels);
  };
  auto& decisions = AddCounters(*registry_, "cri_resmgr_policy_decisions_total",
                                "Placements that the policy was asked for");
  set(Event::kDecisionOk, decisions, {{"result", "ok"}});
  set(Event::kDecisionRefused, decisions, {{"result", "refused"}});
  auto& updates = AddCounters(*registry_, "cri_resmgr_container_updates_total",
                              "Updates of running containers that the daemon sent on its own");
  set(Event::kUpdatePushed, updates, {{"result", "pushed"}});
  set(Event::kUpdateFailed, updates, {{"result", "failed"}});
  set(Event::kUpdateMoot, updates, {{"result", "moot"}});
  auto& starts = AddCounters(*registry_, "cri_resmgr_held_starts_total",
                             "Starts that had to wait for others to leave their CPUs");
  set(Event::kStartWaited, starts, {{"result", "waited"}});
  set(Event::kStartRefused, starts, {{"result", "refused"}});
  set(Event::kStartLetThrough, starts, {{"result", "let_through"}});
  set(Event::kCpusetOverridden,
      AddCounters(*registry_, "cri_resmgr_overridden_cpusets_total",
                  "Updates that asked for other CPUs than the policy's, as a kubelet's CPU Manager "
                  "does"),
      {});
  set(Event::kDumpDropped,
      AddCounters(*registry_, "cri_resmgr_dump_dropped_total",
                  "Messages missing in the dump because its file was too slow"),
      {});
}

void Metrics::Impl::MakeConnections() {
  Gauges& family = AddGauges(*registry_, "cri_resmgr_connections", "Connections that stand now");
  connections_[static_cast<size_t>(Peer::kClient)] = &family.Add({{"peer", "client"}});
  connections_[static_cast<size_t>(Peer::kRuntime)] = &family.Add({{"peer", "runtime"}});
  connections_[static_cast<size_t>(Peer::kImage)] = &family.Add({{"peer", "image"}});
}

void Metrics::Impl::ShowRuntime(std::string_view name, const RuntimeFigures& figures) {
  const std::string runtime(name);
  const auto show = [&](const char* result, uint64_t sum) {
    prometheus::Counter& counter = runtime_calls_.Add({{"runtime", runtime}, {"result", result}});
    counter.Increment(static_cast<double>(sum) - counter.Value());
  };
  show("ok", figures.calls - figures.errors);
  show("error", figures.errors);
  prometheus::Counter& claims = refused_claims_.Add({{"runtime", runtime}});
  claims.Increment(static_cast<double>(figures.refused_claims) - claims.Value());
  runtime_connected_.Add({{"runtime", runtime}}).Set(figures.connected ? 1 : 0);
}

Metrics::Metrics(std::string_view version, const std::vector<std::string>& known_methods)
    : impl_(std::make_shared<Impl>(version, known_methods)),
      // Shared, since a scrape may last longer than this object.
      collected_(CollectTogether(
          {impl_->registry(), {impl_, &impl_->calls()}, {impl_, &impl_->traffic()}})) {}

Metrics::~Metrics() = default;

CallCounter& Metrics::Calls(std::string_view path, CallKind kind) {
  return impl_->calls().Of(path, kind == CallKind::kIntercepted);
}

void Metrics::CountInFlight(int change) {
  impl_->calls().in_flight().Add(change);
}

void Metrics::Count(Event event, uint64_t times) {
  impl_->Of(event).Increment(static_cast<double>(times));
}

void Metrics::CountDroppedKeys(std::string_view stage) {
  impl_->stages().CountDroppedKeys(stage);
}
void Metrics::CountDroppedPlacement(std::string_view stage) {
  impl_->stages().CountDroppedPlacement(stage);
}

void Metrics::CountStageRefusal(std::string_view stage) {
  impl_->stages().CountRefusal(stage);
}

void Metrics::CountIgnoredFailure(std::string_view stage) {
  impl_->stages().CountIgnoredFailure(stage);
}

PluginCounter& Metrics::Plugin(std::string_view kind, std::string_view name) {
  return impl_->stages().Plugin(kind, name);
}

void Metrics::SetReadyPlugins(std::string_view kind, size_t count) {
  impl_->stages().SetReadyPlugins(kind, count);
}

void Metrics::ShowRuntime(std::string_view name, const RuntimeFigures& figures) {
  impl_->ShowRuntime(name, figures);
}

void Metrics::SetConnections(Peer peer, size_t count) {
  impl_->Of(peer).Set(static_cast<double>(count));
}

void Metrics::WaitedForStage(std::string_view stage, std::chrono::nanoseconds time) {
  impl_->stages().Waited(stage, time);
}

Traffic& Metrics::Bytes(Peer peer) {
  return impl_->traffic().of(static_cast<size_t>(peer));
}

std::shared_ptr<prometheus::Collectable> Metrics::collectable() const {
  return collected_;
}

}  // namespace resmgr
