// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloon_donors.h"

#include <algorithm>
#include <utility>

namespace resmgr {

BalloonDonors::BalloonDonors(BalloonBook& book, const CpuSet& part) : book_(book), part_(part) {
  for (size_t place = 0; place < book.balloons().size(); ++place) {
    const Balloon& balloon = book.balloons()[place];
    if (!IsDonor(balloon)) continue;
    const int least = std::max(1, book.setup().MinCpus(balloon.type, balloon.index));
    const int here = balloon.part.cpus.CountCommon(part);
    const int can = std::min(here, balloon.size - least);
    if (can > 0) {
      donors_.push_back({.place = place, .at_home = 2 * here > balloon.size, .can = can});
    }
  }
}

bool BalloonDonors::IsDonor(const Balloon& balloon) const {
  const BalloonType& type = book_.setup().type(balloon.type);
  const bool apart = type.prefer_new || type.per_namespace || !type.group_by.empty();
  const bool wants = type.own_cpus || !type.close_to.empty() || type.prefer_isolated ||
                     !type.core_type.empty() || !type.loads.empty();
  const bool bound = type.composite() || type.grow_within != BalloonLevel::kNone ||
                     book_.setup().HasBounds(balloon.type) || type.name == kReservedType;
  return balloon.members.size() > 1 && !apart && !wants && !bound;
}

int BalloonDonors::most() const {
  int sum = 0;
  for (const Donor& donor : donors_)
    sum += donor.can;
  return sum;
}

int64_t BalloonDonors::LoadOf(const Donor& donor, int size) const {
  const Balloon& balloon = book_.balloons()[donor.place];
  const int64_t percent = book_.setup().type(balloon.type).overcommit_percent;
  return 100 * balloon.demand / (size * percent);
}

// Those that have most of their CPUs elsewhere come first, so that they lie closer together then.
void BalloonDonors::Give(int count) {
  for (; count > 0; --count) {
    Donor* best = nullptr;
    std::pair<bool, int64_t> least;
    for (Donor& donor : donors_) {
      if (donor.gives == donor.can) continue;
      const int size = book_.balloons()[donor.place].size;
      const std::pair rank(donor.at_home, LoadOf(donor, size - donor.gives - 1));
      if (best != nullptr && rank >= least) continue;
      best = &donor;
      least = rank;
    }
    if (best == nullptr) break;
    ++best->gives;
  }
  for (const Donor& donor : donors_)
    if (donor.gives > 0) book_.GiveUp(donor.place, part_, donor.gives);
}

bool BalloonDonors::GrowAgain(bool may_lack) {
  const auto shortest = [this] {
    const Donor* found = nullptr;
    int64_t most = 0;
    for (const Donor& donor : donors_) {
      const Balloon& balloon = book_.balloons()[donor.place];
      if (donor.gives == 0 || book_.Lacks(balloon) == 0) continue;
      const int64_t load = LoadOf(donor, balloon.size);
      if (found != nullptr && load <= most) continue;
      found = &donor;
      most = load;
    }
    return found;
  };
  for (const Donor* donor = shortest(); donor != nullptr; donor = shortest()) {
    if (!book_.GrowByOne(donor->place)) break;
  }
  return std::ranges::all_of(donors_, [&](const Donor& donor) {
    const Balloon& balloon = book_.balloons()[donor.place];
    return donor.gives == 0 || 2 * book_.Lacks(balloon) <= (may_lack ? balloon.size : 0);
  });
}

}  // namespace resmgr
