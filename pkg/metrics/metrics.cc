// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/metrics.h"

#include <array>
#include <functional>
#include <map>
#include <utility>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "pkg/metrics/collect.h"
#include "pkg/metrics/stage_metrics.h"

namespace resmgr {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kOther = "other";

// From the time that a small call takes within the daemon to the kubelet's timeout.
constexpr TimeHistogram::Bounds kBounds = {
    microseconds(10),  microseconds(25), microseconds(50), microseconds(100), microseconds(250),
    microseconds(500), milliseconds(1),  milliseconds(5),  milliseconds(25),  milliseconds(100),
    milliseconds(500), seconds(1),       seconds(5),       seconds(20),       seconds(120)};

}  // namespace

// connection_bytes_total{peer,direction}, read from the sums of each peer at a scrape. Thread-safe.
class TrafficMetrics final : public prometheus::Collectable {
 public:
  // The sums belong to this object, since a scrape may outlive the objects that count.
  explicit TrafficMetrics(std::vector<std::string> peers);

  // The sum of a peer, by its index among the names.
  Traffic& of(size_t peer) { return *traffic_[peer]; }

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::vector<std::string> peers_;
  std::vector<std::unique_ptr<Traffic>> traffic_;
};

TrafficMetrics::TrafficMetrics(std::vector<std::string> peers) : peers_(std::move(peers)) {
  for (size_t i = 0; i < peers_.size(); ++i)
    traffic_.push_back(std::make_unique<Traffic>());
}

std::vector<prometheus::MetricFamily> TrafficMetrics::Collect() const {
  prometheus::MetricFamily family =
      MakeFamily("cri_resmgr_connection_bytes_total",
                 "Bytes that connections have received and sent", prometheus::MetricType::Counter);
  for (size_t i = 0; i < peers_.size(); ++i) {
    const auto add = [&](const char* direction, uint64_t bytes) {
      prometheus::ClientMetric metric;
      metric.label = {{"direction", direction}, {"peer", peers_[i]}};
      metric.counter.value = static_cast<double>(bytes);
      family.metric.push_back(std::move(metric));
    };
    add("received", traffic_[i]->received());
    add("sent", traffic_[i]->sent());
  }
  return {std::move(family)};
}

// calls_total, call_seconds and calls_in_flight. Only the event loop's thread counts; any thread
// may collect.
class CallMetrics final : public prometheus::Collectable {
 public:
  // Paths of methods ("/runtime.v1.RuntimeService/Version"). All others count as one, "other".
  explicit CallMetrics(const std::vector<std::string>& known_methods);
  ~CallMetrics() override;

  // Returns the same object for the same arguments.
  CallCounter& Of(std::string_view path, bool intercepted);
  Tally& in_flight() { return in_flight_; }

  // A method's series appear with its first call, so that a scrape has only methods in use.
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  struct Method {
    Method(std::string_view of_service, std::string_view called);

    const std::string service;
    const std::string name;
    CallTimes times;  // of passthrough and intercepted calls
    CallCounter passthrough{times};
    CallCounter intercepted{times};
  };

  static void AddCounts(const Method& method, const char* kind, const CallCounter& counter,
                        prometheus::MetricFamily* family);
  static void AddTimes(const Method& method, const char* part, const TimeHistogram& times,
                       prometheus::MetricFamily* family);

  // Constant after construction, so no lock is needed.
  std::map<std::string, Method, std::less<>> methods_;
  Method other_;
  Tally in_flight_;
};

CallMetrics::Method::Method(std::string_view of_service, std::string_view called)
    : service(of_service), name(called), times{TimeHistogram(kBounds), TimeHistogram(kBounds)} {}

CallMetrics::CallMetrics(const std::vector<std::string>& known_methods) : other_(kOther, kOther) {
  for (const std::string& path : known_methods) {
    // The parts of "/package.Service/Method".
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos || slash == 0) continue;
    const std::string_view all = path;
    methods_.try_emplace(path, all.substr(1, slash - 1), all.substr(slash + 1));
  }
}

CallMetrics::~CallMetrics() = default;

CallCounter& CallMetrics::Of(std::string_view path, bool intercepted) {
  const auto found = methods_.find(path);
  Method& method = found == methods_.end() ? other_ : found->second;
  return intercepted ? method.intercepted : method.passthrough;
}

void CallMetrics::AddCounts(const Method& method, const char* kind, const CallCounter& counter,
                            prometheus::MetricFamily* family) {
  for (size_t code = 0; code < CallCounter::kCodes; ++code) {
    const int64_t count = counter.counts()[code].value();
    if (count == 0) continue;
    prometheus::ClientMetric metric;
    metric.label = {{"code", std::string(CodeName(static_cast<StatusCode>(code)))},
                    {"kind", kind},
                    {"method", method.name},
                    {"service", method.service}};
    metric.counter.value = static_cast<double>(count);
    family->metric.push_back(std::move(metric));
  }
}

void CallMetrics::AddTimes(const Method& method, const char* part, const TimeHistogram& times,
                           prometheus::MetricFamily* family) {
  if (times.empty()) return;
  family->metric.push_back(
      CollectTimes(times, {{"method", method.name}, {"part", part}, {"service", method.service}}));
}

std::vector<prometheus::MetricFamily> CallMetrics::Collect() const {
  using prometheus::MetricType;
  prometheus::MetricFamily counts =
      MakeFamily("cri_resmgr_calls_total", "CRI calls that ended, with the code the client got",
                 MetricType::Counter);
  prometheus::MetricFamily times =
      MakeFamily("cri_resmgr_call_seconds", "How long CRI calls took here and at the runtime",
                 MetricType::Histogram);
  prometheus::MetricFamily in_flight =
      MakeFamily("cri_resmgr_calls_in_flight", "CRI calls that have not ended", MetricType::Gauge);
  const auto add = [&](const Method& method) {
    AddCounts(method, "passthrough", method.passthrough, &counts);
    AddCounts(method, "intercepted", method.intercepted, &counts);
    AddTimes(method, "ours", method.times.ours, &times);
    AddTimes(method, "runtime", method.times.runtime, &times);
  };
  for (const auto& [path, method] : methods_)
    add(method);
  add(other_);
  prometheus::ClientMetric now;
  now.gauge.value = static_cast<double>(in_flight_.value());
  in_flight.metric.push_back(std::move(now));
  std::vector<prometheus::MetricFamily> families;
  for (prometheus::MetricFamily* const family : {&counts, &times, &in_flight})
    families.push_back(std::move(*family));
  return families;
}

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
      // Shared, since a scrape may go on after this object's end.
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
