// SPDX-License-Identifier: Apache-2.0
#include "test/bench/measure.h"

#include <algorithm>

#include "test/bench/figures.h"
#include "test/bench/order.h"
#include "test/bench/process_stats.h"

namespace resmgr::bench {

namespace {

// As a part of the direct p50.
constexpr double kLeastAddedByRelay = 0.05;

// Before each burst a fifth as many calls run, so that the processor's caches no longer hold data
// of the former candidate.
constexpr int kUncountedPart = 5;

using Round = std::vector<Sample>;  // one of each candidate

struct CpuTimes {
  std::chrono::nanoseconds all{};
  std::chrono::nanoseconds of_calls{};
};

// The process's times; zero without a process.
CpuTimes CpuTimesOf(pid_t pid) {
  if (pid == 0) return {};
  return {.all = CpuTime(pid), .of_calls = CpuTimeWithout(pid, "usage")};
}

StatusOr<LoadResult> RunCalls(Candidate& candidate, const Scenario& scenario, int calls,
                              int* number) {
  const int first = *number;
  *number += calls;
  LoadResult result =
      candidate.client->Run({.path = RuntimePath(scenario.method),
                             .calls = calls,
                             .concurrency = scenario.concurrency,
                             .request = [&](int i) { return scenario.request(first + i); },
                             .keep_replies = scenario.creates});
  if (result.errors > 0) {
    return Unavailable("{} over {}: {} of {} calls failed: {}", scenario.name, candidate.name,
                       result.errors, calls, result.first_error);
  }
  return result;
}

Summary Summarize(const Scenario& scenario, const std::vector<Round>& rounds) {
  Summary summary;
  summary.scenario = scenario;
  summary.medians.resize(rounds.front().size());
  for (size_t i = 0; i < summary.medians.size(); ++i) {
    Sample& median = summary.medians[i];
    median.p50 = MedianOf(rounds, [i](const Round& round) { return round[i].p50; });
    median.p99 = MedianOf(rounds, [i](const Round& round) { return round[i].p99; });
    median.calls_per_second =
        MedianOf(rounds, [i](const Round& round) { return round[i].calls_per_second; });
    median.cpu = MedianOf(rounds, [i](const Round& round) { return round[i].cpu; });
  }
  // Side by side, calls that pass a relay come in batches that spare wake-ups, and the relay may
  // seem to cost nothing.
  const double direct = summary.medians[Testbed::kDirect].p50;
  const bool measurable =
      summary.medians[Testbed::kByteRelay].p50 > direct * (1 + kLeastAddedByRelay);
  const auto added = [&](size_t candidate) -> std::optional<double> {
    if (!measurable) return std::nullopt;
    return MedianOf(rounds, [candidate](const Round& round) {
      const double without = round[Testbed::kDirect].p50;
      return (round[candidate].p50 - without) / (round[Testbed::kByteRelay].p50 - without);
    });
  };
  const auto cpu = [&](size_t candidate) {
    return MedianOf(rounds, [candidate](const Round& round) {
      return round[candidate].cpu / round[Testbed::kByteRelay].cpu;
    });
  };
  summary.added = added(Testbed::kDaemon);
  summary.added_again = added(Testbed::kByteRelayAgain);
  summary.cpu_ratio = cpu(Testbed::kDaemon);
  summary.cpu_again = cpu(Testbed::kByteRelayAgain);
  if (summary.medians.size() > Testbed::kOther) {
    const auto ratio = [&rounds](double Sample::*figure) {
      return MedianOf(rounds, [figure](const Round& round) {
        return round[Testbed::kDaemon].*figure / round[Testbed::kOther].*figure;
      });
    };
    summary.to_other = Comparison{ratio(&Sample::p50), ratio(&Sample::cpu)};
  }
  return summary;
}

}  // namespace

StatusOr<Sample> RunBurst(Candidate& candidate, const Scenario& scenario, int* number) {
  const int uncounted = std::max(scenario.calls / kUncountedPart, scenario.concurrency);
  RESMGR_ASSIGN_OR_RETURN(const LoadResult warm, RunCalls(candidate, scenario, uncounted, number));
  const pid_t pid = candidate.process ? candidate.process->pid() : 0;
  const CpuTimes before = CpuTimesOf(pid);
  RESMGR_ASSIGN_OR_RETURN(LoadResult result, RunCalls(candidate, scenario, scenario.calls, number));
  const CpuTimes after = CpuTimesOf(pid);
  if (scenario.creates) {
    RESMGR_RETURN_IF_ERROR(RemoveContainers(*candidate.client, warm.replies));
    RESMGR_RETURN_IF_ERROR(RemoveContainers(*candidate.client, result.replies));
  }
  std::sort(result.latencies.begin(), result.latencies.end());
  const size_t count = result.latencies.size();
  Sample sample;
  sample.p50 = Micros(result.latencies[count / 2]);
  sample.p99 = Micros(result.latencies[count * 99 / 100]);
  sample.calls_per_second = scenario.calls / std::chrono::duration<double>(result.elapsed).count();
  sample.cpu = Micros(after.all - before.all) / scenario.calls;
  sample.cpu_of_calls = Micros(after.of_calls - before.of_calls) / scenario.calls;
  return sample;
}

StatusOr<std::vector<Summary>> Measure(Testbed& bed, const std::vector<Scenario>& scenarios,
                                       int rounds) {
  std::vector<std::vector<Round>> results(scenarios.size());
  int number = 0;
  // Round -1 warms everything up and is not counted.
  for (int round = -1; round < rounds; ++round) {
    for (size_t s = 0; s < scenarios.size(); ++s) {
      Round samples(bed.candidates());
      for (const size_t turn : OrderOf(static_cast<size_t>(round) + 1, samples.size())) {
        RESMGR_ASSIGN_OR_RETURN(samples[turn], RunBurst(bed.at(turn), scenarios[s], &number));
      }
      if (round >= 0) results[s].push_back(samples);
    }
  }
  std::vector<Summary> summaries;
  for (size_t s = 0; s < scenarios.size(); ++s)
    summaries.push_back(Summarize(scenarios[s], results[s]));
  return summaries;
}

}  // namespace resmgr::bench
