// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/use_recorder.h"

#include <cmath>
#include <utility>
#include <vector>

namespace resmgr {
namespace {

// Smaller differences are within the variation of samples.
constexpr double kLeastCpus = 0.05;
constexpr double kLeastPressure = 5;  // percent

}  // namespace

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
  // The next sample is recorded whole, since it is not known which of the figures the recording
  // has.
  if (!use.empty() && !dumper_.RecordUse(std::move(use))) recorded_.clear();
}

}  // namespace resmgr
