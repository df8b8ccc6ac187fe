// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloon_lending.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "pkg/topology/core_sets.h"

namespace resmgr {
namespace {

using Time = std::chrono::system_clock::time_point;

struct BalloonUse {
  double cpus = 0;
  bool any = false;  // at least one container was measured
  bool all = true;
};

// The factor for containers that see one thread of each core: the other thread does nothing else,
// so it counts as used, too.
double HiddenPart(const BalloonBook& book, const Balloon& balloon) {
  const bool hides = std::ranges::any_of(
      balloon.members, [](const BalloonMemberPtr& member) { return member->hide_hyperthreads; });
  if (!hides) return 1;
  const CpuSet cpus = balloon.cpus() | balloon.borrowed;
  return static_cast<double>(cpus.size()) /
         std::max(OneThreadPerCore(book.setup().machine(), cpus).size(), 1);
}

BalloonUse UseOf(const BalloonBook& book, const Balloon& balloon,
                 const policy::MeasuredUse& measured) {
  BalloonUse use;
  for (const BalloonMemberPtr& member : balloon.members) {
    const policy::ContainerUse* const container = measured.Find(member->key);
    if (container == nullptr) {
      use.all = false;
      continue;
    }
    use.any = true;
    use.cpus += std::max(container->cpus, 0.0);
  }
  use.cpus *= HiddenPart(book, balloon);
  return use;
}

// A change is also allowed if the clock was set back after the last one.
bool MayChange(const Balloon& balloon, const BalloonType& type, Time now) {
  const std::optional<Time>& last = balloon.borrowed_at;
  return !last || now < *last || now - *last >= type.use_pause;
}

// The number of CPUs that a balloon with `size` CPUs should have by its containers' use.
int WantedCpus(const BalloonType& type, const BalloonUse& use, int size) {
  const double percent = 100 * use.cpus / size;
  const int step = std::max(size / 2, 1);
  const double middle = static_cast<double>(type.grow_above + type.shrink_below) / 200;
  const auto wanted =
      static_cast<int>(std::min(std::ceil(use.cpus / middle), static_cast<double>(CpuSet::kBits)));
  if (percent > static_cast<double>(type.grow_above)) return std::min(wanted, size + step);
  if (percent < static_cast<double>(type.shrink_below) && use.all) {
    return std::max(wanted, size - step);
  }
  return size;
}

struct Growth {
  size_t place = 0;
  double use = 0;
  int size = 0;
  int wanted = 0;
};

// Distributes the idle CPUs one by one, each to the balloon with the most use per CPU.
void Divide(std::vector<Growth>& growths, int idle) {
  std::vector<int> wanted;
  wanted.reserve(growths.size());
  for (Growth& growth : growths)
    wanted.push_back(std::exchange(growth.wanted, growth.size));
  const auto load = [](const Growth& growth) { return growth.use / growth.wanted; };
  for (; idle > 0; --idle) {
    Growth* next = nullptr;
    for (size_t i = 0; i < growths.size(); ++i) {
      Growth& growth = growths[i];
      if (growth.wanted >= wanted[i]) continue;
      if (next == nullptr || load(growth) > load(*next)) next = &growth;
    }
    if (next == nullptr) return;
    ++next->wanted;
  }
}

}  // namespace

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
  const bool wants = type.own_cpus || !type.close_to.empty() || type.prefer_isolated ||
                     !type.core_type.empty() || !type.loads.empty();
  const bool bound = type.composite() || type.grow_within != BalloonLevel::kNone ||
                     book_.setup().HasBounds(balloon.type) || type.name == kReservedType;
  return balloon.members.size() > 1 && !type.keeps_apart() && !wants && !bound;
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

// Takes CPUs first from balloons that have most of theirs elsewhere, so that the rest of their CPUs
// are closer together.
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

void FollowMeasuredUse(BalloonBook& book, const policy::MeasuredUse& use) {
  std::vector<Growth> growths;
  for (size_t place = 0; place < book.balloons().size(); ++place) {
    const Balloon& balloon = book.balloons()[place];
    const BalloonType& type = book.setup().type(balloon.type);
    const int size = balloon.size + balloon.borrowed.size();
    if (!type.follows_use() || size == 0 || !MayChange(balloon, type, use.until)) continue;
    const BalloonUse its = UseOf(book, balloon, use);
    if (!its.any) continue;
    const int most = balloon.size + book.MostBorrowed(balloon);
    const int wanted = std::min(WantedCpus(type, its, size), most);
    if (wanted > size) {
      const int possible = size + book.FreeToBorrow(balloon).size();
      growths.push_back({place, its.cpus, size, std::min(wanted, possible)});
    }
    if (wanted < size && !balloon.borrowed.empty()) {
      book.Borrow(place, std::max(wanted - balloon.size, 0), use.until);
    }
  }
  Divide(growths, book.unlent().size());
  for (const Growth& growth : growths) {
    const int more = growth.wanted - book.balloons()[growth.place].size;
    if (growth.wanted > growth.size) book.Borrow(growth.place, more, use.until);
  }
}

int BalloonBook::MostBorrowed(const Balloon& balloon) const {
  if (balloon.members.empty() || !setup_->type(balloon.type).follows_use()) return 0;
  return std::max(setup_->MaxCpus(balloon.type, balloon.index) - balloon.size, 0);
}

void BalloonBook::Borrow(size_t place, int count, Time now) {
  const Balloon& present = balloons_[place];
  const CpuSet free = FreeToBorrow(present);
  const int before = present.borrowed.size();
  const int more = std::min({count, MostBorrowed(present), before + free.size()}) - before;
  if (more == 0) return;
  Balloon& balloon = balloons_.Change(place);
  CpuChoiceRules changed;
  const CpuChoiceRules& rules = RulesFor(balloon, balloon.part, changed);
  const CpuSet cpus = balloon.cpus() | balloon.borrowed;
  const CpuChooser& chooser = setup_->chooser();
  if (more > 0) {
    balloon.borrowed |= chooser.Grow(rules, cpus, free, more).value_or(CpuSet());
  } else {
    balloon.borrowed -= chooser.Shrink(rules, cpus, balloon.borrowed, idle_, -more);
  }
  balloon.borrowed_at = now;
  RecountLent();
}

void BalloonBook::AdoptBorrowed(size_t place, const CpuSet& cpus) {
  const CpuSet known = cpus & FreeToBorrow(balloons_[place]);
  if (known.empty()) return;
  balloons_.Change(place).borrowed |= known;
  RecountLent();
}

void BalloonBook::SettleBorrowed() {
  if (lent_.empty()) return;
  for (size_t place = 0; place < balloons_.size(); ++place) {
    const Balloon& present = balloons_[place];
    if (present.borrowed.empty()) continue;
    const int excess = (present.borrowed & idle_).size() - MostBorrowed(present);
    if (excess <= 0 && present.borrowed.IsSubsetOf(idle_)) continue;
    Balloon& balloon = balloons_.Change(place);
    balloon.borrowed &= idle_;
    if (excess <= 0) continue;
    balloon.borrowed -=
        setup_->chooser().Shrink(setup_->rules(balloon.type), balloon.cpus() | balloon.borrowed,
                                 balloon.borrowed, idle_, excess);
  }
  RecountLent();
}

void BalloonBook::RecountLent() {
  lent_ = CpuSet();
  for (const Balloon& balloon : balloons_)
    lent_ |= balloon.borrowed;
}

}  // namespace resmgr
