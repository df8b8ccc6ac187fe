// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloon_adoption.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "pkg/allocator/want_of_room.h"
#include "pkg/base/parse.h"
#include "policies/balloons/balloon_placer.h"

namespace resmgr {
namespace {

// Reads type and number of "TYPE[N]"; false for other texts.
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
    : setup_(std::move(setup)), rules_(rules), at_start_(setup_) {
  (void)at_start_.CreateAlways();
}

void BalloonAdoption::Add(const Pod& pod, const Container& container) {
  if (std::string why = rules_.WhyInNone(pod, container); !why.empty()) {
    none_.emplace(container.key, std::move(why));
    return;
  }
  const Placement& present = container.placement;
  Found found{.container = &container,
              .member = rules_.RunningMember(pod, container),
              .saved = ReadReason(present.reason)};
  found.alone = setup_->type(found.member.type).alone;
  found.lost = present.pool.empty();
  has_state_ |= !found.lost;
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
  BalloonBook book = ByLikelihood();
  if (has_state_ || !setup_->options().pin_cpu) return book;
  std::vector<Group> groups = GroupSeen();
  if (AllStay(book, groups) && AllStayLater(book, groups)) return book;
  return Explained(groups).value_or(std::move(book));
}

BalloonBook BalloonAdoption::ByLikelihood() {
  BalloonBook book(setup_);
  (void)book.CreateFixed();
  AdoptAlone(book);
  AdoptNamed(book);
  for (const bool loosely : {false, true}) {
    std::vector<Group> groups = GroupUnnamed(loosely);
    for (const Fit fit : {Fit::kExact, Fit::kFewer, Fit::kOther})
      AdoptUnnamed(book, groups, fit);
  }
  AdoptRooms(book);
  AdoptBorrowed(book);
  CreateAlways(book);
  PlaceOthers(book);
  // The configuration may have changed limits, so the sizes are adapted. After a loss of state they
  // stay as they are until their balloons change.
  if (has_state_) {
    book.ShrinkLarge();
    book.GrowShort();
  } else {
    RetypeGuests(book);
  }
  book.SettleBorrowed();
  return book;
}

void BalloonAdoption::PlaceOthers(BalloonBook& book) const {
  for (const Found& found : found_) {
    if (book.Find(found.member.key)) continue;
    (void)BalloonPlacer(book).PlaceRunning(std::make_shared<BalloonMember>(found.member));
  }
}

// If the placement has the balloon's number, the balloon keeps it; others get free numbers.
void BalloonAdoption::AdoptAlone(BalloonBook& book) {
  for (const bool numbered : {true, false}) {
    for (Found& found : found_) {
      if (!found.alone || found.placed || (found.index >= 0) != numbered) continue;
      const CpuSet& own = found.container->placement.exclusive;
      const int type = found.member.type;
      const int index = numbered ? found.index : book.NextIndex(type);
      const std::optional<size_t> place = book.Adopt(type, index, own);
      if (!place) continue;
      BalloonMember member = found.member;
      member.text += "; where it was found";
      if (numbered) member.text = found.saved.text;
      book.Put(*place, std::make_shared<BalloonMember>(std::move(member)));
      found.placed = true;
    }
  }
}

std::vector<const BalloonAdoption::Found*> BalloonAdoption::FoundIn(const Balloon& balloon) const {
  std::vector<const Found*> members;
  for (const Found& found : found_)
    if (balloon.MemberOf(found.member.key) != nullptr) members.push_back(&found);
  return members;
}

// Whether the balloon's containers would stay on the CPUs on which they run.
bool BalloonAdoption::SeeTheSame(const BalloonBook& book, size_t place) const {
  return std::ranges::all_of(FoundIn(book.balloons()[place]), [&](const Found* found) {
    return found->placed && Stays(book, *found);
  });
}

void BalloonAdoption::RetypeGuests(BalloonBook& book) const {
  if (!setup_->options().pin_cpu) return;
  for (size_t place = 0; place < book.balloons().size(); ++place) {
    if (SeeTheSame(book, place)) continue;
    for (int type = 0; type < setup_->types(); ++type) {
      const BalloonType& own = setup_->type(type);
      const bool bound = own.alone || own.own_cpus || own.composite() || setup_->HasBounds(type) ||
                         own.grow_within != BalloonLevel::kNone;
      if (bound || type == book.balloons()[place].type) continue;
      BalloonBook trial = book;
      std::vector<BalloonMemberPtr> members;
      for (const Found* const found : FoundIn(book.balloons()[place])) {
        members.push_back(
            std::make_shared<BalloonMember>(AsMember(*found, book, type, book.NextIndex(type))));
      }
      if (!trial.Retype(place, type, std::move(members)) || !SeeTheSame(trial, place)) continue;
      book = std::move(trial);
      break;
    }
  }
}

// The container as a member of a balloon that was found by its CPUs only.
BalloonMember BalloonAdoption::AsMember(const Found& found, const BalloonBook& book, int type,
                                        int index) const {
  BalloonMember member = found.member;
  member.text += "; where it was found";
  if (member.type != type) {
    member.text =
        TextForWantOfRoom(member.text, book.NameOf(type, index), setup_->type(member.type).name);
  }
  return member;
}

// The CPUs on which those containers run whose balloons were found.
CpuSet BalloonAdoption::Seen() const {
  CpuSet seen;
  for (const Found& found : found_) {
    if (found.placed) seen |= VisibleOf(found);
  }
  return seen;
}

// Idle CPUs that containers should see by the book, since their types share idle CPUs, but do not
// see: other balloons must have these CPUs.
CpuSet BalloonAdoption::MissedIn(const BalloonBook& book) const {
  CpuSet missed;
  for (const Found& found : found_) {
    if (!found.placed) continue;
    const CpuSet visible = VisibleOf(found);
    const CpuSet shared = book.SharedIdle(book.balloons()[*book.Find(found.member.key)]);
    const bool hides = found.member.hide_hyperthreads;
    missed |= shared - (hides ? setup_->machine().WithSiblings(visible) : visible);
  }
  return missed;
}

// Makes the balloons that always exist and have no containers yet: preferably on CPUs that sharing
// containers do not see, else on CPUs on which no container runs.
void BalloonAdoption::CreateAlways(BalloonBook& book) const {
  const auto create_in = [this](BalloonBook& to) {
    return to.CreateAlwaysBy([&](int type) { return CreateEmpty(to, type); });
  };
  BalloonBook with_rooms = book;
  (void)with_rooms.Complete();
  if (create_in(with_rooms).ok()) {
    book = std::move(with_rooms);
    return;
  }
  // Before the restart the rooms may have been elsewhere, so now they are chosen after the
  // balloons.
  (void)create_in(book);
  (void)book.Complete();
}

Status BalloonAdoption::CreateEmpty(BalloonBook& book, int type) const {
  const CpuSet missed = MissedIn(book);
  const CpuSet unused = setup_->available() - Seen();
  const BalloonType& own = setup_->type(type);
  const int index = book.NextIndex(type);
  const BalloonPart* parts = nullptr;
  for (const Balloon& balloon : at_start_.balloons())
    if (balloon.type == type && balloon.index == index) parts = &balloon.part;
  const int size = parts == nullptr ? setup_->MinCpus(type, index) : parts->All().size();
  const CpuSet free = book.FreeForNew(type, index);
  const CpuSet first = missed & free;
  const bool keeps_room = own.grow_within != BalloonLevel::kNone;
  // If fewer CPUs are missed than the balloon needs, it gets all of these and some others. If there
  // are enough, it chooses among them by its rules.
  if (!keeps_room && !first.empty() && first.size() < size) {
    for (const CpuSet& from : {free & unused, free}) {
      const StatusOr<CpuSet> rest =
          setup_->chooser().Grow(setup_->rules(type), first, from - first, size - first.size());
      if (!rest.ok()) continue;
      const CpuSet all = first | *rest;
      const bool made = own.composite()
                            ? book.Create(type, {{"missing elsewhere", all}}, parts).ok()
                            : book.Adopt(type, index, all).has_value();
      if (made) return OkStatus();
    }
  }
  return book.Create(type, {{"missing elsewhere", missed}, {"not used", unused}}, parts).status();
}

void BalloonAdoption::AdoptRooms(BalloonBook& book) const {
  for (const Found& found : found_)
    if (found.placed && !found.saved.room.empty())
      book.AdoptRoom(*book.Find(found.member.key), found.saved.room);
}

// Takes the borrowed CPUs from the placement's reason. Without a reason, they are the CPUs that
// containers see beside those of their balloon, and that other containers would see if these CPUs
// were idle.
void BalloonAdoption::AdoptBorrowed(BalloonBook& book) const {
  if (!setup_->follows_use()) return;
  const CpuSet missed = MissedIn(book);
  const CpuSet hidden = missed - Seen();
  for (const Found& found : found_) {
    if (!found.placed) continue;
    const std::optional<size_t> place = book.Find(found.member.key);
    const Balloon& balloon = book.balloons()[*place];
    if (!setup_->type(balloon.type).follows_use()) continue;
    CpuSet borrowed = AsReported(found, found.saved.borrowed);
    if (found.saved.Own().empty()) {
      const CpuSet visible = VisibleOf(found);
      borrowed = visible & (missed | (visible - book.SharedIdle(balloon)));
      if (found.member.hide_hyperthreads)
        borrowed |= setup_->machine().WithSiblings(visible) & hidden;
      borrowed -= balloon.cpus();
    }
    book.AdoptBorrowed(*place, borrowed);
  }
}

// Groups containers by the balloons that their placements name.
void BalloonAdoption::AdoptNamed(BalloonBook& book) {
  std::map<std::pair<int, int>, Group> named;
  for (Found& found : found_) {
    if (found.index < 0 || found.alone) continue;
    Group& group = named[{found.type, found.index}];
    group.type = found.type;
    group.visible |= VisibleOf(found);
    group.members.push_back(&found);
  }
  for (const auto& [name, group] : named) {
    CpuSet own;
    for (const Found* const found : group.members)
      own |= AsReported(*found, found->saved.Own());
    if (own.empty()) own = OwnOf(book, group, {}, {}, nullptr);
    own |= MissingOf(book, group, own);
    if (!own.empty()) AdoptGroup(book, name.second, group, own, false);
  }
}

// A reason may be older than the runtime's report, so only CPUs that the container sees count,
// and their siblings.
CpuSet BalloonAdoption::AsReported(const Found& found, const CpuSet& saved) const {
  const bool reported = setup_->options().pin_cpu && !found.container->may_be_elsewhere;
  return reported ? saved & setup_->machine().WithSiblings(VisibleOf(found)) : saved;
}

// CPUs of the containers that are missing in the balloon: the reason that names the balloon's CPUs
// may be older than the containers' CPUs, if the state could not be written.
CpuSet BalloonAdoption::MissingOf(const BalloonBook& book, const Group& group,
                                  const CpuSet& own) const {
  const int missing = TargetOf(group, group.type) - own.size();
  if (missing <= 0 || !setup_->options().pin_cpu || !setup_->sharing(group.type).empty()) return {};
  CpuSet seen = (group.visible & book.idle()) - own;
  if (seen.size() <= missing) return seen;
  return setup_->chooser().Grow(setup_->rules(group.type), own, seen, missing).value_or(CpuSet());
}

// The balloon, made by CreateFixed and still without containers, that has some of these CPUs;
// nullptr if there is none.
const Balloon* BalloonAdoption::OwnerOf(const BalloonBook& book, const CpuSet& cpus) {
  for (const Balloon& balloon : book.balloons()) {
    if (balloon.members.empty() && balloon.cpus().Intersects(cpus)) return &balloon;
  }
  return nullptr;
}

// The first free number of a balloon of the type that may have these CPUs; -1 if there is none.
int BalloonAdoption::IndexFor(const BalloonBook& book, int type, const CpuSet& own) const {
  std::set<int> used;
  for (const Balloon& balloon : book.balloons()) {
    if (balloon.type == type) used.insert(balloon.index);
  }
  const int count = static_cast<int>(used.size());
  if (count >= setup_->MostKept(type)) return -1;
  const int end = setup_->HasBounds(type) ? setup_->MostKept(type) : count + 1;
  for (int index = 0; index < end; ++index) {
    if (!used.contains(index) && own.IsSubsetOf(setup_->Bounds(type, index))) return index;
  }
  return -1;
}

// Whether all balloons that the type may still have are needed by other groups, which can be of no
// other type.
bool BalloonAdoption::IsClaimed(const BalloonBook& book, const std::vector<Group>& groups,
                                const Group& except, int type) const {
  const auto claims = std::ranges::count_if(groups, [&](const Group& group) {
    if (&group == &except || !group.plausible || group.members.front()->placed) return false;
    return std::ranges::all_of(group.members,
                               [&](const Found* found) { return found->member.type == type; });
  });
  return claims > 0 && book.Count(type) + claims >= setup_->MostKept(type);
}

// The types that a group's balloon may have, the likeliest first. If only the CPUs are known, the
// containers may also be guests in a balloon of another type.
std::vector<int> BalloonAdoption::TypesFor(const BalloonBook& book,
                                           const std::vector<Group>& groups, const Group& group,
                                           const CpuSet& others, Fit fit) const {
  std::map<int, int> members;
  for (const Found* const found : group.members)
    ++members[found->member.type];
  const bool may_be_other = fit == Fit::kOther && group.members.front()->lost;
  using Rank = std::tuple<bool, bool, bool, int>;
  std::vector<std::pair<Rank, int>> ranked;
  for (int type = 0; type < setup_->types(); ++type) {
    const bool always = book.Count(type) < setup_->MinBalloons(type);
    const bool its = members.contains(type);
    const bool other = may_be_other && !setup_->type(type).alone && setup_->MaxCpus(type, 0) > 0;
    if (!its && !other) continue;
    const bool mixed = setup_->sharing(type).empty() && group.visible.Intersects(others);
    const bool claimed = IsClaimed(book, groups, group, type);
    ranked.push_back({{mixed, claimed, !always, its ? -members[type] : 0}, type});
  }
  std::ranges::sort(ranked);
  std::vector<int> types;
  types.reserve(ranked.size());
  for (const auto& [rank, type] : ranked)
    types.push_back(type);
  return types;
}

// Adopts groups that are on CPUs which a balloon of a possible type would have for them: as many as
// they need, or fewer if other balloons have the rest.
void BalloonAdoption::AdoptUnnamed(BalloonBook& book, std::vector<Group>& groups, Fit fit) {
  for (Group& group : groups) {
    if (group.members.front()->placed || !group.plausible) continue;
    CpuSet others;
    for (const Group& other : groups) {
      if (&other != &group && other.plausible) others |= other.visible;
    }
    const CpuSet missed = MissedBy(groups, group);
    const Balloon* const owner = OwnerOf(book, group.visible);
    std::vector<int> types = TypesFor(book, groups, group, others, fit);
    if (owner != nullptr && group.members.front()->lost) types = {owner->type};
    for (const int type : types) {
      group.type = type;
      const Balloon* const its = owner != nullptr && owner->type == type ? owner : nullptr;
      const CpuSet own = OwnOf(book, group, others, missed, its);
      const int index = its != nullptr ? its->index : IndexFor(book, type, own);
      const int target = TargetOf(group, type);
      // A balloon needs at least one CPU for each component.
      const bool fewer = own.size() < target && own.size() >= setup_->WholeSize(type, 1);
      const bool exact = MayHave(group, type, own.size());
      const bool fits = exact ? fit != Fit::kFewer : fewer && fit != Fit::kExact;
      if (own.empty() || index < 0 || !fits) continue;
      if (AdoptGroup(book, index, group, own, true)) break;
    }
  }
}

// `exact`: only if the balloon can have all these CPUs.
bool BalloonAdoption::AdoptGroup(BalloonBook& book, int index, const Group& group,
                                 const CpuSet& own, bool exact) {
  const auto same = [&](const Balloon& balloon) {
    return balloon.type == group.type && balloon.index == index;
  };
  auto at = std::ranges::find_if(book.balloons(), same);
  const bool there = at != book.balloons().end();
  if (!there && book.Count(group.type) >= setup_->MostKept(group.type)) return false;
  const CpuSet more = there ? own - at->cpus() : own;
  if (exact && !more.IsSubsetOf(book.FreeForNew(group.type, index))) return false;
  const std::optional<size_t> place =
      book.Adopt(group.type, index, own, group.members.front()->saved);
  // A balloon that exists always may have no CPU, since all that its type lists are offline.
  if (!place || book.balloons()[*place].size == 0) return false;
  for (Found* const found : group.members) {
    BalloonMember member = found->member;
    if (found->index >= 0 && !found->saved.Own().empty()) {
      member.text = found->saved.text;
    } else {
      member = AsMember(*found, book, group.type, index);
    }
    book.Put(*place, std::make_shared<BalloonMember>(std::move(member)));
    found->placed = true;
  }
  return true;
}

CpuSet BalloonAdoption::VisibleOf(const Found& found) const {
  const CpuSet cpus = found.container->placement.cpus.value_or(CpuSet()) & setup_->available();
  return found.container->may_be_elsewhere ? CpuSet() : cpus;
}

// Whether `found` hides hyperthreads, and `other` consists of `visible` and sibling threads of it.
bool BalloonAdoption::HidesThreadsOf(const Found& found, const CpuSet& visible,
                                     const CpuSet& other) const {
  return found.member.hide_hyperthreads && visible.IsSubsetOf(other) &&
         other.IsSubsetOf(setup_->machine().WithSiblings(visible));
}

// Groups containers without balloon names. A group has containers on the same CPUs that are of one
// type, or of which only the CPUs are known. `loosely`: also containers of one type that have CPUs
// in common, if the type shares no idle CPUs.
std::vector<BalloonAdoption::Group> BalloonAdoption::GroupUnnamed(bool loosely) {
  std::vector<Group> groups;
  for (Found& found : found_) {
    if (found.placed || found.alone) continue;
    found.index = -1;
    const CpuSet visible = VisibleOf(found);
    if (visible.empty()) continue;
    const bool shares = !setup_->sharing(found.member.type).empty();
    const auto at = std::ranges::find_if(groups, [&](const Group& group) {
      const bool guests = found.lost && group.members.front()->lost;
      if (!guests && group.type != found.member.type) return false;
      if (group.visible == visible) return true;
      if (HidesThreadsOf(found, visible, group.visible)) return true;
      if (HidesThreadsOf(*group.members.front(), group.visible, visible)) return true;
      return loosely && !shares && group.type == found.member.type &&
             group.visible.Intersects(visible);
    });
    Group& group = at == groups.end() ? groups.emplace_back() : *at;
    if (group.members.empty()) group.type = found.member.type;
    group.visible |= visible;
    group.members.push_back(&found);
  }
  for (Group& group : groups)
    group.plausible = Plausible(group);
  // Groups whose containers are of fewer types come first, since they have fewer possible balloons.
  std::ranges::stable_sort(groups, {}, [](const Group& group) {
    std::set<int> types;
    for (const Found* const found : group.members)
      types.insert(found->member.type);
    return types.size();
  });
  return groups;
}

}  // namespace resmgr
