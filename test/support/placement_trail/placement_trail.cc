// SPDX-License-Identifier: Apache-2.0
#include "test/support/placement_trail/placement_trail.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

namespace resmgr::test {
namespace {

// Shorter than an update of a container takes, so that every state between two is seen.
constexpr std::chrono::microseconds kPause{200};

// The container's exclusive CPUs while it has the grant of one of the two policies. If both granted
// the same CPUs, but not as many exclusively, the trail cannot show when the first grant ended.
CpuSet OwnOf(const std::string& name, const CpuSet& cpus, const Grants& before,
             const Grants& after) {
  std::optional<CpuSet> own;
  for (const Grants* const grants : {&before, &after}) {
    const auto found = grants->find(name);
    if (found == grants->end() || found->second.cpus != cpus) continue;
    own = own ? *own & found->second.own : found->second.own;
  }
  return own.value_or(CpuSet());
}

CpuSet At(const Placements& placements, const std::string& name) {
  const auto found = placements.find(name);
  return found == placements.end() ? CpuSet() : found->second;
}

}  // namespace

PlacementTrail::PlacementTrail(Reader read)
    : read_(std::move(read)), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void PlacementTrail::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    Placements now = read_();
    std::unique_lock lock(mutex_);
    if (trail_.empty() || trail_.back() != now) trail_.push_back(std::move(now));
    ++looks_;
    looked_.notify_all();
    looked_.wait_for(lock, stop, kPause, [] { return false; });
  }
}

std::vector<Placements> PlacementTrail::Take() {
  std::unique_lock lock(mutex_);
  // One look may have begun before this.
  looked_.wait(lock, [this, seen = looks_] { return looks_ >= seen + 2; });
  std::vector<Placements> trail = std::exchange(trail_, {});
  trail_.push_back(trail.back());
  return trail;
}

std::vector<std::string> Violations(const std::vector<Placements>& trail, const Grants& before,
                                    const Grants& after) {
  std::vector<std::string> violations;
  const Placements* last = nullptr;
  for (const Placements& now : trail) {
    for (const auto& [name, cpus] : now) {
      if (cpus.empty()) violations.push_back(name + " has no CPU");
      const CpuSet own = OwnOf(name, cpus, before, after);
      for (const auto& [other, others] : now) {
        CpuSet met = other == name ? CpuSet() : others & own;
        if (last != nullptr) met -= At(*last, name) & At(*last, other);
        if (met.empty()) continue;
        violations.push_back(fmt::format("{} on {} meets {}, which has {} for itself", other,
                                         others.ToString(), name, own.ToString()));
      }
    }
    last = &now;
  }
  return violations;
}

std::vector<std::string> Differences(const Placements& now, const Grants& grants) {
  std::vector<std::string> differences = Violations({now}, grants, {});
  for (const auto& [name, grant] : grants) {
    if (const CpuSet cpus = At(now, name); cpus != grant.cpus) {
      differences.push_back(
          fmt::format("{} is on {} in place of {}", name, cpus.ToString(), grant.cpus.ToString()));
    }
  }
  return differences;
}

}  // namespace resmgr::test
