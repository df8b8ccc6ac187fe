// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/observer.h"

#include <algorithm>
#include <utility>

namespace resmgr {
namespace {

// Limit of earlier changes that a new one is compared with. A decision about one container changes
// the shared CPUs of only a few pools, but after a change of the policy every change would be
// compared with all others.
constexpr size_t kShiftsLookedAt = 16;

std::optional<CpuSet> Without(const std::optional<CpuSet>& cpus, const CpuSet& exclusive) {
  if (!cpus || exclusive.empty()) return cpus;
  return *cpus - exclusive;
}

}  // namespace

void Shifts::Note(ContainerKey key, const Placement& before, const Placement& after) {
  const bool same_cpus = before.cpus == after.cpus && before.exclusive == after.exclusive;
  if (same_cpus && before.mems == after.mems) return;
  if (before.exclusive != after.exclusive) {
    shifts_.push_back({.first = key, .from = Place::Of(before), .to = Place::Of(after)});
    return;
  }
  Add(key, {Without(before.cpus, before.exclusive), before.mems, {}},
      {Without(after.cpus, after.exclusive), after.mems, {}});
}

void Shifts::NoteShared(ContainerKey key, const Placement& before, const SharedChange& change) {
  if (before.cpus == change.CpusFor(before)) return;
  Add(key, {Without(before.cpus, before.exclusive), {}, {}},
      {change.cpus - before.exclusive, {}, {}});
}

void Shifts::Add(ContainerKey key, const Place& from, const Place& to) {
  const size_t looked_at = std::min(shifts_.size(), kShiftsLookedAt);
  for (size_t i = shifts_.size(); i > shifts_.size() - looked_at; --i) {
    Shift& known = shifts_[i - 1];
    if (known.from == from && known.to == to) {
      ++known.containers;
      return;
    }
  }
  shifts_.push_back({.first = key, .from = from, .to = to});
}

}  // namespace resmgr
