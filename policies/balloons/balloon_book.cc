// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloon_book.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace resmgr {
namespace {

using LeafVisitor = std::function<void(const BalloonPart&)>;

void ForEachLeaf(const BalloonPart& part, const LeafVisitor& visit) {
  if (part.parts.empty()) visit(part);
  for (const BalloonPart& below : part.parts)
    ForEachLeaf(below, visit);
}

void TakeBack(BalloonPart& part, const CpuSet& cpus) {
  part.cpus -= cpus;
  for (BalloonPart& below : part.parts)
    TakeBack(below, cpus);
}

int CountParts(const BalloonPart& part, int type) {
  int count = part.type == type ? 1 : 0;
  for (const BalloonPart& below : part.parts)
    count += CountParts(below, type);
  return count;
}

// Whether a balloon with load `own` is to be away from one with load `other`.
bool Avoids(const BalloonLoadClass& own, const BalloonLoadClass& other) {
  const auto names = [](const BalloonLoadClass& load, const std::string& name) {
    return std::ranges::find(load.avoids, name) != load.avoids.end();
  };
  return own.name == other.name || names(own, other.name) || names(other, own.name);
}

}  // namespace

CpuSet BalloonPart::All() const {
  CpuSet all = cpus;
  for (const BalloonPart& part : parts)
    all |= part.All();
  return all;
}

int64_t Balloon::Request() const {
  int64_t sum = 0;
  for (const BalloonMemberPtr& member : members)
    sum += member->request;
  return sum;
}

int64_t Balloon::Demand() const {
  int64_t sum = 0;
  for (const BalloonMemberPtr& member : members)
    sum += member->demand;
  return sum;
}

int Balloon::Pods(const PodSandboxId& with) const {
  std::set<PodSandboxId> pods = {with};
  for (const BalloonMemberPtr& member : members)
    pods.insert(member->pod);
  return static_cast<int>(pods.size());
}

bool Balloon::Holds(const PodSandboxId& pod) const {
  return std::ranges::any_of(members,
                             [&](const BalloonMemberPtr& member) { return member->pod == pod; });
}

bool Balloon::PodsFit(const Balloon& other, int64_t most) const {
  if (most == 0) return true;
  std::set<PodSandboxId> pods;
  for (const Balloon* const balloon : {this, &other}) {
    for (const BalloonMemberPtr& member : balloon->members)
      pods.insert(member->pod);
  }
  return static_cast<int64_t>(pods.size()) <= most;
}

BalloonBook::BalloonBook(std::shared_ptr<const BalloonSetup> setup)
    : setup_(std::move(setup)), idle_(setup_->available()) {}

std::string BalloonBook::NameOf(const Balloon& balloon) const {
  return NameOf(balloon.type, balloon.index);
}

std::string BalloonBook::NameOf(int type, int index) const {
  return fmt::format("{}[{}]", setup_->type(type).name, index);
}

std::optional<size_t> BalloonBook::Find(ContainerKey key) const {
  for (size_t place = 0; place < balloons_.size(); ++place) {
    for (const BalloonMemberPtr& member : balloons_[place].members) {
      if (member->key == key) return place;
    }
  }
  return std::nullopt;
}

BalloonMemberPtr BalloonBook::MemberOf(ContainerKey key) const {
  for (const Balloon& balloon : balloons_) {
    for (const BalloonMemberPtr& member : balloon.members) {
      if (member->key == key) return member;
    }
  }
  return nullptr;
}

int BalloonBook::Count(int type) const {
  return static_cast<int>(std::ranges::count(balloons_, type, &Balloon::type));
}

int BalloonBook::Instances(int type) const {
  int count = 0;
  for (const Balloon& balloon : balloons_)
    count += CountParts(balloon.part, type);
  return count;
}

int BalloonBook::NextIndex(int type) const {
  std::set<int> used;
  for (const Balloon& balloon : balloons_) {
    if (balloon.type == type) used.insert(balloon.index);
  }
  int index = 0;
  while (used.contains(index))
    ++index;
  return index;
}

// With all components, or with the one of which there are the fewest.
BalloonPart BalloonBook::MakePart(int type) const {
  BalloonPart part{.type = type, .cpus = {}};
  const BalloonType& own = setup_->type(type);
  if (!own.balance_components) {
    for (const int component : own.components)
      part.parts.push_back(MakePart(component));
    return part;
  }
  const auto weight = [this](int component) {
    int count = Instances(component);
    for (const int inner : setup_->type(component).components)
      count += Instances(inner);
    return count;
  };
  const auto fewest = std::ranges::min_element(own.components, {}, weight);
  part.parts.push_back(MakePart(*fewest));
  return part;
}

CpuSet BalloonBook::FreeForNew(int type, int index) const {
  CpuSet free = idle_ & setup_->Bounds(type, index);
  if (!setup_->keeps_rooms()) return free;
  for (const Balloon& balloon : balloons_)
    free -= balloon.room;
  return free;
}

CpuSet BalloonBook::FreeFor(const Balloon& balloon) const {
  if (!balloon.room.empty()) return idle_ & balloon.room;
  return FreeForNew(balloon.type, balloon.index);
}

StatusOr<size_t> BalloonBook::Create(int type, const std::vector<BalloonHint>& hints) {
  const BalloonType& own = setup_->type(type);
  if (Count(type) >= setup_->MaxBalloons(type)) {
    return ResourceExhausted("type {} has {} balloons, and no more are allowed", own.name,
                             Count(type));
  }
  Balloon balloon{.type = type, .index = NextIndex(type), .part = MakePart(type)};
  const CpuSet fixed = setup_->Fixed(type, balloon.index);
  if (!fixed.IsSubsetOf(idle_)) {
    return ResourceExhausted("CPUs {} of type {} are in use", (fixed - idle_).ToString(), own.name);
  }
  balloon.part.cpus = fixed;
  RESMGR_RETURN_IF_ERROR(KeepRoom(balloon));
  if (!hints.empty()) {
    // Its size comes later; the hints are those of its first container.
    balloon.members.push_back(std::make_shared<BalloonMember>(BalloonMember{.hints = hints}));
  }
  const CpuSet before = idle_;
  idle_ -= fixed;
  const Status sized = Resize(balloon, setup_->MinCpus(type, balloon.index));
  if (!sized.ok()) {
    idle_ = before;
    return sized;
  }
  balloon.members.clear();
  balloon.serial = ++last_serial_;
  balloons_.push_back(std::move(balloon));
  return balloons_.size() - 1;
}

// Chooses the CPUs in which a balloon of a type with growWithin grows: those that it has, and more
// in the same part of the machine.
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

Status BalloonBook::CreateAlways(const std::vector<BalloonHint>& hints) {
  // Those with CPUs of their own first, then by priority, then in the order of the list.
  for (int round = -1; round < 4; ++round) {
    for (int type = 0; type < setup_->types(); ++type) {
      const BalloonType& own = setup_->type(type);
      if (round < 0 ? !own.own_cpus : own.priority != round) continue;
      while (Count(type) < setup_->MinBalloons(type))
        RESMGR_RETURN_IF_ERROR(Create(type, hints).status());
    }
  }
  return OkStatus();
}

std::optional<size_t> BalloonBook::Adopt(int type, int index, const CpuSet& cpus) {
  const CpuSet own = cpus & FreeForNew(type, index);
  for (size_t place = 0; place < balloons_.size(); ++place) {
    Balloon& there = balloons_[place];
    if (there.type != type || there.index != index) continue;
    // One with CPUs of its type, which may have had more.
    there.part.cpus |= own;
    idle_ -= own;
    return place;
  }
  if (own.empty()) return std::nullopt;
  Balloon balloon{.type = type, .index = index, .part = MakePart(type)};
  idle_ -= own;
  SplitAdopted(balloon.part, own);
  balloon.serial = ++last_serial_;
  balloons_.push_back(std::move(balloon));
  return balloons_.size() - 1;
}

void BalloonBook::KeepRooms() {
  for (Balloon& balloon : balloons_) {
    if (balloon.room.empty()) (void)KeepRoom(balloon);
  }
}

// The CPUs of the components are not remembered: each component gets those that its hints want.
void BalloonBook::SplitAdopted(BalloonPart& part, const CpuSet& cpus) const {
  if (part.parts.empty()) {
    part.cpus = cpus;
    return;
  }
  const BalloonType& own = setup_->type(part.type);
  if (own.balance_components) {
    const auto fit = [&](int component) { return -WantedBy(component).CountCommon(cpus); };
    BalloonPart component{.type = *std::ranges::min_element(own.components, {}, fit), .cpus = {}};
    for (const int inner : setup_->type(component.type).components)
      component.parts.push_back(MakePart(inner));
    part.parts = {std::move(component)};
  }
  CpuSet left = cpus;
  const auto count = static_cast<int>(part.parts.size());
  for (int i = 0; i < count; ++i) {
    BalloonPart& below = part.parts[static_cast<size_t>(i)];
    const int share = (left.size() + count - i - 1) / (count - i);
    CpuChoiceRules rules = setup_->rules(below.type);
    if (!below.parts.empty()) rules.hints.insert(rules.hints.begin(), {"", WantedBy(below.type)});
    const CpuSet its =
        i + 1 == count ? left : setup_->chooser().Grow(rules, {}, left, share).value_or(CpuSet());
    SplitAdopted(below, its);
    left -= its;
  }
}

// What the first hints of the leaves of a type want.
CpuSet BalloonBook::WantedBy(int type) const {
  const BalloonType& own = setup_->type(type);
  const std::vector<BalloonHint>& hints = setup_->rules(type).hints;
  if (!own.composite()) return hints.empty() ? CpuSet() : hints.front().cpus;
  CpuSet wanted;
  for (const int component : own.components)
    wanted |= WantedBy(component);
  return wanted;
}

bool BalloonBook::PodFits(const Balloon& balloon, const PodSandboxId& pod) const {
  const int64_t most = setup_->type(balloon.type).max_pods;
  return most == 0 || balloon.Pods(pod) <= most;
}

int BalloonBook::Needed(const Balloon& balloon, int64_t more) const {
  return setup_->CpusFor(balloon.type, balloon.Demand() + more);
}

int BalloonBook::MostNow(const Balloon& balloon) const {
  const int size = balloon.cpus().size();
  const int limit = setup_->MaxCpus(balloon.type, balloon.index);
  return std::max(size, std::min(limit, size + FreeFor(balloon).size()));
}

int BalloonBook::Target(const Balloon& balloon) const {
  const int least = setup_->MinCpus(balloon.type, balloon.index);
  const int most = setup_->MaxCpus(balloon.type, balloon.index);
  const int needed = balloon.members.empty() ? least : Needed(balloon, 0);
  return std::max(std::min(needed, std::max(most, 1)), least);
}

Status BalloonBook::Resize(Balloon& balloon, int size) {
  BalloonPart before = balloon.part;
  const CpuSet idle = idle_;
  std::vector<std::string> dropped;
  Status status = ResizePart(balloon, balloon.part, size, dropped);
  if (!status.ok()) {
    balloon.part = std::move(before);
    idle_ = idle;
    return status;
  }
  balloon.dropped = std::move(dropped);
  balloon.grown = CpuSet();
  return OkStatus();
}

Status BalloonBook::ResizePart(const Balloon& balloon, BalloonPart& part, int size,
                               std::vector<std::string>& dropped) {
  if (!part.parts.empty()) {
    const auto count = static_cast<int>(part.parts.size());
    for (BalloonPart& below : part.parts)
      RESMGR_RETURN_IF_ERROR(ResizePart(balloon, below, (size + count - 1) / count, dropped));
    return OkStatus();
  }
  const int more = size - part.cpus.size();
  if (more == 0) return OkStatus();
  CpuChoiceRules changed;
  const CpuChoiceRules& rules = RulesFor(balloon, part, changed);
  if (more < 0) {
    const CpuSet back = setup_->chooser().Shrink(rules, part.cpus, idle_, -more);
    part.cpus -= back;
    idle_ |= back;
    return OkStatus();
  }
  RESMGR_ASSIGN_OR_RETURN(
      const CpuSet cpus,
      setup_->chooser().Grow(rules, part.cpus, FreeFor(balloon), more, &dropped));
  part.cpus |= cpus;
  idle_ -= cpus;
  return OkStatus();
}

// Those of the type, which are not copied, or `changed`, with what containers and loads add.
const CpuChoiceRules& BalloonBook::RulesFor(const Balloon& balloon, const BalloonPart& part,
                                            CpuChoiceRules& changed) const {
  const CpuChoiceRules& own = setup_->rules(part.type);
  const bool hints = std::ranges::any_of(
      balloon.members, [](const BalloonMemberPtr& member) { return !member->hints.empty(); });
  if (!hints && setup_->type(part.type).loads.empty()) return own;
  changed = own;
  for (const BalloonMemberPtr& member : balloon.members)
    changed.hints.insert(changed.hints.begin(), member->hints.begin(), member->hints.end());
  changed.loaded = LoadedFor(part);
  return changed;
}

// The CPUs near the loads of others that a load of this type is to be away from.
CpuSet BalloonBook::LoadedFor(const BalloonPart& part) const {
  CpuSet loaded;
  const BalloonsOptions& options = setup_->options();
  for (const std::string& own_name : setup_->type(part.type).loads) {
    const BalloonLoadClass& own = *options.FindLoad(own_name);
    for (const Balloon& balloon : balloons_) {
      ForEachLeaf(balloon.part, [&](const BalloonPart& leaf) {
        // A part has its own CPUs alone.
        if (leaf.cpus.empty() || leaf.cpus.Intersects(part.cpus)) return;
        for (const std::string& name : setup_->type(leaf.type).loads) {
          const BalloonLoadClass& load = *options.FindLoad(name);
          if (!Avoids(own, load)) continue;
          const auto parts = PartsAt(setup_->machine(), load.level, setup_->machine().online());
          loaded |= AllOf(parts, leaf.cpus);
        }
      });
    }
  }
  return loaded;
}

Status BalloonBook::Join(size_t place, const BalloonMemberPtr& member) {
  Balloon& balloon = balloons_[place];
  const int needed = Needed(balloon, member->demand);
  const int most = setup_->MaxCpus(balloon.type, balloon.index);
  if (needed > most) {
    return ResourceExhausted("{} needs {} CPUs, its limit is {}", NameOf(balloon), needed, most);
  }
  if (!PodFits(balloon, member->pod)) {
    return ResourceExhausted("{} has as many pods as it may", NameOf(balloon));
  }
  balloon.members.push_back(member);
  const int target = Target(balloon);
  if (target <= balloon.cpus().size()) return OkStatus();
  const CpuSet before = balloon.cpus();
  Status status = Resize(balloon, target);
  if (!status.ok()) {
    balloon.members.pop_back();
    return status;
  }
  balloon.grown = balloon.cpus() - before;
  balloon.grown_by = member->key;
  return OkStatus();
}

void BalloonBook::Squeeze(size_t place, const BalloonMemberPtr& member) {
  Put(place, member);
  GrowShort();
}

void BalloonBook::Put(size_t place, const BalloonMemberPtr& member) {
  balloons_[place].members.push_back(member);
}

Status BalloonBook::Replace(size_t place, ContainerKey former, const BalloonMemberPtr& member) {
  Balloon& balloon = balloons_[place];
  const auto at = std::ranges::find(balloon.members, former,
                                    [](const BalloonMemberPtr& each) { return each->key; });
  const BalloonMemberPtr before = std::exchange(*at, member);
  if (member->demand <= before->demand) {
    Shrink(place);
    return OkStatus();
  }
  const int needed = Needed(balloon, 0);
  const int most = setup_->MaxCpus(balloon.type, balloon.index);
  Status status;
  if (needed > most) {
    status = ResourceExhausted("{} needs {} CPUs, its limit is {}", NameOf(balloon), needed, most);
  } else if (Target(balloon) > balloon.cpus().size()) {
    status = Resize(balloon, Target(balloon));
  }
  if (!status.ok()) *at = before;
  return status;
}

// To what the containers need.
void BalloonBook::Shrink(size_t place, ContainerKey gone) {
  Balloon& balloon = balloons_[place];
  const int target = Target(balloon);
  const int size = balloon.cpus().size();
  if (target >= size) return;
  if (!balloon.part.parts.empty() && size <= setup_->WholeSize(balloon.type, target)) return;
  if (balloon.grown_by == gone && !balloon.grown.empty() && target == size - balloon.grown.size()) {
    TakeBack(balloon.part, balloon.grown);
    idle_ |= balloon.grown;
    balloon.grown = CpuSet();
    return;
  }
  (void)Resize(balloon, target);
}

void BalloonBook::Leave(ContainerKey key) {
  const std::optional<size_t> place = Find(key);
  if (!place) return;
  Balloon& balloon = balloons_[*place];
  std::erase_if(balloon.members,
                [key](const BalloonMemberPtr& member) { return member->key == key; });
  if (balloon.members.empty() && Count(balloon.type) > setup_->MinBalloons(balloon.type)) {
    idle_ |= balloon.cpus();
    balloons_.erase(balloons_.begin() + static_cast<ptrdiff_t>(*place));
  } else {
    Shrink(*place, key);
  }
  GrowShort();
}

void BalloonBook::GrowShort() {
  for (Balloon& balloon : balloons_) {
    if (idle_.empty()) return;
    const int size = balloon.cpus().size();
    const int target = Target(balloon);
    if (target <= size) continue;
    // A composite may have no room for one more in each component where fewer would fit.
    for (int wanted = std::min(target, MostNow(balloon)); wanted > size; --wanted) {
      if (Resize(balloon, wanted).ok()) break;
    }
  }
}

void BalloonBook::ShrinkLarge() {
  for (size_t place = 0; place < balloons_.size(); ++place)
    Shrink(place);
}

CpuSet BalloonBook::SharedIdle(const Balloon& balloon) const {
  const std::vector<CpuSet>& parts = setup_->sharing(balloon.type);
  if (parts.empty() || idle_.empty()) return {};
  return (idle_ & AllOf(parts, balloon.cpus())) - setup_->machine().isolated();
}

}  // namespace resmgr
