// SPDX-License-Identifier: Apache-2.0
// Finds balloons without names or numbers by which each container keeps its CPUs, and the CPUs of a
// balloon whose containers were found by CPUs only.
#include <algorithm>
#include <utility>

#include "policies/balloons/balloon_adoption.h"
#include "policies/balloons/balloon_explanation.h"
#include "policies/balloons/balloon_plan.h"

namespace resmgr {

bool BalloonAdoption::Stays(const BalloonBook& book, const Found& found) const {
  const std::optional<size_t> place = book.Find(found.member.key);
  if (!place) return false;
  const Balloon& balloon = book.balloons()[*place];
  const BalloonMemberPtr member = balloon.MemberOf(found.member.key);
  return BalloonPlan(book).PlacementOf(balloon, *member).cpus == VisibleOf(found);
}

bool BalloonAdoption::AllStay(const BalloonBook& book, const std::vector<Group>& groups) const {
  return std::ranges::all_of(groups, [&](const Group& group) {
    return std::ranges::all_of(group.members,
                               [&](const Found* found) { return Stays(book, *found); });
  });
}

// Whether all containers also keep their CPUs after the sizes of the balloons are adapted to their
// needs.
bool BalloonAdoption::AllStayLater(BalloonBook book, const std::vector<Group>& groups) const {
  book.ShrinkLarge();
  book.GrowShort();
  book.SettleBorrowed();
  return AllStay(book, groups);
}

// Groups containers into balloons: two containers are in the same balloon if and only if one of
// them sees all CPUs that the other one sees, since a CPU of a balloon is seen in no other balloon.
// Containers that run on all CPUs, as before a first start, are left out.
std::vector<BalloonAdoption::Group> BalloonAdoption::GroupSeen() {
  Group everywhere{.type = 0, .visible = setup_->available(), .members = {}};
  for (Found& found : found_)
    if (VisibleOf(found) == everywhere.visible) everywhere.members.push_back(&found);
  const bool leave_out = !everywhere.members.empty() && !Plausible(everywhere);
  std::vector<Group> groups;
  for (Found& found : found_) {
    const CpuSet visible = VisibleOf(found);
    if (found.alone || visible.empty()) continue;
    if (leave_out && visible == everywhere.visible) continue;
    Group group{.type = found.member.type, .visible = visible, .members = {&found}};
    for (Group& other : groups) {
      const bool one = other.visible.IsSubsetOf(group.visible);
      if (!one && !group.visible.IsSubsetOf(other.visible)) continue;
      group.visible |= other.visible;
      group.members.insert(group.members.begin(), other.members.begin(), other.members.end());
      other.members.clear();
    }
    std::erase_if(groups, [](const Group& other) { return other.members.empty(); });
    groups.push_back(std::move(group));
  }
  return groups;
}

// nullopt: the containers see different CPUs, so they cannot be in one balloon.
std::optional<SeenBalloon> BalloonAdoption::AsSeen(const Group& group) const {
  SeenBalloon seen;
  for (const Found* const found : group.members) {
    const CpuSet visible = VisibleOf(*found);
    CpuSet& cpus = found->member.hide_hyperthreads ? seen.threads : seen.whole;
    if (!cpus.empty() && cpus != visible) return std::nullopt;
    cpus = visible;
    ++seen.types[found->member.type];
  }
  for (int type = 0; type < setup_->types(); ++type)
    seen.needed.push_back(NeededBy(group, type));
  return seen;
}

// The book with these balloons; nullopt if the types' limits do not allow them.
std::optional<BalloonBook> BalloonAdoption::BookOf(const BalloonBook& start,
                                                   std::vector<Group>& groups,
                                                   const BalloonExplanation& explanation) {
  BalloonBook book = start;
  for (Found& found : found_)
    found.placed &= found.alone;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto& [type, own, borrowed] = explanation.balloons[i];
    groups[i].type = type;
    const Balloon* const its = OwnerOf(book, own);
    const int index = its != nullptr ? its->index : IndexFor(book, type, own);
    if (index < 0 || !AdoptGroup(book, index, groups[i], own, false)) return std::nullopt;
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    const ContainerKey key = groups[i].members.front()->member.key;
    book.AdoptBorrowed(*book.Find(key), explanation.balloons[i].borrowed);
  }
  CpuSet left = explanation.empty;
  for (int type = 0; type < setup_->types(); ++type) {
    while (book.Count(type) < setup_->MinBalloons(type)) {
      const int index = book.NextIndex(type);
      const int size = setup_->WholeSize(type, setup_->MinCpus(type, index));
      const CpuSet here = left & setup_->Bounds(type, index);
      const StatusOr<CpuSet> its = setup_->chooser().Grow(setup_->rules(type), {}, here, size);
      if (!its.ok() || !book.Adopt(type, index, *its)) break;
      left -= *its;
    }
  }
  CreateAlways(book);
  book.SettleBorrowed();
  return book;
}

// Finds balloons with which all these containers stay on their CPUs, if possible also at the next
// restart; nullopt: there are none.
std::optional<BalloonBook> BalloonAdoption::Explained(std::vector<Group>& groups) {
  for (Found& found : found_)
    found.placed = false;
  BalloonBook start(setup_);
  (void)start.CreateFixed();
  AdoptAlone(start);
  std::vector<SeenBalloon> seen;
  for (const Group& group : groups) {
    std::optional<SeenBalloon> its = AsSeen(group);
    if (!its) return std::nullopt;
    seen.push_back(*std::move(its));
  }
  std::optional<BalloonBook> explained;
  (void)ExplainCpus(start, seen, [&](const BalloonExplanation& explanation) {
    std::optional<BalloonBook> book = BookOf(start, groups, explanation);
    if (!book || !AllStay(*book, groups)) return false;
    const bool later = AllStayLater(*book, groups);
    if (later || !explained) explained = std::move(book);
    return later;
  });
  if (!explained) return std::nullopt;
  PlaceOthers(*explained);
  explained->SettleBorrowed();
  return explained;
}

// Whether the containers may be in a balloon: they do not run on more CPUs than one would have.
// Guests may be in a balloon of another type, which may have more CPUs by its minimum size.
bool BalloonAdoption::Plausible(const Group& group) const {
  const int size = group.visible.size();
  const bool all = group.visible == setup_->available();
  const bool its = std::ranges::any_of(group.members, [&](const Found* found) {
    const int type = found->member.type;
    const bool may_see_more = !setup_->sharing(type).empty() || setup_->type(type).follows_use();
    return size <= TargetOf(group, type) || (may_see_more && !all);
  });
  if (its || all || !group.members.front()->lost) return its;
  for (int type = 0; type < setup_->types(); ++type) {
    const bool takes_guests = !setup_->type(type).alone && setup_->MaxCpus(type, 0) > 0;
    if (takes_guests && MayHave(group, type, size)) return true;
  }
  return false;
}

// Whether a balloon of the type with these containers may have so many CPUs. Components have their
// minimum sizes at first, and grow only when the containers need more CPUs in total.
bool BalloonAdoption::MayHave(const Group& group, int type, int size) const {
  const BalloonType& own = setup_->type(type);
  const int needed = NeededBy(group, type);
  if (own.balance_components) {
    return std::ranges::any_of(own.components, [&](int component) {
      return size == setup_->WholeSize(component, setup_->ShareOf(component, needed, 1));
    });
  }
  const int most = setup_->WholeSize(type, needed);
  if (!own.composite() || size < needed) return size == most;
  return size <= most && size >= setup_->WholeSize(type, setup_->MinCpus(type, 0));
}

// CPUs that containers of other groups would see if these CPUs were idle, but do not see: so a
// balloon has them.
CpuSet BalloonAdoption::MissedBy(const std::vector<Group>& groups, const Group& except) const {
  CpuSet missed;
  for (const Group& group : groups) {
    const Found& first = *group.members.front();
    const int type = first.placed ? group.type : first.member.type;
    const std::vector<CpuSet>& parts = setup_->sharing(type);
    const bool its = std::ranges::all_of(
        group.members, [type](const Found* found) { return found->member.type == type; });
    if (&group == &except || !group.plausible || !its || parts.empty()) continue;
    const Machine& machine = setup_->machine();
    const bool hides = std::ranges::any_of(
        group.members, [](const Found* found) { return found->member.hide_hyperthreads; });
    const CpuSet seen = hides ? machine.WithSiblings(group.visible) : group.visible;
    missed |= AllOf(parts, group.visible) - machine.isolated() - seen;
  }
  return missed;
}

// The balloon's own CPUs among those that its containers see: as many as they need, and one in each
// part of the machine in which the type shares idle CPUs.
CpuSet BalloonAdoption::OwnOf(const BalloonBook& book, const Group& group, const CpuSet& others,
                              const CpuSet& missed, const Balloon* owner) const {
  const std::vector<CpuSet>& parts = setup_->sharing(group.type);
  const int target = TargetOf(group, group.type);
  const bool hides = std::ranges::any_of(
      group.members, [](const Found* found) { return found->member.hide_hyperthreads; });
  // If its containers hide threads, the balloon also has unseen threads: those with higher numbers
  // than the seen thread of their core.
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
    // The CPUs beyond the target were borrowed.
    return setup_->chooser().Grow(setup_->rules(group.type), {}, own, target).value_or(own);
  }
  const CpuSet free = (group.visible & book.idle()) | hidden;
  if (free == setup_->available() && target < free.size()) return {};
  const CpuSet certain = free - others;
  CpuSet own = owner == nullptr ? CpuSet() : owner->cpus();
  // CPUs that the balloon certainly has: other containers would see them if they were idle, or they
  // are isolated, which are never shared.
  const CpuSet sure = certain & group.visible & (missed | setup_->machine().isolated());
  if ((own | sure).size() <= target) own |= sure;
  if (hides) {
    // If the core had no own thread, containers would see its first thread; they see another one,
    // so that one is the balloon's own.
    const CpuSet unseen = (book.idle() - others) - group.visible;
    for (const int cpu : certain& group.visible) {
      const bool first = setup_->machine().WithSiblings({cpu}).First() == cpu;
      if (!first && unseen.Intersects(setup_->machine().WithSiblings({cpu}))) own.Add(cpu);
    }
  }
  if ((own | certain).size() < target) return own | certain;
  for (const CpuSet& part : parts) {
    const CpuSet here = free & part;
    if (here.empty() || own.size() >= target || own.Intersects(part)) continue;
    const CpuSet best = here & certain;
    own.Add(best.empty() ? here.First() : best.First());
  }
  const int more = target - own.size();
  own |= setup_->chooser()
             .Grow(setup_->rules(group.type), own, certain - own, more)
             .value_or(CpuSet());
  return own;
}

// The CPUs that the group needs, before components' sizes are rounded up.
int BalloonAdoption::NeededBy(const Group& group, int type) const {
  int64_t demand = 0;
  for (const Found* const found : group.members)
    demand += found->member.demand;
  const int index = std::max(group.members.front()->index, 0);
  const int most = std::max(setup_->MaxCpus(type, index), 1);
  return std::max(std::min(setup_->CpusFor(type, demand), most), setup_->MinCpus(type, index));
}

int BalloonAdoption::TargetOf(const Group& group, int type) const {
  return setup_->WholeSize(type, NeededBy(group, type));
}

}  // namespace resmgr
