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

// Whether a balloon with load `own` must stay away from one with load `other`.
bool Avoids(const BalloonLoadClass& own, const BalloonLoadClass& other) {
  const auto names = [](const BalloonLoadClass& load, const std::string& name) {
    return std::ranges::find(load.avoids, name) != load.avoids.end();
  };
  return own.name == other.name || names(own, other.name) || names(other, own.name);
}

}  // namespace

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
    if (balloons_[place].MemberOf(key) != nullptr) return place;
  }
  return std::nullopt;
}

BalloonMemberPtr BalloonBook::MemberOf(ContainerKey key) const {
  const std::optional<size_t> place = Find(key);
  return place ? balloons_[*place].MemberOf(key) : nullptr;
}

int BalloonBook::Count(int type) const {
  return static_cast<int>(std::ranges::count(balloons_, type, &Balloon::type));
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

bool BalloonBook::PodFits(const Balloon& balloon, const BalloonMember& member) const {
  const int64_t most = setup_->type(balloon.type).max_pods;
  return most == 0 || balloon.Pods(member) <= most;
}

bool BalloonBook::SizeFits(const Balloon& balloon, const BalloonMember& member) const {
  const int64_t guests = member.type == balloon.type ? balloon.guest_demand : 0;
  return Needed(balloon, member.demand - guests) <= setup_->MaxCpus(balloon.type, balloon.index);
}

int BalloonBook::Needed(const Balloon& balloon, int64_t more) const {
  return setup_->CpusFor(balloon.type, balloon.demand + more);
}

int BalloonBook::MostNow(const Balloon& balloon) const {
  const int size = balloon.size;
  const int limit = setup_->MaxCpus(balloon.type, balloon.index);
  if (limit <= size) return size;
  // Without rooms and bounds, the balloon may have any idle CPU.
  const bool any = !setup_->keeps_rooms() && !setup_->HasBounds(balloon.type);
  return std::min(limit, size + (any ? idle_.size() : FreeFor(balloon).size()));
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
  balloon.Recount();
  return OkStatus();
}

Status BalloonBook::ResizePart(const Balloon& balloon, BalloonPart& part, int size,
                               std::vector<std::string>& dropped) {
  if (!part.parts.empty()) {
    for (BalloonPart& below : part.parts) {
      const int share = setup_->ShareOf(below.type, size, part.parts.size());
      RESMGR_RETURN_IF_ERROR(ResizePart(balloon, below, share, dropped));
    }
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
  RESMGR_ASSIGN_OR_RETURN(const CpuSet cpus, ChooseMore(balloon, rules, part.cpus, more, dropped));
  part.cpus |= cpus;
  idle_ -= cpus;
  return OkStatus();
}

// Prefers CPUs that the balloon itself borrows, then CPUs that no other balloon borrows, unless
// more hints would be dropped because of that.
StatusOr<CpuSet> BalloonBook::ChooseMore(const Balloon& balloon, const CpuChoiceRules& rules,
                                         const CpuSet& own, int count,
                                         std::vector<std::string>& dropped) const {
  const CpuChooser& chooser = setup_->chooser();
  const CpuSet free = FreeFor(balloon);
  if (!lent_.Intersects(free)) return chooser.Grow(rules, own, free, count, &dropped);
  std::vector<std::string> least;
  RESMGR_ASSIGN_OR_RETURN(const CpuSet cpus, chooser.Grow(rules, own, free, count, &least));
  const CpuSet unlent = free - (lent_ - balloon.borrowed);
  for (const CpuSet& from : {balloon.borrowed & free, unlent}) {
    if (from.size() < count) continue;
    std::vector<std::string> here;
    StatusOr<CpuSet> found = chooser.Grow(rules, own, from, count, &here);
    if (!found.ok() || here.size() > least.size()) continue;
    dropped.insert(dropped.end(), here.begin(), here.end());
    return found;
  }
  dropped.insert(dropped.end(), least.begin(), least.end());
  return cpus;
}

// The hints of the members, those of the last member first. Each set of CPUs is there only once,
// since many containers may be near to the same devices.
std::vector<BalloonHint> BalloonBook::HintsOfMembers(const Balloon& balloon) {
  std::vector<BalloonHint> hints;
  for (auto member = balloon.members.rbegin(); member != balloon.members.rend(); ++member) {
    for (const BalloonHint& hint : (*member)->hints) {
      if (std::ranges::find(hints, hint.cpus, &BalloonHint::cpus) == hints.end())
        hints.push_back(hint);
    }
  }
  return hints;
}

// The rules for a part: those of its type, without a copy, or `changed`, to which hints of
// containers and loads were added.
const CpuChoiceRules& BalloonBook::RulesFor(const Balloon& balloon, const BalloonPart& part,
                                            CpuChoiceRules& changed) const {
  const CpuChoiceRules& own = setup_->rules(part.type);
  const std::vector<BalloonHint> hints = HintsOfMembers(balloon);
  if (hints.empty() && setup_->type(part.type).loads.empty()) return own;
  changed = own;
  changed.hints.insert(changed.hints.begin(), hints.begin(), hints.end());
  changed.loaded = LoadedFor(balloon, part);
  return changed;
}

// The CPUs near to loads of other balloons that this type's loads must stay away from.
CpuSet BalloonBook::LoadedFor(const Balloon& its, const BalloonPart& part) const {
  CpuSet loaded;
  const BalloonsOptions& options = setup_->options();
  for (const std::string& own_name : setup_->type(part.type).loads) {
    const BalloonLoadClass& own = *options.FindLoad(own_name);
    const auto add = [&](const BalloonPart& leaf) {
      // Skips the part itself, which alone has its CPUs.
      if (leaf.cpus.empty() || leaf.cpus.Intersects(part.cpus)) return;
      for (const std::string& name : setup_->type(leaf.type).loads) {
        const BalloonLoadClass& load = *options.FindLoad(name);
        if (!Avoids(own, load)) continue;
        loaded |= AllOf(PartsOfLoad(setup_->machine(), load.level), leaf.cpus);
      }
    };
    // The balloon's own parts are added apart, since a balloon that is being made is not in the
    // list yet.
    ForEachLeaf(its.part, add);
    for (const Balloon& balloon : balloons_)
      ForEachLeaf(balloon.part, add);
  }
  return loaded;
}

Status BalloonBook::Join(size_t place, const BalloonMemberPtr& member) {
  const Balloon& present = balloons_[place];
  const int needed = Needed(present, member->demand);
  const int most = setup_->MaxCpus(present.type, present.index);
  if (needed > most) {
    return ResourceExhausted("{} needs {} CPUs, its limit is {}", NameOf(present), needed, most);
  }
  if (!PodFits(present, *member)) {
    return ResourceExhausted("{} has as many pods as it may", NameOf(present));
  }
  const CpuSet before = present.cpus();
  Put(place, member);
  Status status = GrowAsNeeded(place);
  Balloon& balloon = balloons_.Change(place);
  if (!status.ok()) {
    balloon.members.pop_back();
    balloon.Recount();
    return status;
  }
  if (balloon.cpus() == before) return OkStatus();
  balloon.grown = balloon.cpus() - before;
  balloon.grown_by = member->key;
  return OkStatus();
}

void BalloonBook::Squeeze(size_t place, const BalloonMemberPtr& member) {
  const CpuSet before = balloons_[place].cpus();
  Put(place, member);
  GrowShort();
  Balloon& balloon = balloons_.Change(place);
  balloon.grown = balloon.cpus() - before;
  balloon.grown_by = member->key;
}

void BalloonBook::Put(size_t place, const BalloonMemberPtr& member) {
  Balloon& balloon = balloons_.Change(place);
  balloon.members.push_back(member);
  balloon.Recount();
}

Status BalloonBook::Replace(size_t place, ContainerKey former, const BalloonMemberPtr& member) {
  Balloon& balloon = balloons_.Change(place);
  const auto at = std::ranges::find(balloon.members, former,
                                    [](const BalloonMemberPtr& each) { return each->key; });
  const BalloonMemberPtr before = std::exchange(*at, member);
  balloon.Recount();
  if (member->demand <= before->demand) {
    Shrink(place);
    return OkStatus();
  }
  const int needed = Needed(balloon, 0);
  const int most = setup_->MaxCpus(balloon.type, balloon.index);
  Status status;
  if (needed > most) {
    status = ResourceExhausted("{} needs {} CPUs, its limit is {}", NameOf(balloon), needed, most);
  } else {
    status = GrowAsNeeded(place);
  }
  if (!status.ok()) {
    *at = before;
    balloon.Recount();
  }
  return status;
}

void BalloonBook::ReplaceShort(size_t place, ContainerKey former, const BalloonMemberPtr& member) {
  Balloon& balloon = balloons_.Change(place);
  *std::ranges::find(balloon.members, former,
                     [](const BalloonMemberPtr& each) { return each->key; }) = member;
  balloon.Recount();
  Shrink(place);
  GrowShort();
}

int BalloonBook::SizeAt(const BalloonPart& part, int size) const {
  if (part.parts.empty()) return size;
  int sum = 0;
  for (const BalloonPart& below : part.parts)
    sum += SizeAt(below, setup_->ShareOf(below.type, size, part.parts.size()));
  return sum;
}

// Shrinks the balloon to the size that its containers need.
void BalloonBook::Shrink(size_t place, ContainerKey gone) {
  const Balloon& present = balloons_[place];
  const int target = Target(present);
  const int size = present.size;
  const int whole = SizeAt(present.part, target);
  if (whole >= size) return;
  Balloon& balloon = balloons_.Change(place);
  if (balloon.grown_by == gone && !balloon.grown.empty() && whole == size - balloon.grown.size()) {
    TakeBack(balloon.part, balloon.grown);
    idle_ |= balloon.grown;
    balloon.grown = CpuSet();
    balloon.Recount();
    return;
  }
  (void)Resize(balloon, target);
}

void BalloonBook::Leave(ContainerKey key) {
  const std::optional<size_t> place = Find(key);
  if (!place) return;
  Balloon& balloon = balloons_.Change(*place);
  std::erase_if(balloon.members,
                [key](const BalloonMemberPtr& member) { return member->key == key; });
  balloon.Recount();
  if (balloon.members.empty() && Count(balloon.type) > setup_->MinBalloons(balloon.type)) {
    idle_ |= balloon.cpus();
    balloons_.Remove(*place);
  } else {
    Shrink(*place, key);
  }
  GrowShort();
}

// Balloons that lack CPUs first grow with idle CPUs of the NUMA node where most of their CPUs are.
void BalloonBook::GrowAtHome() {
  const std::vector<NumaNode>& nodes = setup_->machine().nodes();
  if (nodes.empty()) return;
  for (size_t place = 0; place < balloons_.size() && !idle_.empty(); ++place) {
    const Balloon& balloon = balloons_[place];
    if (Lacks(balloon) == 0 || balloon.part.cpus.empty()) continue;
    const CpuSet own = balloon.part.cpus;
    const auto home = std::ranges::max_element(
        nodes, {}, [&own](const NumaNode& node) { return node.cpus.CountCommon(own); });
    for (int lacks = Lacks(balloon); lacks > 0 && idle_.Intersects(home->cpus); --lacks)
      if (!GrowByOne(place)) break;
  }
}

void BalloonBook::GrowShort() {
  GrowAtHome();
  for (size_t place = 0; place < balloons_.size(); ++place) {
    const Balloon& balloon = balloons_[place];
    if (Lacks(balloon) == 0) continue;
    if (idle_.empty()) return;
    if (balloon.part.parts.empty()) {
      GrowAsFarAsPossible(place);
    } else {
      GrowParts(place);
    }
  }
}

// Grows the balloon to the size that its containers need. A composite balloon that has as many CPUs
// in total grows as far as it can, since equal shares may need more than are left.
Status BalloonBook::GrowAsNeeded(size_t place) {
  Balloon& balloon = balloons_.Change(place);
  const int target = Target(balloon);
  if (SizeAt(balloon.part, target) <= balloon.size) return OkStatus();
  Status status = Resize(balloon, target);
  if (status.ok() || target > balloon.size) return status;
  GrowParts(place);
  return OkStatus();
}

void BalloonBook::GrowAsFarAsPossible(size_t place) {
  const Balloon& balloon = balloons_[place];
  const int size = balloon.size;
  for (int wanted = std::min(Target(balloon), MostNow(balloon)); wanted > size; --wanted) {
    if (Resize(balloons_.Change(place), wanted).ok()) return;
  }
}

// If a composite balloon has no room for one more CPU in each component, a smaller size may still
// fit; else components grow by single CPUs, unless the balloon has none at all. A size that needs
// more than the idle CPUs is not tried: a try copies the balloon.
void BalloonBook::GrowParts(size_t place) {
  const int size = balloons_[place].size;
  const int target = Target(balloons_[place]);
  Balloon& balloon = balloons_.Change(place);
  for (int wanted = target; wanted > 0; --wanted) {
    const int more = SizeAt(balloon.part, wanted) - size;
    if (more <= 0) break;
    if (more <= idle_.size() && Resize(balloon, wanted).ok()) return;
  }
  if (size == 0) return;
  FillPart(balloon, balloon.part, target);
  balloon.grown = CpuSet();
  balloon.Recount();
}

void BalloonBook::FillPart(const Balloon& balloon, BalloonPart& part, int size) {
  for (BalloonPart& below : part.parts)
    FillPart(balloon, below, setup_->ShareOf(below.type, size, part.parts.size()));
  if (!part.parts.empty()) return;
  std::vector<std::string> dropped;
  for (int wanted = std::min(size, part.cpus.size() + idle_.size()); wanted > part.cpus.size();
       --wanted) {
    if (ResizePart(balloon, part, wanted, dropped).ok()) return;
  }
}

void BalloonBook::ShrinkLarge() {
  for (size_t place = 0; place < balloons_.size(); ++place)
    Shrink(place);
}

int BalloonBook::Lacks(const Balloon& balloon) const {
  if (setup_->type(balloon.type).alone) return 0;
  return std::max(0, SizeAt(balloon.part, Target(balloon)) - balloon.size);
}

void BalloonBook::GiveUp(size_t place, const CpuSet& part, int count) {
  Balloon& balloon = balloons_.Change(place);
  CpuSet& own = balloon.part.cpus;
  const CpuSet back =
      setup_->chooser().Shrink(setup_->rules(balloon.type), own, own & part, idle_, count);
  own -= back;
  idle_ |= back;
  balloon.grown = CpuSet();
  balloon.Recount();
}

bool BalloonBook::GrowByOne(size_t place) {
  if (idle_.empty()) return false;
  return Resize(balloons_.Change(place), balloons_[place].size + 1).ok();
}

CpuSet BalloonBook::SharedIdle(const Balloon& balloon) const {
  const std::vector<CpuSet>& parts = setup_->sharing(balloon.type);
  if (parts.empty() || idle_.empty()) return {};
  return (unlent() & AllOf(parts, balloon.cpus())) - setup_->machine().isolated();
}

bool BalloonBook::Shares(const Balloon& balloon, const CpuSet& cpus) const {
  const std::vector<CpuSet>& parts = setup_->sharing(balloon.type);
  if (parts.empty()) return false;
  return cpus.Intersects(AllOf(parts, balloon.cpus()) - setup_->machine().isolated());
}

}  // namespace resmgr
