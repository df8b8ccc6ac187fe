// SPDX-License-Identifier: Apache-2.0
#include "test/bench/report.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace resmgr::bench {

namespace {

std::string Number(const std::optional<double>& value) {
  return value ? fmt::format("{:5.2f}", *value) : "  n/a";
}

std::string Marked(const std::optional<double>& value, const std::optional<double>& limit) {
  if (!limit || !value) return Number(value);
  return fmt::format("{} <={:4.2f} {}", Number(value), *limit, *value <= *limit ? "ok" : "NO");
}

// The table of the comparison; empty without another daemon.
std::string ComparisonTable(const std::vector<Summary>& summaries) {
  std::string text;
  for (const Summary& summary : summaries) {
    if (!summary.to_other) continue;
    if (text.empty()) {
      text = fmt::format("\n{:<21}{:>3}  {:>17}  {:>17}  {:>10}  {:>10}\n", "call", "c",
                         "p50 us ours/other", "CPU us ours/other", "p50 ratio", "CPU ratio");
    }
    const Sample& ours = summary.medians[Testbed::kDaemon];
    const Sample& other = summary.medians[Testbed::kOther];
    text += fmt::format("{:<21}{:>3}  {:>8.0f} {:>8.0f}  {:>8.1f} {:>8.1f}  {:>10.3f}  {:>10.3f}\n",
                        summary.scenario.name, summary.scenario.concurrency, ours.p50, other.p50,
                        ours.cpu, other.cpu, summary.to_other->p50, summary.to_other->cpu);
  }
  return text;
}

nlohmann::json SampleJson(const Sample& sample) {
  return {{"p50_us", sample.p50},
          {"p99_us", sample.p99},
          {"calls_per_second", sample.calls_per_second},
          {"cpu_us_per_call", sample.cpu}};
}

nlohmann::json Optional(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace

std::string Table(const std::vector<Summary>& summaries, const ProcessFigures& figures) {
  std::string text =
      fmt::format("{:<21}{:>3}  {:>24}  {:>17}  {:>17}  {:>13}  {:<15}  {:<15}  {}\n", "call", "c",
                  "p50 us direct/relay/ours", "p99 us relay/ours", "calls/s relay/ours",
                  "CPU relay/ours", "added (ratio)", "CPU (ratio)", "A/A");
  for (const Summary& summary : summaries) {
    const Sample& direct = summary.medians[Testbed::kDirect];
    const Sample& relay = summary.medians[Testbed::kByteRelay];
    const Sample& ours = summary.medians[Testbed::kDaemon];
    text += fmt::format(
        "{:<21}{:>3}  {:>8.0f}{:>8.0f}{:>8.0f}  {:>8.0f} {:>8.0f}  {:>8.0f} {:>8.0f}   {:>6.1f} "
        "{:>6.1f}  {:<15}  {:<15}  {} {:5.2f}\n",
        summary.scenario.name, summary.scenario.concurrency, direct.p50, relay.p50, ours.p50,
        relay.p99, ours.p99, relay.calls_per_second, ours.calls_per_second, relay.cpu, ours.cpu,
        Marked(summary.added, summary.scenario.added_limit),
        Marked(summary.cpu_ratio, summary.scenario.cpu_limit), Number(summary.added_again),
        summary.cpu_again);
  }
  const auto verdict = [](bool met) { return met ? "ok" : "NO"; };
  text += fmt::format("peak RSS    byte relay {:5.1f} MiB   cri-resmgr {:5.1f} MiB  <={} {}\n",
                      static_cast<double>(figures.byte_relay_peak_kib) / 1024.0,
                      static_cast<double>(figures.daemon_peak_kib) / 1024.0,
                      ProcessFigures::kPeakLimitKib / 1024,
                      verdict(figures.daemon_peak_kib <= ProcessFigures::kPeakLimitKib));
  text += fmt::format("first reply byte relay {:5.1f} ms    cri-resmgr {:5.1f} ms   <=30 {}\n",
                      figures.byte_relay_start_ms, figures.daemon_start_ms,
                      verdict(figures.daemon_start_ms <= ProcessFigures::kStartLimitMs));
  return text + ComparisonTable(summaries);
}

std::string Json(const std::vector<Summary>& summaries, const ProcessFigures& figures) {
  nlohmann::json document;
  for (const Summary& summary : summaries) {
    document["calls"].push_back({{"name", summary.scenario.name},
                                 {"concurrency", summary.scenario.concurrency},
                                 {"direct", SampleJson(summary.medians[Testbed::kDirect])},
                                 {"byte_relay", SampleJson(summary.medians[Testbed::kByteRelay])},
                                 {"cri_resmgr", SampleJson(summary.medians[Testbed::kDaemon])},
                                 {"added_ratio", Optional(summary.added)},
                                 {"added_limit", Optional(summary.scenario.added_limit)},
                                 {"cpu_ratio", summary.cpu_ratio},
                                 {"cpu_limit", Optional(summary.scenario.cpu_limit)},
                                 {"control_added_ratio", Optional(summary.added_again)},
                                 {"control_cpu_ratio", summary.cpu_again}});
    if (summary.to_other) {
      document["calls"].back()["to_other"] = {{"p50_ratio", summary.to_other->p50},
                                              {"cpu_ratio", summary.to_other->cpu}};
    }
  }
  document["start_ms"] = {{"byte_relay", figures.byte_relay_start_ms},
                          {"cri_resmgr", figures.daemon_start_ms}};
  document["peak_rss_kib"] = {{"byte_relay", figures.byte_relay_peak_kib},
                              {"cri_resmgr", figures.daemon_peak_kib}};
  document["targets_met"] = AllMet(summaries, figures);
  return document.dump(2) + "\n";
}

bool AllMet(const std::vector<Summary>& summaries, const ProcessFigures& figures) {
  return figures.daemon_start_ms <= ProcessFigures::kStartLimitMs &&
         figures.daemon_peak_kib <= ProcessFigures::kPeakLimitKib &&
         std::all_of(summaries.begin(), summaries.end(),
                     [](const Summary& summary) { return summary.AddedOk() && summary.CpuOk(); });
}

}  // namespace resmgr::bench
