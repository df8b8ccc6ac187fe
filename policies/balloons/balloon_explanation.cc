// SPDX-License-Identifier: Apache-2.0
// The owners of a core's threads determine which threads of the core a container sees, together
// with the parts of the machine in which its balloon shares idle CPUs. These parts are those in
// which the container sees any CPU. So there is a short list of possible owners for each core. Each
// type that is tried for a balloon excludes some of them, and the sizes of balloons decide among
// the rest.
#include "policies/balloons/balloon_explanation.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "policies/balloons/core_owners.h"

namespace resmgr {
namespace {

// Limits of the work of the search: in all, and for each try.
constexpr int64_t kMostWork = 4'000'000;
constexpr int64_t kMostWorkOfTry = kMostWork / 40;
constexpr size_t kWorkOfOffer = 20;    // work for each balloon and core of an offer,
constexpr size_t kWorkOfMember = 250;  // and for each container
constexpr size_t kWorkOfLook = 4;      // work to examine a choice
constexpr size_t kMostChoices = 4096;  // limit of choices of a core's owners

// The minimum or maximum number of CPUs of a balloon that is to have `cpus`: components may differ
// in size.
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
      : book_(book),
        setup_(book.setup()),
        seen_(seen),
        accept_(accept),
        decided_(seen.size()),
        work_(kMostWork) {}

  bool Run();

 private:
  // The knowledge about one of the seen balloons.
  struct Decided {
    CpuSet sees;
    int known_type = -1;      // its type if the book has the balloon; else -1
    std::vector<int> domain;  // possible types, the likeliest first
    int type = -1;            // -1: not decided yet
    CpuSet reach;             // where it shares idle CPUs
    std::vector<size_t> cores;
    int64_t failures = 0;
  };
  // The choices of cores before a decision, with the number of each core.
  using Former = std::vector<std::pair<size_t, std::vector<uint16_t>>>;

  bool FindKnown();
  bool MakeCores();
  std::vector<int> OwnersOf(int cpu) const;
  bool Combine(OwnedCore& core, const std::vector<std::vector<int>>& owners);
  bool MakeDomains();
  bool Shows(size_t place, const OwnedCore& core, const CoreOwners& owners) const;
  bool IsExcluded(size_t place, const OwnedCore& core, uint16_t choice) const;
  bool Decide(size_t place, int type, Former& former);
  void Undo(size_t place, Former& former);
  bool IsPossible(size_t place);
  bool DecidedArePossible(size_t place, const Former& changed);
  ExplainedSize SizeOf(size_t place, int type) const;
  bool MayBeExact(size_t place, int type) const;
  bool MayBeOneMore(size_t place, int type) const;
  bool Assign(size_t depth);
  bool Offer();
  OwnerWishes WantedBy(size_t place) const;
  BalloonExplanation ExplanationOf(const OwnerChoice& choice) const;
  int CpusOfEmptyBalloons() const;
  bool TryIsOver() const { return work_.over() || work_.left() <= end_of_try_; }
  int lent(size_t place) const { return static_cast<int>(place + seen_.size()); }

  const BalloonBook& book_;
  const BalloonSetup& setup_;
  const std::vector<SeenBalloon>& seen_;
  const Accept& accept_;
  std::vector<Decided> decided_;
  std::vector<OwnedCore> cores_;
  std::vector<std::vector<size_t>> places_;  // by core: the balloons that see any of its threads
  std::vector<size_t> order_;
  std::map<int, int> known_;  // the owners of the CPUs that balloons of the book have
  size_t members_ = 0;        // containers of all balloons
  SearchWork work_;
  int64_t end_of_try_ = 0;  // the try is over when only this much work is left
};

// Finds the book's balloons among the seen ones, and notes the owners of all CPUs that the book's
// balloons have.
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
  // An isolated CPU, or one that a balloon has, is seen in one balloon only. So a CPU that several
  // see is idle, and nothing explains it if it is isolated.
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

// Lists the combinations of owners by which the containers see what they do, as far as this depends
// on no type.
bool ExplanationSearch::Combine(OwnedCore& core, const std::vector<std::vector<int>>& owners) {
  std::vector<size_t> places;
  for (size_t place = 0; place < seen_.size(); ++place)
    if (decided_[place].sees.Intersects(core.cpus)) places.push_back(place);
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
    work_.Do(kWorkOfLook * (1 + places.size()));
    const bool shown =
        std::ranges::all_of(places, [&](size_t place) { return Shows(place, core, choice); });
    if (!shown) continue;
    core.left.push_back(static_cast<uint16_t>(core.choices.size()));
    core.choices.push_back(std::move(choice));
  }
  places_.push_back(std::move(places));
  return !core.choices.empty();
}

bool ExplanationSearch::MakeCores() {
  for (const CpuSet& cpus : setup_.machine().cores()) {
    OwnedCore core;
    core.cpus = cpus & setup_.available();
    std::vector<std::vector<int>> owners;
    for (const int cpu : core.cpus) {
      core.threads.push_back(cpu);
      owners.push_back(OwnersOf(cpu));
    }
    if (core.cpus.empty()) continue;
    work_.Do(seen_.size() * core.threads.size());
    if (!Combine(core, owners) || work_.over()) return false;
    for (const size_t place : places_.back())
      decided_[place].cores.push_back(cores_.size());
    cores_.push_back(std::move(core));
  }
  return true;
}

// Whether, with these owners, the containers of a balloon see exactly the threads of the core that
// they do see.
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

bool ExplanationSearch::IsExcluded(size_t place, const OwnedCore& core, uint16_t choice) const {
  const CoreOwners& owners = core.choices[choice];
  const bool borrows = std::ranges::find(owners, lent(place)) != owners.end();
  if (borrows && !setup_.type(decided_[place].type).follows_use()) return true;
  return !Shows(place, core, owners);
}

// Removes the choices that this type of the balloon excludes. False: none is left for a core.
bool ExplanationSearch::Decide(size_t place, int type, Former& former) {
  Decided& decided = decided_[place];
  decided.type = type;
  decided.reach = AllOf(setup_.sharing(type), decided.sees) - setup_.machine().isolated();
  const CpuSet concerned = decided.reach | setup_.machine().WithSiblings(decided.sees);
  work_.Do(cores_.size() + setup_.sharing(type).size());
  for (size_t number = 0; number < cores_.size(); ++number) {
    OwnedCore& core = cores_[number];
    if (!core.cpus.Intersects(concerned)) continue;
    const auto excluded = [&](uint16_t choice) { return IsExcluded(place, core, choice); };
    work_.Do(kWorkOfLook * core.left.size());
    if (std::ranges::none_of(core.left, excluded)) continue;
    former.emplace_back(number, core.left);
    std::erase_if(core.left, excluded);
    if (core.left.empty()) return false;
  }
  return true;
}

void ExplanationSearch::Undo(size_t place, Former& former) {
  for (auto& [number, choices] : former)
    cores_[number].left = std::move(choices);
  former.clear();
  decided_[place].type = -1;
}

ExplainedSize ExplanationSearch::SizeOf(size_t place, int type) const {
  const int needed = seen_[place].needed[static_cast<size_t>(type)];
  const bool known = decided_[place].known_type >= 0;
  // Components keep their minimum sizes until the containers need more CPUs in total.
  const int least = known ? 1 : WholeSizeOf(setup_, type, setup_.MinCpus(type, 0), false);
  return {.least = std::max(least, 1),
          .most = WholeSizeOf(setup_, type, needed, true),
          .best = setup_.WholeSize(type, needed)};
}

// Whether the remaining choices allow the balloon a size of its type, and a CPU in each part in
// which it shares idle CPUs.
bool ExplanationSearch::IsPossible(size_t place) {
  const Decided& decided = decided_[place];
  const ExplainedSize range = SizeOf(place, decided.type);
  int least = 0;
  int most = 0;
  CpuSet possible;
  for (const size_t number : decided.cores) {
    const OwnedCore& core = cores_[number];
    int fewest = std::numeric_limits<int>::max();
    int greatest = 0;
    for (const uint16_t choice : core.left) {
      const CoreOwners& owners = core.choices[choice];
      int count = 0;
      for (size_t i = 0; i < owners.size(); ++i) {
        if (owners[i] != static_cast<int>(place)) continue;
        possible.Add(core.threads[i]);
        ++count;
      }
      fewest = std::min(fewest, count);
      greatest = std::max(greatest, count);
    }
    work_.Do(1 + core.left.size());
    least += fewest;
    most += greatest;
  }
  if (most < range.least || least > range.most) return false;
  const std::vector<CpuSet>& parts = setup_.sharing(decided.type);
  work_.Do(parts.size());
  return std::ranges::all_of(parts, [&](const CpuSet& part) {
    return !part.Intersects(decided.sees) || part.Intersects(possible);
  });
}

// Whether the balloon that was decided last is possible, and also the balloons that see cores whose
// choices were reduced. All others were possible before and have not changed.
bool ExplanationSearch::DecidedArePossible(size_t place, const Former& changed) {
  std::vector<bool> looked(seen_.size());
  looked[place] = true;
  if (!IsPossible(place)) return false;
  for (const auto& [number, choices] : changed) {
    work_.Do(places_[number].size());
    for (const size_t other : places_[number]) {
      if (looked[other]) continue;
      looked[other] = true;
      if (decided_[other].type >= 0 && !IsPossible(other)) return false;
    }
  }
  return true;
}

// Whether the balloon may have exactly as many CPUs as its containers need in a balloon of this
// type.
bool ExplanationSearch::MayBeExact(size_t place, int type) const {
  const BalloonType& own = setup_.type(type);
  const int size = decided_[place].sees.size();
  const int best = SizeOf(place, type).best;
  if (own.composite() || !seen_[place].threads.empty()) return true;
  return own.follows_use() || !setup_.sharing(type).empty() ? best <= size : best == size;
}

// Finds the types that each balloon may have by itself.
bool ExplanationSearch::MakeDomains() {
  using Rank = std::tuple<bool, bool, bool, bool, int, int>;
  for (size_t place = 0; place < seen_.size(); ++place) {
    Decided& decided = decided_[place];
    std::vector<Rank> ranked;
    for (int type = 0; type < setup_.types(); ++type) {
      if (work_.over()) return false;
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
  return book_.Count(type) + others < setup_.MostKept(type);
}

// Decides the types of the balloons from `depth` on. False: there are no such types, or the try is
// over.
bool ExplanationSearch::Assign(size_t depth) {
  if (depth == order_.size()) return Offer();
  const size_t place = order_[depth];
  for (const int type : decided_[place].domain) {
    if (TryIsOver()) return false;
    work_.Do(seen_.size());
    if (!MayBeOneMore(place, type)) continue;
    Former former;
    if (Decide(place, type, former) && DecidedArePossible(place, former) && Assign(depth + 1))
      return true;
    Undo(place, former);
  }
  ++decided_[place].failures;
  return false;
}

// The number of CPUs of balloons that always exist and have no containers.
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

OwnerWishes ExplanationSearch::WantedBy(size_t place) const {
  const Decided& decided = decided_[place];
  OwnerWishes wanted{.size = SizeOf(place, decided.type), .parts = {}};
  for (const CpuSet& part : setup_.sharing(decided.type))
    if (part.Intersects(decided.sees)) wanted.parts.push_back(part);
  return wanted;
}

bool ExplanationSearch::Offer() {
  std::vector<OwnerWishes> wanted;
  for (size_t place = 0; place < seen_.size(); ++place) {
    wanted.push_back(WantedBy(place));
    work_.Do(1 + setup_.sharing(decided_[place].type).size());
  }
  OwnerChoice choice(cores_, std::move(wanted), CpusOfEmptyBalloons(), work_);
  if (!choice.Find()) return false;
  work_.Do(kWorkOfOffer * seen_.size() * cores_.size() + kWorkOfMember * members_);
  return accept_(ExplanationOf(choice));
}

BalloonExplanation ExplanationSearch::ExplanationOf(const OwnerChoice& choice) const {
  BalloonExplanation explanation;
  for (const Decided& decided : decided_)
    explanation.balloons.push_back({.type = decided.type, .own = {}, .borrowed = {}});
  for (size_t number = 0; number < cores_.size(); ++number) {
    const OwnedCore& core = cores_[number];
    const CoreOwners& owners = choice.OwnersOf(number);
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

// Each try begins with the balloons for which, in the tries before, most often no type fitted.
bool ExplanationSearch::Run() {
  for (size_t place = 0; place < seen_.size(); ++place) {
    decided_[place].sees = seen_[place].all();
    for (const auto& [type, count] : seen_[place].types)
      members_ += static_cast<size_t>(count);
  }
  if (!FindKnown() || !MakeCores() || !MakeDomains()) return false;
  order_.resize(seen_.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  while (!work_.over()) {
    std::ranges::sort(order_, {}, [this](size_t place) {
      const Decided& decided = decided_[place];
      return std::tuple(-decided.failures, decided.domain.size(), place);
    });
    end_of_try_ = work_.left() - kMostWorkOfTry;
    if (Assign(0)) return true;
    if (!TryIsOver()) return false;  // all combinations were tried
  }
  return false;
}

}  // namespace

bool ExplainCpus(const BalloonBook& book, const std::vector<SeenBalloon>& seen,
                 const std::function<bool(const BalloonExplanation&)>& accept) {
  return ExplanationSearch(book, seen, accept).Run();
}

}  // namespace resmgr
