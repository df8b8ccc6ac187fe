// SPDX-License-Identifier: Apache-2.0
// The functions of BalloonBook that make balloons.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "pkg/topology/core_sets.h"
#include "policies/balloons/balloon_book.h"

namespace resmgr {
namespace {

int CountParts(const BalloonPart& part, int type) {
  int count = part.type == type ? 1 : 0;
  for (const BalloonPart& below : part.parts)
    count += CountParts(below, type);
  return count;
}

// Adds the type, its components and their components.
void AddTypesOf(const BalloonSetup& setup, int type, std::set<int>& types) {
  if (!types.insert(type).second) return;
  for (const int component : setup.type(type).components)
    AddTypesOf(setup, component, types);
}

// Gives the innermost components their former CPUs, as far as these are among its present ones.
// Does nothing if these are not all of its CPUs, or of other components.
void TakeFormer(BalloonPart& whole, const std::vector<CpuSet>& former) {
  std::vector<CpuSet*> leaves;
  const auto add = [&leaves](auto& self, BalloonPart& part) -> void {
    if (part.parts.empty()) leaves.push_back(&part.cpus);
    for (BalloonPart& below : part.parts)
      self(self, below);
  };
  add(add, whole);
  const CpuSet cpus = whole.All();
  int sum = 0;
  CpuSet all;
  for (const CpuSet& its : former) {
    sum += its.CountCommon(cpus);
    all |= its;
  }
  if (leaves.size() != former.size() || sum != cpus.size() || !cpus.IsSubsetOf(all)) return;
  for (size_t i = 0; i < leaves.size(); ++i)
    *leaves[i] = former[i] & cpus;
}

// A copy of the part and its components, without CPUs.
BalloonPart WithoutCpus(const BalloonPart& part) {
  BalloonPart made{.type = part.type, .cpus = {}};
  for (const BalloonPart& below : part.parts)
    made.parts.push_back(WithoutCpus(below));
  return made;
}

// Whether a balloon is that of a book before with its name. Those without containers may get other
// CPUs with each list.
bool IsSame(const Balloon& former, const Balloon& balloon) {
  return (former.members.empty() && balloon.members.empty()) ||
         former.cpus().Intersects(balloon.cpus());
}

// See BalloonBook::TakeOver.
void TakeOverFrom(const Balloon& former, Balloon& balloon) {
  balloon.serial = former.serial;
  balloon.borrowed_at = former.borrowed_at;
  if (balloon.cpus() == former.cpus()) {
    balloon.dropped = former.dropped;
    balloon.grown = former.grown;
    balloon.grown_by = former.grown_by;
  }
  for (BalloonMemberPtr& member : balloon.members) {
    const BalloonMemberPtr before = former.MemberOf(member->key);
    if (before == nullptr || before->considered.empty() || !member->considered.empty()) continue;
    const auto completed = std::make_shared<BalloonMember>(*member);
    completed->considered = before->considered;
    member = completed;
  }
}

}  // namespace

int BalloonBook::Instances(int type) const {
  int count = 0;
  for (const Balloon& balloon : balloons_)
    count += CountParts(balloon.part, type);
  return count;
}

// A new part without CPUs: with all components or, for balanceComponents, with the component of
// which there are the fewest.
BalloonPart BalloonBook::MakePart(int type) const {
  BalloonPart part{.type = type, .cpus = {}};
  const BalloonType& own = setup_->type(type);
  if (!own.balance_components) {
    for (const int component : own.components)
      part.parts.push_back(MakePart(component));
    return part;
  }
  const auto weight = [this](int component) {
    std::set<int> types;
    AddTypesOf(*setup_, component, types);
    int count = 0;
    for (const int inside : types)
      count += Instances(inside);
    return count;
  };
  const auto fewest = std::ranges::min_element(own.components, {}, weight);
  part.parts.push_back(MakePart(*fewest));
  return part;
}

size_t BalloonBook::Add(Balloon balloon) {
  balloon.serial = ++last_serial_;
  balloon.Recount();
  balloons_.Add(std::move(balloon));
  return balloons_.size() - 1;
}

StatusOr<size_t> BalloonBook::Create(int type, const std::vector<BalloonHint>& hints,
                                     const BalloonPart* parts) {
  const BalloonType& own = setup_->type(type);
  if (Count(type) >= setup_->MaxBalloons(type)) {
    return ResourceExhausted("type {} has {} balloons, and no more are allowed", own.name,
                             Count(type));
  }
  Balloon balloon{.type = type,
                  .index = NextIndex(type),
                  .part = parts == nullptr ? MakePart(type) : WithoutCpus(*parts)};
  RESMGR_RETURN_IF_ERROR(KeepRoom(balloon));
  if (!hints.empty()) {
    // A stand-in for the first container has the hints while Resize chooses the CPUs.
    balloon.members.push_back(std::make_shared<BalloonMember>(BalloonMember{.hints = hints}));
  }
  RESMGR_RETURN_IF_ERROR(Resize(balloon, setup_->MinCpus(type, balloon.index)));
  balloon.members.clear();
  return Add(std::move(balloon));
}

// Chooses the room of a balloon of a type with growWithin: its present CPUs, and more in the same
// part of the machine.
Status BalloonBook::KeepRoom(Balloon& balloon) const {
  const BalloonType& own = setup_->type(balloon.type);
  if (own.grow_within == BalloonLevel::kNone) return OkStatus();
  const CpuSet present = balloon.cpus();
  const int more = static_cast<int>(own.max_cpus) - present.size();
  const CpuSet free = FreeForNew(balloon.type, balloon.index) - present;
  const CpuSet* best = nullptr;
  const std::vector<CpuSet> parts =
      PartsAt(setup_->machine(), own.grow_within, setup_->available());
  for (const CpuSet& part : parts) {
    const int here = part.CountCommon(free);
    if (here < more || !present.IsSubsetOf(part)) continue;
    const int difference = best == nullptr ? 0 : here - best->CountCommon(free);
    if (best == nullptr || (own.balance ? difference > 0 : difference < 0)) best = &part;
  }
  if (best == nullptr) {
    return ResourceExhausted("type {}: no {} has room for {} CPUs", own.name,
                             ToString(own.grow_within), own.max_cpus);
  }
  RESMGR_ASSIGN_OR_RETURN(const CpuSet added, setup_->chooser().Grow(setup_->rules(balloon.type),
                                                                     present, *best & free, more));
  balloon.room = present | added;
  return OkStatus();
}

Status BalloonBook::CreateAlways() {
  const auto create = [this](int type) { return Create(type).status(); };
  Status first_error;
  for (const Status& made : {CreateFixed(), Complete(), CreateAlwaysBy(create)})
    if (first_error.ok()) first_error = made;
  return first_error;
}

// If there is no room for a type's balloons, those of the other types are made nevertheless.
Status BalloonBook::CreateAlwaysBy(const std::function<Status(int type)>& create) {
  Status first_error;
  // The order is by priority, then by the list.
  for (int round = 0; round < 4; ++round) {
    for (int type = 0; type < setup_->types(); ++type) {
      const BalloonType& own = setup_->type(type);
      if (own.priority != round || own.own_cpus) continue;
      while (Count(type) < setup_->MinBalloons(type)) {
        const Status made = create(type);
        if (made.ok()) continue;
        if (first_error.ok()) first_error = made;
        break;
      }
    }
  }
  return first_error;
}

StatusOr<size_t> BalloonBook::CreateAlone(const BalloonMemberPtr& member, const CpuSet& place) {
  const int type = member->type;
  const int index = NextIndex(type);
  const int count = setup_->CpusFor(type, member->demand);
  const CpuSet free = FreeForNew(type, index) & place;
  const CpuSet unlent = free - lent_;
  const Machine& machine = setup_->machine();
  const CpuSet cores = WholeCores(machine, unlent);
  for (const CpuSet* const from : {&cores, &unlent, &free}) {
    if (from->size() < count) continue;
    RESMGR_ASSIGN_OR_RETURN(const CpuSet cpus,
                            setup_->chooser().Grow(setup_->rules(type), {}, *from, count));
    if (from == &cores && machine.WithSiblings(cpus) != cpus) continue;
    const std::optional<size_t> made = Adopt(type, index, cpus);
    Put(*made, member);
    return *made;
  }
  return ResourceExhausted("{} CPUs are needed, and {} idle", count, free.size());
}

std::optional<size_t> BalloonBook::Adopt(int type, int index, const CpuSet& cpus,
                                         const BalloonReason& saved) {
  const CpuSet own = cpus & FreeForNew(type, index);
  for (size_t place = 0; place < balloons_.size(); ++place) {
    if (balloons_[place].type != type || balloons_[place].index != index) continue;
    // BalloonAdoption has already made this balloon with the CPUs that its type lists. The other
    // CPUs that it had are added.
    Balloon& there = balloons_.Change(place);
    there.part.cpus |= own;
    there.Recount();
    idle_ -= own;
    return place;
  }
  if (own.empty()) return std::nullopt;
  Balloon balloon{.type = type, .index = index, .part = MakePart(type)};
  idle_ -= own;
  std::span<const std::string> chosen = saved.chosen;
  SplitAdopted(balloon.part, own, chosen);
  if (saved.parts.size() > 1) TakeFormer(balloon.part, saved.parts);
  return Add(std::move(balloon));
}

void BalloonBook::AdoptRoom(size_t place, const CpuSet& room) {
  const Balloon& present = balloons_[place];
  const BalloonType& type = setup_->type(present.type);
  const CpuSet free = FreeForNew(present.type, present.index);
  const std::vector<CpuSet> parts =
      PartsAt(setup_->machine(), type.grow_within, setup_->available());
  const bool fits =
      present.room.empty() && room.size() == type.max_cpus && present.cpus().IsSubsetOf(room) &&
      (room - present.cpus()).IsSubsetOf(free) &&
      std::ranges::any_of(parts, [&](const CpuSet& part) { return room.IsSubsetOf(part); });
  if (fits) balloons_.Change(place).room = room;
}

void BalloonBook::TakeOver(const BalloonBook& former) {
  std::map<std::pair<int, int>, const Balloon*> by_name;
  for (const Balloon& balloon : former.balloons_)
    by_name.emplace(std::pair(balloon.type, balloon.index), &balloon);
  last_serial_ += former.last_serial_;
  for (size_t place = 0; place < balloons_.size(); ++place) {
    Balloon& balloon = balloons_.Change(place);
    const auto found = by_name.find({balloon.type, balloon.index});
    if (found != by_name.end() && IsSame(*found->second, balloon)) {
      TakeOverFrom(*found->second, balloon);
    } else {
      balloon.serial += former.last_serial_;
    }
  }
  balloons_.SortBy(&Balloon::serial);
}

bool BalloonBook::Retype(size_t place, int type, std::vector<BalloonMemberPtr> members) {
  const Balloon& present = balloons_[place];
  const int index = NextIndex(type);
  const bool fits = present.size >= setup_->MinCpus(type, index) &&
                    present.size <= setup_->MaxCpus(type, index) &&
                    Count(type) < setup_->MaxBalloons(type) &&
                    Count(present.type) > setup_->MinBalloons(present.type);
  if (!fits || !present.part.parts.empty() || !present.room.empty()) return false;
  Balloon& balloon = balloons_.Change(place);
  balloon.type = balloon.part.type = type;
  balloon.index = index;
  balloon.members = std::move(members);
  balloon.Recount();
  return true;
}

Status BalloonBook::CreateFixed() {
  Status first_error;
  for (int type = 0; type < setup_->types(); ++type) {
    while (setup_->type(type).own_cpus && Count(type) < setup_->MinBalloons(type)) {
      Balloon balloon{.type = type, .index = NextIndex(type), .part = MakePart(type)};
      const CpuSet fixed = setup_->Fixed(type, balloon.index);
      if (!fixed.IsSubsetOf(idle_)) {
        first_error = ResourceExhausted("CPUs {} of type {} are in use", (fixed - idle_).ToString(),
                                        setup_->type(type).name);
        break;
      }
      balloon.part.cpus = fixed;
      idle_ -= fixed;
      Add(std::move(balloon));
    }
  }
  return first_error;
}

Status BalloonBook::Complete() {
  Status first_error;
  const auto note = [&first_error](const Status& status) {
    if (first_error.ok()) first_error = status;
  };
  for (size_t place = 0; place < balloons_.size(); ++place) {
    const Balloon& present = balloons_[place];
    const BalloonType& type = setup_->type(present.type);
    const bool wants_room = type.grow_within != BalloonLevel::kNone && present.room.empty();
    const int least = type.own_cpus ? setup_->MinCpus(present.type, present.index) : 0;
    if (!wants_room && present.size >= least) continue;
    Balloon& balloon = balloons_.Change(place);
    if (wants_room) note(KeepRoom(balloon));
    if (balloon.size < least) note(Resize(balloon, least));
  }
  return first_error;
}

// The component that a part of this type has. If it is not known, prefers the largest one whose
// minimum size fits into these CPUs, then the one whose hints want most of them.
int BalloonBook::ChosenComponent(const BalloonType& type, const CpuSet& cpus,
                                 std::span<const std::string>& chosen) const {
  if (!chosen.empty()) {
    const auto known = std::ranges::find(type.components, setup_->options().FindType(chosen[0]));
    // The names behind that of an unknown component are about its parts.
    chosen = known == type.components.end() ? std::span<const std::string>() : chosen.subspan(1);
    if (known != type.components.end()) return *known;
  }
  const auto fit = [&](int component) {
    const int least = setup_->WholeSize(component, setup_->ShareOf(component, 1, 1));
    const bool too_large = least > cpus.size();
    return std::tuple(too_large, -least, -WantedBy(component).CountCommon(cpus));
  };
  return *std::ranges::min_element(type.components, {}, fit);
}

// Each component gets its share, of those CPUs that its hints want.
void BalloonBook::SplitAdopted(BalloonPart& part, const CpuSet& cpus,
                               std::span<const std::string>& chosen) const {
  if (part.parts.empty()) {
    part.cpus = cpus;
    return;
  }
  const BalloonType& own = setup_->type(part.type);
  if (own.balance_components) {
    BalloonPart component{.type = ChosenComponent(own, cpus, chosen), .cpus = {}};
    for (const int inner : setup_->type(component.type).components)
      component.parts.push_back(MakePart(inner));
    part.parts = {std::move(component)};
  }
  // The size of the balloon by which its components have so many CPUs together.
  int size = 1;
  while (size < cpus.size() && SizeAt(part, size) < cpus.size())
    ++size;
  CpuSet left = cpus;
  const auto count = static_cast<int>(part.parts.size());
  for (int i = 0; i < count; ++i) {
    BalloonPart& below = part.parts[static_cast<size_t>(i)];
    const int whole = SizeAt(below, setup_->ShareOf(below.type, size, part.parts.size()));
    // The others have one CPU each at least.
    const int share = std::min(whole, std::max(left.size() - (count - i - 1), 1));
    CpuChoiceRules rules = setup_->rules(below.type);
    if (!below.parts.empty()) rules.hints.insert(rules.hints.begin(), {"", WantedBy(below.type)});
    const CpuSet its =
        i + 1 == count ? left : setup_->chooser().Grow(rules, {}, left, share).value_or(CpuSet());
    SplitAdopted(below, its, chosen);
    left -= its;
  }
}

// The CPUs that the first hints of a type, or of its innermost components, want.
CpuSet BalloonBook::WantedBy(int type) const {
  const BalloonType& own = setup_->type(type);
  const std::vector<BalloonHint>& hints = setup_->rules(type).hints;
  if (!own.composite()) return hints.empty() ? CpuSet() : hints.front().cpus;
  CpuSet wanted;
  for (const int component : own.components)
    wanted |= WantedBy(component);
  return wanted;
}

}  // namespace resmgr
