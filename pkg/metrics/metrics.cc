// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/metrics.h"

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include "pkg/base/status.h"
#include "pkg/metrics/stage_metrics.h"
#include "pkg/metrics/traffic_metrics.h"

namespace resmgr {
namespace {

constexpr size_t kCodes = 17;
constexpr std::string_view kOther = "other";

using CounterFamily = prometheus::Family<prometheus::Counter>;
using HistogramFamily = prometheus::Family<prometheus::Histogram>;

CounterFamily& AddCounters(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

// One method with one kind. Its counters appear with their first call, so that a scrape shows what
// happened and not everything that could.
class MethodCounter : public CallCounter {
 public:
  MethodCounter(CounterFamily& family, HistogramFamily& times, prometheus::Labels labels)
      : family_(family), times_(times), labels_(std::move(labels)) {}

  void Count(int grpc_code) override {
    const auto index = grpc_code >= 0 && static_cast<size_t>(grpc_code) < kCodes
                           ? static_cast<size_t>(grpc_code)
                           : static_cast<size_t>(StatusCode::kUnknown);
    prometheus::Counter* counter = counters_[index].load(std::memory_order_acquire);
    if (counter == nullptr) counter = Resolve(index);
    counter->Increment();
  }

  void Took(std::chrono::nanoseconds ours, std::chrono::nanoseconds runtime) override {
    Observe(ours_, "ours", ours);
    Observe(runtime_, "runtime", runtime);
  }

 private:
  // Calls of both kinds are in one histogram.
  void Observe(std::atomic<prometheus::Histogram*>& kept, const char* part,
               std::chrono::nanoseconds time) {
    prometheus::Histogram* histogram = kept.load(std::memory_order_acquire);
    if (histogram == nullptr) {
      prometheus::Labels labels = labels_;
      labels.erase("kind");
      labels["part"] = part;
      histogram = &times_.Add(labels, Buckets());
      kept.store(histogram, std::memory_order_release);
    }
    histogram->Observe(std::chrono::duration<double>(time).count());
  }

  static prometheus::Histogram::BucketBoundaries Buckets() {
    return {1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 5e-3, 2.5e-2, 0.1, 0.5, 1, 5, 20, 120};
  }

  prometheus::Counter* Resolve(size_t index) {
    prometheus::Labels labels = labels_;
    labels["code"] = CodeName(static_cast<StatusCode>(index));
    // Two threads that come here at once get the same counter from the family.
    prometheus::Counter* counter = &family_.Add(labels);
    counters_[index].store(counter, std::memory_order_release);
    return counter;
  }

  CounterFamily& family_;
  HistogramFamily& times_;
  const prometheus::Labels labels_;
  std::atomic<prometheus::Histogram*> ours_{};
  std::atomic<prometheus::Histogram*> runtime_{};
  std::array<std::atomic<prometheus::Counter*>, kCodes> counters_{};
};

}  // namespace

class Metrics::Impl {
 public:
  Impl(std::string_view version, const std::vector<std::string>& known_methods);

  CallCounter& Calls(std::string_view path, CallKind kind);
  prometheus::Counter& Of(Event event) { return *events_[static_cast<size_t>(event)]; }
  prometheus::Gauge& in_flight() { return in_flight_; }
  prometheus::Gauge& Of(Peer peer) { return *connections_[static_cast<size_t>(peer)]; }
  StageMetrics& stages() { return stages_; }
  TrafficMetrics& traffic() { return traffic_; }
  void ShowRuntime(std::string_view name, const RuntimeFigures& figures);
  const prometheus::Registry& registry() const { return *registry_; }

 private:
  struct Method {
    std::unique_ptr<MethodCounter> passthrough;
    std::unique_ptr<MethodCounter> intercepted;
  };
  Method MakeMethod(std::string_view service, std::string_view method);
  void MakeEvents();
  void MakeConnections();

  const std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  CounterFamily& calls_ = AddCounters(*registry_, "cri_resmgr_calls_total",
                                      "CRI calls that ended, with the code the client got");
  HistogramFamily& times_ = prometheus::BuildHistogram()
                                .Name("cri_resmgr_call_seconds")
                                .Help("How long CRI calls took here and at the runtime")
                                .Register(*registry_);
  prometheus::Gauge& in_flight_ = prometheus::BuildGauge()
                                      .Name("cri_resmgr_calls_in_flight")
                                      .Help("CRI calls that have not ended")
                                      .Register(*registry_)
                                      .Add({});
  CounterFamily& runtime_calls_ =
      AddCounters(*registry_, "cri_resmgr_runtime_calls_total",
                  "CRI calls that ended at one of several runtimes, with or without an error");
  prometheus::Family<prometheus::Gauge>& runtime_connected_ =
      prometheus::BuildGauge()
          .Name("cri_resmgr_runtime_connected")
          .Help("1 while this one of several runtimes answers")
          .Register(*registry_);
  // Never changed after construction, so no lock.
  std::map<std::string, Method, std::less<>> methods_;
  Method other_ = MakeMethod(kOther, kOther);
  std::array<prometheus::Counter*, 10> events_{};
  std::array<prometheus::Gauge*, 3> connections_{};
  TrafficMetrics traffic_{{"client", "runtime", "image"}};  // in the order of Peer
  StageMetrics stages_{*registry_};
};

// All of them, for a scrape.
class Metrics::Collected final : public prometheus::Collectable {
 public:
  explicit Collected(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<prometheus::MetricFamily> all = impl_->registry().Collect();
    for (prometheus::MetricFamily& family : impl_->traffic().Collect())
      all.push_back(std::move(family));
    return all;
  }

 private:
  const std::shared_ptr<Impl> impl_;  // a scrape may last longer than Metrics
};

Metrics::Impl::Impl(std::string_view version, const std::vector<std::string>& known_methods) {
  for (const std::string& path : known_methods) {
    // "/package.Service/Method"
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos || slash == 0) continue;
    const std::string_view all = path;
    methods_.emplace(path, MakeMethod(all.substr(1, slash - 1), all.substr(slash + 1)));
  }
  MakeEvents();
  MakeConnections();
  prometheus::BuildGauge()
      .Name("cri_resmgr_build_info")
      .Help("Always 1; the label says which version runs")
      .Register(*registry_)
      .Add({{"version", std::string(version)}})
      .Set(1);
}

Metrics::Impl::Method Metrics::Impl::MakeMethod(std::string_view service, std::string_view method) {
  const auto make = [&](const char* kind) {
    return std::make_unique<MethodCounter>(
        calls_, times_,
        prometheus::Labels{
            {"service", std::string(service)}, {"method", std::string(method)}, {"kind", kind}});
  };
  return {make("passthrough"), make("intercepted")};
}

void Metrics::Impl::MakeEvents() {
  const auto set = [this](Event event, CounterFamily& family, const prometheus::Labels& labels) {
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
  auto& family = prometheus::BuildGauge()
                     .Name("cri_resmgr_connections")
                     .Help("Connections that stand now")
                     .Register(*registry_);
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
  runtime_connected_.Add({{"runtime", runtime}}).Set(figures.connected ? 1 : 0);
}

CallCounter& Metrics::Impl::Calls(std::string_view path, CallKind kind) {
  const auto found = methods_.find(path);
  const Method& method = found == methods_.end() ? other_ : found->second;
  return kind == CallKind::kIntercepted ? *method.intercepted : *method.passthrough;
}

Metrics::Metrics(std::string_view version, const std::vector<std::string>& known_methods)
    : impl_(std::make_shared<Impl>(version, known_methods)),
      collected_(std::make_shared<Collected>(impl_)) {}

Metrics::~Metrics() = default;

CallCounter& Metrics::Calls(std::string_view path, CallKind kind) {
  return impl_->Calls(path, kind);
}

void Metrics::CountInFlight(int change) {
  impl_->in_flight().Increment(change);
}

void Metrics::Count(Event event, uint64_t times) {
  impl_->Of(event).Increment(static_cast<double>(times));
}

void Metrics::CountDroppedPlacement(std::string_view stage) {
  impl_->stages().CountDroppedPlacement(stage);
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
