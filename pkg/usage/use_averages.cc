// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/use_averages.h"

#include <algorithm>
#include <string>

namespace resmgr {

void UseAverages::Mean::Add(double sample, Seconds length) {
  time += length;
  const double all = std::min<Seconds>(time, kReach).count();
  value += (sample - value) * std::min(1.0, length.count() / all);
}

void UseAverages::Add(const UsageFigures& figures) {
  const Seconds length = figures.at - figures.from;
  if (!figures.complete || length.count() <= 0 || figures.from < begin_) return;
  if (elapsed_.count() > 0 && figures.from != last_) BeginAt(begin_);
  last_ = figures.at;
  until_ = figures.until;
  elapsed_ += length;
  for (auto& [id, entry] : entries_)
    entry.seen = false;
  for (const ContainerFigures& container : figures.containers) {
    Entry& entry = entries_[container.subject.id];
    entry.seen = true;
    // A container is left out if its counters were reset or its use is unknown.
    if (!container.cpu_used || container.reset) continue;
    entry.cpus.Add(*container.cpu_used, length);
    if (const auto waited = container.PressureForCpus()) entry.pressure.Add(*waited, length);
  }
  std::erase_if(entries_, [](const auto& known) { return !known.second.seen; });
}

void UseAverages::BeginAt(std::chrono::steady_clock::time_point begin) {
  entries_.clear();
  begin_ = begin;
  elapsed_ = {};
}

std::chrono::milliseconds UseAverages::elapsed() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(elapsed_);
}

policy::MeasuredUse UseAverages::Of(const Snapshot& snapshot) const {
  policy::MeasuredUse use{.until = until_,
                          .over = std::min<std::chrono::milliseconds>(elapsed(), kReach)};
  if (entries_.empty()) return use;
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    if (container.state != ContainerState::kRunning) return;
    const auto found = entries_.find(std::string(container.id.value()));
    if (found == entries_.end() || found->second.cpus.time.count() <= 0) return;
    policy::ContainerUse& one = use.containers[container.key];
    one.cpus = found->second.cpus.value;
    if (found->second.pressure.time.count() > 0) one.pressure = found->second.pressure.value;
  });
  return use;
}

}  // namespace resmgr
