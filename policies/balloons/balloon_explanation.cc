// SPDX-License-Identifier: Apache-2.0
// The owners of a core's threads alone decide what a container sees of the core, beside the parts
// of the machine in which its balloon shares idle CPUs. These parts are those in which it sees any
// CPU. So each core has a short list of choices of owners; a type that is chosen for a balloon
// strikes some of them off, and the sizes of balloons decide among those that are left.
#include "policies/balloons/balloon_explanation.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace resmgr {
namespace {

// Owners that are none of the balloons that were seen.
constexpr int kIdleCpu = -1;  // the CPU is idle
constexpr int kEmptyBalloon = -2;
constexpr int kKnownBalloon = -3;  // of the book

// The search ends after so many looks at a choice.
constexpr int64_t kMostWork = 4'000'000;
constexpr int64_t kMostWorkOfTry = kMostWork / 40;
constexpr size_t kWorkOfOffer = 20;    // for each balloon and core
constexpr size_t kMostChoices = 4096;  // of a core
// Costs of a wrong choice. A dearer fault is mended at the price of a cheaper one, which another
// step mends then.
constexpr int64_t kTooLarge = 1'000'000;         // for each CPU of a balloon
constexpr int64_t kUnexplained = 2 * kTooLarge;  // for each CPU of balloons without containers
constexpr int64_t kTooSmall = 3 * kTooLarge;
constexpr int64_t kNotThere = 3 * kTooLarge;  // for each part in which a balloon has to have a CPU

// The owner of each thread, in the order of their numbers: a balloon's place, or so many more for
// one that borrows it.
using CoreOwners = std::vector<int>;

struct OwnedCore {
  CpuSet cpus;
  std::vector<int> threads;
  std::vector<CoreOwners> choices;
};

struct ExplainedSize {
  int least = 0;
  int most = 0;
  int best = 0;
};

// The least or greatest number of CPUs of a balloon that is to have `cpus`.
int WholeSizeOf(const BalloonSetup& setup, int type, int cpus, bool greatest) {
  const BalloonType& own = setup.type(type);
  if (!own.composite()) return cpus;
  const size_t count = own.balance_components ? 1 : own.components.size();
  std::vector<int> sizes;
  for (const int component : own.components)
    sizes.push_back(WholeSizeOf(setup, component, setup.ShareOf(component, cpus, count), greatest));
  if (!own.balance_components) return std::accumulate(sizes.begin(), sizes.end(), 0);
  return greatest ? std::ranges::max(sizes) : std::ranges::min(sizes);
}

class ExplanationSearch {
 public:
  using Accept = std::function<bool(const BalloonExplanation&)>;

  ExplanationSearch(const BalloonBook& book, const std::vector<SeenBalloon>& seen,
                    const Accept& accept)
      : book_(book), setup_(book.setup()), seen_(seen), accept_(accept), decided_(seen.size()) {}

  bool Run();

 private:
  // The knowledge of a balloon of containers that were seen.
  struct Decided {
    CpuSet sees;
    int known_type = -1;      // it is one of the book's
    std::vector<int> domain;  // types, the likeliest first
    int type = -1;            // -1: not decided yet
    CpuSet reach;             // where it shares idle CPUs
    std::vector<size_t> cores;
    int64_t failures = 0;
  };
  using Former = std::vector<std::pair<size_t, std::vector<CoreOwners>>>;

  bool FindKnown();
  bool MakeCores();
  std::vector<int> OwnersOf(int cpu) const;
  bool Combine(OwnedCore& core, const std::vector<std::vector<int>>& owners) const;
  bool MakeDomains();
  bool Shows(size_t place, const OwnedCore& core, const CoreOwners& owners) const;
  bool Decide(size_t place, int type, Former& former);
  void Undo(size_t place, Former& former);
  bool IsPossible(size_t place) const;
  bool DecidedArePossible(size_t depth) const;
  ExplainedSize SizeOf(size_t place, int type) const;
  bool MayBeExact(size_t place, int type) const;
  bool MayBeOneMore(size_t place, int type) const;
  bool Assign(size_t depth);
  bool Offer();
  BalloonExplanation ExplanationOf(const std::vector<size_t>& chosen) const;
  int64_t CostOf(const std::vector<size_t>& chosen, const std::vector<size_t>& places) const;
  int64_t CostOfEmpty(const std::vector<size_t>& chosen) const;
  int CpusOfEmptyBalloons() const;
  int lent(size_t place) const { return static_cast<int>(place + seen_.size()); }

  const BalloonBook& book_;
  const BalloonSetup& setup_;
  const std::vector<SeenBalloon>& seen_;
  const Accept& accept_;
  std::vector<Decided> decided_;
  std::vector<OwnedCore> cores_;
  std::vector<size_t> order_;
  std::map<int, int> known_;  // owner of a CPU of a balloon of the book
  int64_t work_ = 0;          // that is left
};

// Balloons of the book that have containers among those that were seen.
bool ExplanationSearch::FindKnown() {
  for (const Balloon& balloon : book_.balloons()) {
    int owner = kKnownBalloon;
    for (size_t place = 0; place < seen_.size(); ++place) {
      if (!decided_[place].sees.Intersects(balloon.cpus())) continue;
      if (owner != kKnownBalloon || decided_[place].known_type >= 0) return false;
      owner = static_cast<int>(place);
      decided_[place].known_type = balloon.type;
    }
    for (const int cpu : balloon.cpus())
      known_[cpu] = owner;
  }
  return true;
}

std::vector<int> ExplanationSearch::OwnersOf(int cpu) const {
  if (const auto known = known_.find(cpu); known != known_.end()) return {known->second};
  std::vector<int> owners;
  const bool isolated = setup_.machine().isolated().Contains(cpu);
  for (size_t place = 0; place < seen_.size(); ++place) {
    if (decided_[place].sees.Contains(cpu)) owners.push_back(static_cast<int>(place));
  }
  // An isolated CPU is seen by its balloon alone, and so is every other one that is not idle.
  if (owners.size() > 1) return isolated ? std::vector<int>() : std::vector<int>{kIdleCpu};
  const bool seen = !owners.empty();
  const CpuSet core = setup_.machine().WithSiblings({cpu});
  for (size_t place = 0; !seen && place < seen_.size(); ++place) {
    if (!seen_[place].whole.empty()) continue;
    const CpuSet shown = seen_[place].threads & core;
    if (!shown.empty() && shown.First() < cpu) owners.push_back(static_cast<int>(place));
  }
  if (setup_.follows_use()) {
    for (size_t i = owners.size(); i > 0; --i)
      owners.push_back(lent(static_cast<size_t>(owners[i - 1])));
  }
  if (!seen || !isolated) owners.push_back(kIdleCpu);
  if (!seen) owners.push_back(kEmptyBalloon);
  return owners;
}

// All combinations that show the balloons what they see as far as this depends on no type.
bool ExplanationSearch::Combine(OwnedCore& core,
                                const std::vector<std::vector<int>>& owners) const {
  size_t count = 1;
  for (const std::vector<int>& each : owners) {
    count *= each.size();
    if (count > kMostChoices) return false;
  }
  for (size_t number = 0; number < count; ++number) {
    CoreOwners choice;
    size_t rest = number;
    for (const std::vector<int>& each : owners) {
      choice.push_back(each[rest % each.size()]);
      rest /= each.size();
    }
    bool shown = true;
    for (size_t place = 0; shown && place < seen_.size(); ++place) {
      if (decided_[place].sees.Intersects(core.cpus)) shown = Shows(place, core, choice);
    }
    if (shown) core.choices.push_back(std::move(choice));
  }
  return !core.choices.empty();
}

bool ExplanationSearch::MakeCores() {
  for (const CpuSet& cpus : setup_.machine().cores()) {
    OwnedCore core{.cpus = cpus & setup_.available(), .threads = {}, .choices = {}};
    std::vector<std::vector<int>> owners;
    for (const int cpu : core.cpus) {
      core.threads.push_back(cpu);
      owners.push_back(OwnersOf(cpu));
    }
    if (core.cpus.empty()) continue;
    if (!Combine(core, owners)) return false;
    const size_t number = cores_.size();
    for (Decided& decided : decided_)
      if (decided.sees.Intersects(core.cpus)) decided.cores.push_back(number);
    cores_.push_back(std::move(core));
  }
  return true;
}

// Whether the containers of a balloon see of the core what they do.
bool ExplanationSearch::Shows(size_t place, const OwnedCore& core, const CoreOwners& owners) const {
  const Decided& decided = decided_[place];
  const SeenBalloon& seen = seen_[place];
  const CpuSet& reach = decided.type < 0 ? decided.sees : decided.reach;
  int first_own = -1;
  int first_idle = -1;
  for (size_t i = 0; i < owners.size(); ++i) {
    const int cpu = core.threads[i];
    const bool own = owners[i] == static_cast<int>(place) || owners[i] == lent(place);
    const bool idle = owners[i] == kIdleCpu && reach.Contains(cpu);
    if (!seen.whole.empty() && seen.whole.Contains(cpu) != (own || idle)) return false;
    if (own && first_own < 0) first_own = cpu;
    if (idle && first_idle < 0) first_idle = cpu;
  }
  if (seen.threads.empty()) return true;
  const int shown = first_own >= 0 ? first_own : first_idle;
  return std::ranges::all_of(core.threads,
                             [&](int cpu) { return seen.threads.Contains(cpu) == (cpu == shown); });
}

// Strikes the choices off that a balloon of this type excludes. False: none is left of a core.
bool ExplanationSearch::Decide(size_t place, int type, Former& former) {
  Decided& decided = decided_[place];
  decided.type = type;
  decided.reach = AllOf(setup_.sharing(type), decided.sees) - setup_.machine().isolated();
  const CpuSet concerned = decided.reach | setup_.machine().WithSiblings(decided.sees);
  const bool follows = setup_.type(type).follows_use();
  for (size_t number = 0; number < cores_.size(); ++number) {
    OwnedCore& core = cores_[number];
    if (!core.cpus.Intersects(concerned)) continue;
    const auto excluded = [&](const CoreOwners& owners) {
      if (!follows && std::ranges::find(owners, lent(place)) != owners.end()) return true;
      return !Shows(place, core, owners);
    };
    work_ -= static_cast<int64_t>(core.choices.size());
    if (std::ranges::none_of(core.choices, excluded)) continue;
    former.emplace_back(number, core.choices);
    std::erase_if(core.choices, excluded);
    if (core.choices.empty()) return false;
  }
  return true;
}

void ExplanationSearch::Undo(size_t place, Former& former) {
  for (auto& [number, choices] : former)
    cores_[number].choices = std::move(choices);
  former.clear();
  decided_[place].type = -1;
}

ExplainedSize ExplanationSearch::SizeOf(size_t place, int type) const {
  const int needed = seen_[place].needed[static_cast<size_t>(type)];
  const bool known = decided_[place].known_type >= 0;
  // Components have their least sizes until the whole lacks CPUs.
  const int least = known ? 1 : WholeSizeOf(setup_, type, setup_.MinCpus(type, 0), false);
  return {.least = std::max(least, 1),
          .most = WholeSizeOf(setup_, type, needed, true),
          .best = setup_.WholeSize(type, needed)};
}

// Whether the choices that are left allow a size of its type, with a CPU in each part in which it
// shares idle ones.
bool ExplanationSearch::IsPossible(size_t place) const {
  const Decided& decided = decided_[place];
  const ExplainedSize range = SizeOf(place, decided.type);
  int least = 0;
  int most = 0;
  CpuSet possible;
  for (const size_t number : decided.cores) {
    const OwnedCore& core = cores_[number];
    int fewest = std::numeric_limits<int>::max();
    int greatest = 0;
    for (const CoreOwners& owners : core.choices) {
      int count = 0;
      for (size_t i = 0; i < owners.size(); ++i) {
        if (owners[i] != static_cast<int>(place)) continue;
        possible.Add(core.threads[i]);
        ++count;
      }
      fewest = std::min(fewest, count);
      greatest = std::max(greatest, count);
    }
    least += fewest;
    most += greatest;
  }
  if (most < range.least || least > range.most) return false;
  return std::ranges::all_of(setup_.sharing(decided.type), [&](const CpuSet& part) {
    return !part.Intersects(decided.sees) || part.Intersects(possible);
  });
}

bool ExplanationSearch::DecidedArePossible(size_t depth) const {
  for (size_t i = 0; i <= depth; ++i)
    if (!IsPossible(order_[i])) return false;
  return true;
}

// Whether it may have as many CPUs as its containers need of such a balloon.
bool ExplanationSearch::MayBeExact(size_t place, int type) const {
  const BalloonType& own = setup_.type(type);
  const int size = decided_[place].sees.size();
  const int best = SizeOf(place, type).best;
  if (own.composite() || !seen_[place].threads.empty()) return true;
  return own.follows_use() || !setup_.sharing(type).empty() ? best <= size : best == size;
}

// The types that each balloon may have if nothing is known of the others.
bool ExplanationSearch::MakeDomains() {
  using Rank = std::tuple<bool, bool, bool, bool, int, int>;
  for (size_t place = 0; place < seen_.size(); ++place) {
    Decided& decided = decided_[place];
    std::vector<Rank> ranked;
    for (int type = 0; type < setup_.types(); ++type) {
      const BalloonType& own = setup_.type(type);
      const bool known = decided.known_type >= 0;
      if (own.alone || setup_.MaxCpus(type, 0) == 0) continue;
      if (known ? type != decided.known_type : own.own_cpus) continue;
      Former former;
      const bool possible = Decide(place, type, former) && IsPossible(place);
      Undo(place, former);
      if (!possible) continue;
      const auto members = seen_[place].types.find(type);
      const bool guests = members == seen_[place].types.end();
      const bool exact = MayBeExact(place, type);
      const bool always = book_.Count(type) < setup_.MinBalloons(type);
      ranked.emplace_back(guests, !exact, guests && own.name == kReservedType, !always,
                          guests ? 0 : -members->second, type);
    }
    if (ranked.empty()) return false;
    std::ranges::sort(ranked);
    for (const Rank& rank : ranked)
      decided.domain.push_back(std::get<5>(rank));
  }
  return true;
}

bool ExplanationSearch::MayBeOneMore(size_t place, int type) const {
  if (decided_[place].known_type >= 0) return true;
  const auto others = std::ranges::count_if(decided_, [type](const Decided& decided) {
    return decided.known_type < 0 && decided.type == type;
  });
  return book_.Count(type) + others < setup_.MaxBalloons(type);
}

// Types for the balloons from `depth` on.
bool ExplanationSearch::Assign(size_t depth) {
  if (depth == order_.size()) return Offer();
  const size_t place = order_[depth];
  for (const int type : decided_[place].domain) {
    if (work_ <= 0) return false;
    if (!MayBeOneMore(place, type)) continue;
    Former former;
    work_ -= static_cast<int64_t>(depth);
    if (Decide(place, type, former) && DecidedArePossible(depth) && Assign(depth + 1)) return true;
    Undo(place, former);
  }
  ++decided_[place].failures;
  return false;
}

// The CPUs of the balloons that always exist and that no containers have.
int ExplanationSearch::CpusOfEmptyBalloons() const {
  int sum = 0;
  for (int type = 0; type < setup_.types(); ++type) {
    const auto found = std::ranges::count_if(decided_, [type](const Decided& decided) {
      return decided.known_type < 0 && decided.type == type;
    });
    const int missing = setup_.MinBalloons(type) - book_.Count(type) - static_cast<int>(found);
    if (missing <= 0) continue;
    sum += missing * setup_.WholeSize(type, setup_.MinCpus(type, 0));
  }
  return sum;
}

// How far the sizes of these balloons are from what their containers need.
int64_t ExplanationSearch::CostOf(const std::vector<size_t>& chosen,
                                  const std::vector<size_t>& places) const {
  int64_t cost = 0;
  for (const size_t place : places) {
    const Decided& decided = decided_[place];
    CpuSet own;
    for (const size_t number : decided.cores) {
      const CoreOwners& owners = cores_[number].choices[chosen[number]];
      for (size_t i = 0; i < owners.size(); ++i) {
        if (owners[i] == static_cast<int>(place)) own.Add(cores_[number].threads[i]);
        if (owners[i] == lent(place)) ++cost;
      }
    }
    const ExplainedSize range = SizeOf(place, decided.type);
    const int size = own.size();
    cost +=
        kTooSmall * std::max(range.least - size, 0) + kTooLarge * std::max(size - range.most, 0);
    cost += 10 * std::abs(size - range.best);
    for (const CpuSet& part : setup_.sharing(decided.type))
      if (part.Intersects(decided.sees) && !part.Intersects(own)) cost += kNotThere;
  }
  return cost;
}

int64_t ExplanationSearch::CostOfEmpty(const std::vector<size_t>& chosen) const {
  int empty = 0;
  for (size_t number = 0; number < cores_.size(); ++number) {
    const CoreOwners& owners = cores_[number].choices[chosen[number]];
    empty += static_cast<int>(std::ranges::count(owners, kEmptyBalloon));
  }
  return kUnexplained * std::abs(empty - CpusOfEmptyBalloons());
}

// Chooses among the owners that are left, core by core, until no other choice is better.
bool ExplanationSearch::Offer() {
  std::vector<size_t> chosen(cores_.size(), 0);
  std::vector<std::vector<size_t>> places(cores_.size());
  for (size_t place = 0; place < decided_.size(); ++place) {
    for (const size_t number : decided_[place].cores)
      places[number].push_back(place);
  }
  for (bool better = true; better;) {
    better = false;
    for (size_t number = 0; number < cores_.size(); ++number) {
      const size_t count = cores_[number].choices.size();
      if (count == 1) continue;
      work_ -= static_cast<int64_t>(count * cores_.size());
      size_t best = chosen[number];
      int64_t least = CostOf(chosen, places[number]) + CostOfEmpty(chosen);
      for (size_t choice = 0; choice < count; ++choice) {
        chosen[number] = choice;
        const int64_t cost = CostOf(chosen, places[number]) + CostOfEmpty(chosen);
        if (cost >= least) continue;
        least = cost;
        best = choice;
        better = true;
      }
      chosen[number] = best;
    }
  }
  std::vector<size_t> all(decided_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (CostOf(chosen, all) >= kTooLarge) return false;
  work_ -= static_cast<int64_t>(kWorkOfOffer * seen_.size() * cores_.size());
  return accept_(ExplanationOf(chosen));
}

BalloonExplanation ExplanationSearch::ExplanationOf(const std::vector<size_t>& chosen) const {
  BalloonExplanation explanation;
  for (const Decided& decided : decided_)
    explanation.balloons.push_back({.type = decided.type, .own = {}, .borrowed = {}});
  for (size_t number = 0; number < cores_.size(); ++number) {
    const OwnedCore& core = cores_[number];
    const CoreOwners& owners = core.choices[chosen[number]];
    for (size_t i = 0; i < owners.size(); ++i) {
      if (owners[i] == kEmptyBalloon) explanation.empty.Add(core.threads[i]);
      if (owners[i] < 0) continue;
      const auto owner = static_cast<size_t>(owners[i]);
      auto& found = explanation.balloons[owner % seen_.size()];
      (owner < seen_.size() ? found.own : found.borrowed).Add(core.threads[i]);
    }
  }
  return explanation;
}

// Each try begins with the balloons that no type fitted in the tries before.
bool ExplanationSearch::Run() {
  for (size_t place = 0; place < seen_.size(); ++place)
    decided_[place].sees = seen_[place].all();
  if (!FindKnown() || !MakeCores() || !MakeDomains()) return false;
  order_.resize(seen_.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  for (int64_t left = kMostWork; left > 0;) {
    std::ranges::sort(order_, {}, [this](size_t place) {
      const Decided& decided = decided_[place];
      return std::tuple(-decided.failures, decided.domain.size(), place);
    });
    work_ = std::min(left, kMostWorkOfTry);
    if (Assign(0)) return true;
    if (work_ > 0) return false;  // all were tried
    left -= kMostWorkOfTry - work_;
  }
  return false;
}

}  // namespace

bool ExplainCpus(const BalloonBook& book, const std::vector<SeenBalloon>& seen,
                 const std::function<bool(const BalloonExplanation&)>& accept) {
  return ExplanationSearch(book, seen, accept).Run();
}

}  // namespace resmgr
