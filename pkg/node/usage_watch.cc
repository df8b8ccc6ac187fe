// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/usage_watch.h"

#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace resmgr {
namespace {

// Metric series that a sample prepares on its thread for the loop. The loop uses this object only
// while no sample is taken; if a sample hangs, the object stays with its thread.
struct ReadySeries {
  bool wanted = false;
  UsageMetrics::SeriesPtr next{};
  UsageMetrics::SeriesPtr former{};  // shown before
};

void MakeReady(ReadySeries& ready, const UsageFigures& figures) {
  ready.former.reset();
  ready.next = UsageMetrics::MakeSeries(ready.wanted ? std::span(figures.containers)
                                                     : std::span<const ContainerFigures>());
}

// Adds metrics to the sampler: its thread prepares the series of containers, if they are wanted,
// and the loop then shows them.
void AddMetrics(UsageSampler::Options& options, PolicyHost& host, const Machine& machine,
                UsageMetrics& metrics, std::function<bool()> per_container) {
  const auto ready = std::make_shared<ReadySeries>();
  options.subjects = [&host, ready, per_container = std::move(per_container)] {
    ready->wanted = per_container();
    return UsageSubjects(host.manager());
  };
  options.take = [ready, take = std::move(options.take)](const auto& subjects, bool first) {
    UsageSampler::Figures figures = take(subjects, first);
    MakeReady(*ready, *figures);
    return figures;
  };
  options.told = [ready, &metrics, &machine](const UsageFigures& figures) {
    ready->former = metrics.Show(figures, machine, std::move(ready->next));
  };
  options.lost = [&metrics] { metrics.Clear(); };
}

// Smaller differences are within the noise of samples.
constexpr double kLeastCpus = 0.05;
constexpr double kLeastPressure = 5;  // percent

}  // namespace

UsageSampler::Options UsageSamplerOptions(EventLoop& loop, Clock& clock, PolicyHost& host,
                                          const Machine& machine, const std::string& host_root,
                                          UsageMetrics* metrics,
                                          std::function<bool()> per_container) {
  const auto in_hand = std::make_shared<FileInHand>();
  UsageSampler::Options options{.loop = loop,
                                .clock = clock,
                                .subjects = [&host] { return UsageSubjects(host.manager()); },
                                .take = TakeFrom(host_root, in_hand),
                                .in_hand = in_hand};
  if (metrics != nullptr) AddMetrics(options, host, machine, *metrics, std::move(per_container));
  return options;
}

void UseRecorder::Observe(const UsageFigures& figures) {
  const uint64_t recording = dumper_.recording();
  if (std::exchange(recording_, recording) != recording) recorded_.clear();
  if (recording == 0 || (!recorded_.empty() && figures.at - last_ < kPause)) return;
  last_ = figures.at;
  ++line_;
  std::vector<dump::RecordedUse> use;
  for (const ContainerFigures& container : figures.containers) {
    if (!container.cpu_used) continue;
    const bool known = recorded_.contains(container.subject.id);
    if (!known && recorded_.size() >= kMostContainers) continue;
    const std::optional<double> pressure = container.PressureForCpus();
    Recorded& last = recorded_[container.subject.id];
    last.seen = line_;
    const bool same = known && std::abs(last.cpus - *container.cpu_used) < kLeastCpus &&
                      std::abs(last.pressure.value_or(0) - pressure.value_or(0)) < kLeastPressure;
    if (same) continue;
    last.cpus = *container.cpu_used;
    last.pressure = pressure;
    use.push_back({container.subject.id, last.cpus, pressure});
  }
  std::erase_if(recorded_, [this](const auto& entry) { return entry.second.seen != line_; });
  // If the line was lost, all containers are recorded with the next sample.
  if (!use.empty() && !dumper_.RecordUse(std::move(use))) recorded_.clear();
}

}  // namespace resmgr
