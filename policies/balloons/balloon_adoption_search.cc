// SPDX-License-Identifier: Apache-2.0
// Balloons without names or numbers, by which each container keeps its CPUs.
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

// Whether they stay also when the sizes of the balloons follow their needs again.
bool BalloonAdoption::AllStayLater(BalloonBook book, const std::vector<Group>& groups) const {
  book.ShrinkLarge();
  book.GrowShort();
  book.SettleBorrowed();
  return AllStay(book, groups);
}

// Two containers are in one balloon if, and only if, one sees all CPUs that the other one sees: a
// CPU of a balloon is seen in no other one. Those that run everywhere, as before a first start, are
// left out.
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

// nullopt: containers of one balloon would see the same CPUs, and do not.
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

// The book of these balloons; nullopt if limits of types do not allow them.
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

// Balloons by which all these containers stay, and do so at the next restart if such ones were
// found; nullopt if none were.
std::optional<BalloonBook> BalloonAdoption::Explained(std::vector<Group>& groups) {
  for (Found& found : found_)
    found.placed = false;
  BalloonBook start(setup_);
  CreateFixed(start);
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

}  // namespace resmgr
