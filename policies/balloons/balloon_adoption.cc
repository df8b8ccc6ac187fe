// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloon_adoption.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "pkg/allocator/want_of_room.h"
#include "pkg/base/parse.h"
#include "policies/balloons/balloon_placer.h"
#include "policies/balloons/balloon_reason.h"

namespace resmgr {
namespace {

// The type and the number in "TYPE[N]"; false for other texts.
bool ParseName(const BalloonsOptions& options, std::string_view name, int& type, int& index) {
  const size_t bracket = name.find('[');
  if (bracket == std::string_view::npos || !name.ends_with(']')) return false;
  type = options.FindType(name.substr(0, bracket));
  const auto number = ParseInt(name.substr(bracket + 1, name.size() - bracket - 2));
  if (type < 0 || !number || *number < 0 || *number > CpuSet::kMaxId) return false;
  index = static_cast<int>(*number);
  return true;
}

}  // namespace

BalloonAdoption::BalloonAdoption(std::shared_ptr<const BalloonSetup> setup, BalloonRules rules)
    : setup_(std::move(setup)), rules_(rules) {}

void BalloonAdoption::Add(const Pod& pod, const Container& container) {
  if (std::string why = rules_.WhyInNone(pod, container); !why.empty()) {
    none_.emplace(container.key, std::move(why));
    return;
  }
  Found found{.container = &container, .member = rules_.RunningMember(pod, container)};
  const Placement& present = container.placement;
  const bool guest = present.reason.starts_with(kWantOfRoom);
  const bool named = ParseName(setup_->options(), present.pool, found.type, found.index);
  if (!named || (found.type != found.member.type && !guest)) found.index = -1;
  if (found.index < 0) found.type = found.member.type;
  found_.push_back(std::move(found));
}

std::string BalloonAdoption::WhyInNone(ContainerKey key) const {
  const auto why = none_.find(key);
  return why == none_.end() ? std::string() : why->second;
}

BalloonBook BalloonAdoption::Run() {
  BalloonBook book(setup_);
  // CPUs that belong to a type are not for others, whoever runs there.
  for (int type = 0; type < setup_->types(); ++type) {
    while (setup_->type(type).own_cpus && book.Count(type) < setup_->MinBalloons(type)) {
      if (!book.Create(type).ok()) break;
    }
  }
  AdoptNamed(book);
  const std::vector<Group> groups = GroupUnnamed();
  AdoptUnnamed(book, groups, false);
  AdoptUnnamed(book, groups, true);
  book.KeepRooms();
  AdoptBorrowed(book);
  // Containers that run come before balloons without any. These lie where containers that share
  // idle CPUs miss some, or at least where no container is.
  CpuSet seen;
  CpuSet missing;
  for (const Found& found : found_) {
    if (!found.placed) continue;
    const CpuSet visible = VisibleOf(found);
    seen |= visible;
    const CpuSet shared = book.SharedIdle(book.balloons()[*book.Find(found.member.key)]);
    const bool hides = found.member.hide_hyperthreads;
    missing |= shared - (hides ? setup_->machine().WithSiblings(visible) : visible);
  }
  (void)book.CreateAlways(
      {{"missing elsewhere", missing}, {"not used", setup_->available() - seen}});
  for (Found& found : found_) {
    if (found.placed) continue;
    (void)BalloonPlacer(book).PlaceRunning(std::make_shared<BalloonMember>(found.member));
  }
  // The configuration may have other limits than before.
  book.ShrinkLarge();
  book.GrowShort();
  book.SettleBorrowed();
  return book;
}

// Without a reason, the borrowed CPUs are those that containers see beside their balloon's own.
void BalloonAdoption::AdoptBorrowed(BalloonBook& book) const {
  if (!setup_->follows_use()) return;
  for (const Found& found : found_) {
    if (!found.placed) continue;
    const std::optional<size_t> place = book.Find(found.member.key);
    const Balloon& balloon = book.balloons()[*place];
    if (!setup_->type(balloon.type).follows_use()) continue;
    const std::string& reason = found.container->placement.reason;
    CpuSet borrowed = AsReported(found, BorrowedCpusOfReason(reason));
    const bool told = !OwnCpusOfReason(reason).empty() || !setup_->sharing(balloon.type).empty();
    if (!told) borrowed = VisibleOf(found) - balloon.cpus();
    book.AdoptBorrowed(*place, borrowed);
  }
}

// By the names of balloons that placements have.
void BalloonAdoption::AdoptNamed(BalloonBook& book) {
  std::map<std::pair<int, int>, Group> named;
  for (Found& found : found_) {
    if (found.index < 0) continue;
    Group& group = named[{found.type, found.index}];
    group.type = found.type;
    group.visible |= VisibleOf(found);
    group.members.push_back(&found);
  }
  for (const auto& [name, group] : named) {
    CpuSet own;
    for (const Found* const found : group.members)
      own |= AsReported(*found, OwnCpusOfReason(found->container->placement.reason));
    if (own.empty()) own = OwnOf(book, group, {});
    own |= MissingOf(book, group, own);
    if (!own.empty()) AdoptGroup(book, name.second, group, own, false);
  }
}

// A reason may be older than the runtime's report.
CpuSet BalloonAdoption::AsReported(const Found& found, const CpuSet& saved) const {
  const bool reported = setup_->options().pin_cpu && !found.container->may_be_elsewhere;
  return reported ? saved & setup_->machine().WithSiblings(VisibleOf(found)) : saved;
}

// The CPUs of its containers that the balloon lacks: a reason may be older than these, as where the
// state could not be written.
CpuSet BalloonAdoption::MissingOf(const BalloonBook& book, const Group& group,
                                  const CpuSet& own) const {
  const int missing = TargetOf(group) - own.size();
  if (missing <= 0 || !setup_->options().pin_cpu || !setup_->sharing(group.type).empty()) return {};
  const CpuSet seen = (group.visible & book.idle()) - own;
  if (seen.size() <= missing) return seen;
  return setup_->chooser().Grow(setup_->rules(group.type), own, seen, missing).value_or(CpuSet());
}

// The number of a balloon that always has some of these CPUs, or of a further one.
int BalloonAdoption::IndexFor(const BalloonBook& book, const Group& group, const CpuSet& own) {
  for (const Balloon& balloon : book.balloons()) {
    if (balloon.type != group.type || !balloon.members.empty()) continue;
    if (!balloon.cpus().empty() && balloon.cpus().IsSubsetOf(own)) return balloon.index;
  }
  return book.NextIndex(group.type);
}

// Groups on CPUs that a balloon would have for them: as many as they need, or fewer, which others
// left them.
void BalloonAdoption::AdoptUnnamed(BalloonBook& book, const std::vector<Group>& groups,
                                   bool fewer) {
  for (const Group& group : groups) {
    if (group.members.front()->placed) continue;
    CpuSet others;
    for (const Group& other : groups) {
      if (&other != &group) others |= other.visible;
    }
    const CpuSet own = OwnOf(book, group, others);
    const int target = TargetOf(group);
    const bool fits =
        fewer ? own.size() < target && !setup_->type(group.type).composite() : own.size() == target;
    if (own.empty() || !fits) continue;
    AdoptGroup(book, IndexFor(book, group, own), group, own, true);
  }
}

// `exact`: only if the balloon can have all these CPUs.
void BalloonAdoption::AdoptGroup(BalloonBook& book, int index, const Group& group,
                                 const CpuSet& own, bool exact) {
  const auto same = [&](const Balloon& balloon) {
    return balloon.type == group.type && balloon.index == index;
  };
  auto at = std::ranges::find_if(book.balloons(), same);
  const bool there = at != book.balloons().end();
  if (!there && book.Count(group.type) >= setup_->MaxBalloons(group.type)) return;
  const CpuSet more = there ? own - at->cpus() : own;
  if (exact && !more.IsSubsetOf(book.FreeForNew(group.type, index))) return;
  const std::optional<size_t> place = book.Adopt(group.type, index, own);
  if (!place) return;
  for (Found* const found : group.members) {
    BalloonMember member = found->member;
    const std::string& reason = found->container->placement.reason;
    if (found->index >= 0 && !OwnCpusOfReason(reason).empty()) {
      member.text = TextOfReason(reason);
    } else {
      member.text += "; where it was found";
    }
    book.Put(*place, std::make_shared<BalloonMember>(std::move(member)));
    found->placed = true;
  }
}

CpuSet BalloonAdoption::VisibleOf(const Found& found) const {
  const CpuSet cpus = found.container->placement.cpus.value_or(CpuSet()) & setup_->available();
  return found.container->may_be_elsewhere ? CpuSet() : cpus;
}

// Without names: those of one type on the same CPUs or, where types share nothing, on some of them.
std::vector<BalloonAdoption::Group> BalloonAdoption::GroupUnnamed() {
  std::vector<Group> groups;
  for (Found& found : found_) {
    if (found.placed) continue;
    found.index = -1;
    const CpuSet visible = VisibleOf(found);
    if (visible.empty()) continue;
    const bool shares = !setup_->sharing(found.member.type).empty();
    const auto at = std::ranges::find_if(groups, [&](const Group& group) {
      if (group.type != found.member.type) return false;
      return shares ? group.visible == visible : group.visible.Intersects(visible);
    });
    Group& group = at == groups.end() ? groups.emplace_back() : *at;
    group.type = found.member.type;
    group.visible |= visible;
    group.members.push_back(&found);
  }
  return groups;
}

// The balloon's own among the CPUs that its containers see: as many as they need, with one in each
// part in which the type shares idle ones.
CpuSet BalloonAdoption::OwnOf(const BalloonBook& book, const Group& group,
                              const CpuSet& others) const {
  const std::vector<CpuSet>& parts = setup_->sharing(group.type);
  const int target = TargetOf(group);
  const bool hides = std::ranges::any_of(
      group.members, [](const Found* found) { return found->member.hide_hyperthreads; });
  // The balloon has threads, too, that its containers do not see: those above the ones that they
  // do.
  CpuSet hidden;
  if (hides) {
    const Machine& machine = setup_->machine();
    for (const int cpu : (machine.WithSiblings(group.visible) & book.idle()) - others) {
      if ((machine.WithSiblings({cpu}) & group.visible).First() < cpu) hidden.Add(cpu);
    }
  }
  if (parts.empty()) {
    CpuSet own = group.visible;
    for (const int cpu : hidden) {
      if (own.size() < target) own.Add(cpu);
    }
    if (!setup_->type(group.type).follows_use() || own.size() <= target) return own;
    // The rest was borrowed.
    return setup_->chooser().Grow(setup_->rules(group.type), {}, own, target).value_or(own);
  }
  const CpuSet free = (group.visible & book.idle()) | hidden;
  if (free == setup_->available() && target < free.size()) return {};
  const CpuSet certain = free - others;
  CpuSet own;
  for (const CpuSet& part : parts) {
    const CpuSet here = free & part;
    if (here.empty() || own.size() >= target) continue;
    const CpuSet best = here & certain;
    own.Add(best.empty() ? here.First() : best.First());
  }
  const int more = target - own.size();
  const CpuSet from = (certain - own).size() >= more ? certain - own : free - own;
  if (from.size() < more) return {};
  own |= setup_->chooser().Grow(setup_->rules(group.type), own, from, more).value_or(CpuSet());
  return own;
}

int BalloonAdoption::TargetOf(const Group& group) const {
  int64_t demand = 0;
  for (const Found* const found : group.members)
    demand += found->member.demand;
  const int index = std::max(group.members.front()->index, 0);
  const int most = std::max(setup_->MaxCpus(group.type, index), 1);
  return setup_->WholeSize(group.type, std::max(std::min(setup_->CpusFor(group.type, demand), most),
                                                setup_->MinCpus(group.type, index)));
}

}  // namespace resmgr
