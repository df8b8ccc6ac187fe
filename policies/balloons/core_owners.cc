// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/core_owners.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace resmgr {
namespace {

// Costs of the faults of a choice. A step may remove a fault and cause a cheaper one, which a later
// step removes.
constexpr int64_t kTooLarge = 1'000'000;         // for each excess CPU of a balloon
constexpr int64_t kUnexplained = 2 * kTooLarge;  // per wrong CPU of balloons without containers
constexpr int64_t kTooSmall = 3 * kTooLarge;
constexpr int64_t kNotThere = 3 * kTooLarge;  // for each part in which a balloon has to have a CPU

constexpr size_t kStepsOfThread = 4;  // work to choose the owner of a thread

}  // namespace

OwnerChoice::OwnerChoice(const std::vector<OwnedCore>& cores, std::vector<OwnerWishes> wanted,
                         int empty, SearchWork& work)
    : cores_(cores),
      wanted_(std::move(wanted)),
      wanted_empty_(empty),
      work_(work),
      owned_(wanted_.size()),
      chosen_(cores.size(), 0) {
  int last = 0;
  for (const OwnedCore& core : cores_)
    last = std::max(last, core.cpus.Last());
  for (size_t place = 0; place < wanted_.size(); ++place) {
    const std::vector<CpuSet>& parts = wanted_[place].parts;
    Owned& owned = owned_[place];
    if (parts.empty()) continue;
    owned.missing = static_cast<int>(parts.size());
    owned.in_part.resize(parts.size());
    owned.part_of.assign(static_cast<size_t>(last) + 1, -1);
    for (size_t part = 0; part < parts.size(); ++part) {
      for (const int cpu : parts[part])
        if (cpu <= last) owned.part_of[static_cast<size_t>(cpu)] = static_cast<int16_t>(part);
    }
    work_.Do(static_cast<size_t>(last) + parts.size());
  }
  for (size_t place = 0; place < wanted_.size(); ++place)
    cost_ += CostOf(place);
  cost_ += CostOfEmpty();
  for (const OwnedCore& core : cores_) {
    const CoreOwners& owners = core.choice(0);
    for (size_t i = 0; i < owners.size(); ++i)
      Count(owners[i], core.threads[i], 1);
    work_.Do(kStepsOfThread * owners.size());
  }
}

// The cost of the balloon's faults: its size, parts without a CPU, and borrowed CPUs.
int64_t OwnerChoice::CostOf(size_t place) const {
  const ExplainedSize& size = wanted_[place].size;
  const Owned& owned = owned_[place];
  return kTooSmall * std::max(size.least - owned.cpus, 0) +
         kTooLarge * std::max(owned.cpus - size.most, 0) +
         int64_t{10} * std::abs(owned.cpus - size.best) + kNotThere * owned.missing +
         owned.borrowed;
}

int64_t OwnerChoice::CostOfEmpty() const {
  return kUnexplained * std::abs(empty_ - wanted_empty_);
}

// Adds (1) or removes (-1) a CPU of this owner.
void OwnerChoice::Count(int owner, int cpu, int change) {
  if (owner == kEmptyBalloon) {
    cost_ -= CostOfEmpty();
    empty_ += change;
    cost_ += CostOfEmpty();
  }
  if (owner < 0) return;
  const bool borrows = static_cast<size_t>(owner) >= owned_.size();
  const size_t place = static_cast<size_t>(owner) % owned_.size();
  Owned& owned = owned_[place];
  cost_ -= CostOf(place);
  if (borrows) {
    owned.borrowed += change;
  } else {
    owned.cpus += change;
    const int part = owned.part_of.empty() ? -1 : owned.part_of[static_cast<size_t>(cpu)];
    if (part >= 0) {
      int& here = owned.in_part[static_cast<size_t>(part)];
      if (here == 0) --owned.missing;
      here += change;
      if (here == 0) ++owned.missing;
    }
  }
  cost_ += CostOf(place);
}

void OwnerChoice::Choose(size_t core, size_t choice) {
  const CoreOwners& former = OwnersOf(core);
  const CoreOwners& next = cores_[core].choice(choice);
  for (size_t i = 0; i < next.size(); ++i) {
    if (former[i] == next[i]) continue;
    Count(former[i], cores_[core].threads[i], -1);
    Count(next[i], cores_[core].threads[i], 1);
  }
  chosen_[core] = choice;
}

// Takes the best choice, the first among equals, if it is better than the present one.
bool OwnerChoice::ImproveCore(size_t core) {
  const size_t count = cores_[core].left.size();
  if (count == 1) return false;
  work_.Do(kStepsOfThread * count * cores_[core].threads.size());
  const size_t former = chosen_[core];
  size_t best = former;
  int64_t least = cost_;
  for (size_t choice = 0; choice < count; ++choice) {
    Choose(core, choice);
    if (cost_ >= least) continue;
    least = cost_;
    best = choice;
  }
  Choose(core, best);
  return best != former;
}

bool OwnerChoice::Find() {
  for (bool better = true; better && !work_.over();) {
    better = false;
    for (size_t core = 0; core < cores_.size() && !work_.over(); ++core)
      better |= ImproveCore(core);
  }
  return !work_.over() && cost_ - CostOfEmpty() < kTooLarge;
}

}  // namespace resmgr
