// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/metrics.h"

#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "pkg/metrics/collect.h"

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

// calls_total, call_seconds and calls_in_flight. Only the event loop's thread counts; any thread
// may collect.
class CallMetrics {
 public:
  // Paths of methods ("/runtime.v1.RuntimeService/Version"). All others count as one, "other".
  explicit CallMetrics(const std::vector<std::string>& known_methods);

  // Returns the same object for the same arguments.
  CallCounter& Of(std::string_view path, bool intercepted);
  Tally& in_flight() { return in_flight_; }

  // A method's series appear with its first call, so that a scrape has only methods in use.
  std::vector<prometheus::MetricFamily> Collect() const;

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

constexpr size_t kMostPlugins = 256;

// In seconds, from the best time of a plugin on the same machine to beyond its timeout.
prometheus::Histogram::BucketBoundaries StageBuckets() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
          0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
}

class StagePlugin final : public PluginCounter {
 public:
  StagePlugin(prometheus::Histogram& calls, prometheus::Counter& failures)
      : calls_(calls), failures_(failures) {}

  void Answered(std::chrono::nanoseconds took) override {
    calls_.Observe(std::chrono::duration<double>(took).count());
  }
  void Failed() override { failures_.Increment(); }

 private:
  prometheus::Histogram& calls_;
  prometheus::Counter& failures_;
};

// Counts one more of this stage.
void CountOf(Counters& family, std::string_view stage) {
  family.Add({{"stage", std::string(stage)}}).Increment();
}

// The label `peer`, in the order of Peer.
constexpr std::array kPeers = {"client", "runtime", "image"};

}  // namespace

class Metrics::Impl {
 public:
  Impl(std::string_view version, const std::vector<std::string>& known_methods);

  PluginCounter& Plugin(std::string_view kind, std::string_view name);
  prometheus::Histogram& WaitsFor(std::string_view stage);
  // connection_bytes_total{peer,direction}
  prometheus::MetricFamily CollectTraffic() const;

  const std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  Counters& runtime_calls =
      AddCounters(*registry, "cri_resmgr_runtime_calls_total",
                  "CRI calls that ended at one of several runtimes, with or without an error");
  Counters& refused_claims =
      AddCounters(*registry, "cri_resmgr_runtime_refused_claims_total",
                  "Pod sandboxes and containers of one of several runtimes whose ids another has");
  Gauges& runtime_connected = AddGauges(*registry, "cri_resmgr_runtime_connected",
                                        "1 while this one of several runtimes answers");
  CallMetrics calls;
  std::array<prometheus::Counter*, 10> events{};
  std::array<prometheus::Gauge*, kPeers.size()> connections{};
  std::array<Traffic, kPeers.size()> traffic;
  Counters& dropped_placements =
      AddCounters(*registry, "cri_resmgr_dropped_placements_total",
                  "CPUs or memory nodes that a stage wanted for a container, and "
                  "that are the policy's to decide");
  Counters& dropped_keys = AddCounters(*registry, "cri_resmgr_dropped_keys_total",
                                       "Changes that contained labels or annotations which are the "
                                       "kubelet's own, and which were left out");
  Counters& ignored_failures = AddCounters(*registry, "cri_resmgr_ignored_failures_total",
                                           "Calls that went on without a stage that failed");
  Counters& stage_refusals =
      AddCounters(*registry, "cri_resmgr_stage_refusals_total",
                  "Calls that a stage refused, or that were refused since it failed");
  Histograms& stage_waits =
      AddHistograms(*registry, "cri_resmgr_stage_wait_seconds",
                    "How long calls waited for a stage that did not answer at once");
  Histograms& plugin_calls =
      AddHistograms(*registry, "cri_resmgr_plugin_call_seconds", "How long plugins took to answer");
  Counters& plugin_failures = AddCounters(*registry, "cri_resmgr_plugin_failures_total",
                                          "Calls that a plugin refused, or did not answer in time");
  Gauges& plugins_ready =
      AddGauges(*registry, "cri_resmgr_plugins_ready", "Plugins that are connected and take part");

 private:
  void MakeEvents();

  std::mutex mutex_;
  std::map<std::string, prometheus::Histogram*, std::less<>> waits_;    // by stage
  std::map<std::pair<std::string, std::string>, StagePlugin> plugins_;  // by kind and name
};

Metrics::Impl::Impl(std::string_view version, const std::vector<std::string>& known_methods)
    : calls(known_methods) {
  MakeEvents();
  Gauges& family = AddGauges(*registry, "cri_resmgr_connections", "Connections that stand now");
  for (size_t i = 0; i < kPeers.size(); ++i)
    connections[i] = &family.Add({{"peer", kPeers[i]}});
  AddGauges(*registry, "cri_resmgr_build_info", "Always 1; the label says which version runs")
      .Add({{"version", std::string(version)}})
      .Set(1);
}

void Metrics::Impl::MakeEvents() {
  const auto set = [this](Event event, Counters& family, const prometheus::Labels& labels) {
    events[static_cast<size_t>(event)] = &family.Add(labels);
  };
  auto& decisions = AddCounters(*registry, "cri_resmgr_policy_decisions_total",
                                "Placements that the policy was asked for");
  set(Event::kDecisionOk, decisions, {{"result", "ok"}});
  set(Event::kDecisionRefused, decisions, {{"result", "refused"}});
  auto& updates = AddCounters(*registry, "cri_resmgr_container_updates_total",
                              "Updates of running containers that the daemon sent on its own");
  set(Event::kUpdatePushed, updates, {{"result", "pushed"}});
  set(Event::kUpdateFailed, updates, {{"result", "failed"}});
  set(Event::kUpdateMoot, updates, {{"result", "moot"}});
  auto& starts = AddCounters(*registry, "cri_resmgr_held_starts_total",
                             "Starts that had to wait for others to leave their CPUs");
  set(Event::kStartWaited, starts, {{"result", "waited"}});
  set(Event::kStartRefused, starts, {{"result", "refused"}});
  set(Event::kStartLetThrough, starts, {{"result", "let_through"}});
  set(Event::kCpusetOverridden,
      AddCounters(*registry, "cri_resmgr_overridden_cpusets_total",
                  "Updates that asked for other CPUs than the policy's, as a kubelet's CPU Manager "
                  "does"),
      {});
  set(Event::kDumpDropped,
      AddCounters(*registry, "cri_resmgr_dump_dropped_total",
                  "Messages missing in the dump because its file was too slow"),
      {});
}

PluginCounter& Metrics::Impl::Plugin(std::string_view kind, std::string_view name) {
  const std::lock_guard lock(mutex_);
  std::pair<std::string, std::string> key(kind, name);
  if (plugins_.size() >= kMostPlugins && !plugins_.contains(key)) key.second = kOther;
  const auto known = plugins_.find(key);
  if (known != plugins_.end()) return known->second;
  const prometheus::Labels labels = {{"kind", key.first}, {"plugin", key.second}};
  return plugins_
      .try_emplace(key, plugin_calls.Add(labels, StageBuckets()), plugin_failures.Add(labels))
      .first->second;
}

prometheus::Histogram& Metrics::Impl::WaitsFor(std::string_view stage) {
  const std::lock_guard lock(mutex_);
  auto known = waits_.find(stage);
  if (known == waits_.end()) {
    auto& made = stage_waits.Add({{"stage", std::string(stage)}}, StageBuckets());
    known = waits_.emplace(stage, &made).first;
  }
  return *known->second;
}

prometheus::MetricFamily Metrics::Impl::CollectTraffic() const {
  prometheus::MetricFamily family =
      MakeFamily("cri_resmgr_connection_bytes_total",
                 "Bytes that connections have received and sent", prometheus::MetricType::Counter);
  for (size_t i = 0; i < kPeers.size(); ++i) {
    const auto add = [&](const char* direction, uint64_t bytes) {
      prometheus::ClientMetric metric;
      metric.label = {{"direction", direction}, {"peer", kPeers[i]}};
      metric.counter.value = static_cast<double>(bytes);
      family.metric.push_back(std::move(metric));
    };
    add("received", traffic[i].received());
    add("sent", traffic[i].sent());
  }
  return family;
}

Metrics::Metrics(std::string_view version, const std::vector<std::string>& known_methods)
    : impl_(std::make_shared<Impl>(version, known_methods)),
      // Shares the counters, since a scrape may go on after this object's end.
      collected_(CollectWith(impl_->registry, [impl = impl_] {
        std::vector<prometheus::MetricFamily> families = impl->calls.Collect();
        families.push_back(impl->CollectTraffic());
        return families;
      })) {}

Metrics::~Metrics() = default;

CallCounter& Metrics::Calls(std::string_view path, CallKind kind) {
  return impl_->calls.Of(path, kind == CallKind::kIntercepted);
}

void Metrics::CountInFlight(int change) {
  impl_->calls.in_flight().Add(change);
}

void Metrics::Count(Event event, uint64_t times) {
  impl_->events[static_cast<size_t>(event)]->Increment(static_cast<double>(times));
}

void Metrics::CountDroppedKeys(std::string_view stage) {
  CountOf(impl_->dropped_keys, stage);
}

void Metrics::CountDroppedPlacement(std::string_view stage) {
  CountOf(impl_->dropped_placements, stage);
}

void Metrics::CountStageRefusal(std::string_view stage) {
  CountOf(impl_->stage_refusals, stage);
}

void Metrics::CountIgnoredFailure(std::string_view stage) {
  CountOf(impl_->ignored_failures, stage);
}

PluginCounter& Metrics::Plugin(std::string_view kind, std::string_view name) {
  return impl_->Plugin(kind, name);
}

void Metrics::SetReadyPlugins(std::string_view kind, size_t count) {
  impl_->plugins_ready.Add({{"kind", std::string(kind)}}).Set(static_cast<double>(count));
}

void Metrics::ShowRuntime(std::string_view name, const RuntimeFigures& figures) {
  const std::string runtime(name);
  const auto show = [&](const char* result, uint64_t sum) {
    RaiseTo(impl_->runtime_calls.Add({{"runtime", runtime}, {"result", result}}), sum);
  };
  show("ok", figures.calls - figures.errors);
  show("error", figures.errors);
  RaiseTo(impl_->refused_claims.Add({{"runtime", runtime}}), figures.refused_claims);
  impl_->runtime_connected.Add({{"runtime", runtime}}).Set(figures.connected ? 1 : 0);
}

void Metrics::SetConnections(Peer peer, size_t count) {
  impl_->connections[static_cast<size_t>(peer)]->Set(static_cast<double>(count));
}

void Metrics::WaitedForStage(std::string_view stage, std::chrono::nanoseconds time) {
  impl_->WaitsFor(stage).Observe(std::chrono::duration<double>(time).count());
}

Traffic& Metrics::Bytes(Peer peer) {
  return impl_->traffic[static_cast<size_t>(peer)];
}

std::shared_ptr<prometheus::Collectable> Metrics::collectable() const {
  return collected_;
}

}  // namespace resmgr
