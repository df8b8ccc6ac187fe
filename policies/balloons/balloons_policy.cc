// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloons_policy.h"

#include <algorithm>
#include <utility>

#include "pkg/allocator/want_of_room.h"
#include "pkg/model/container_facts.h"
#include "policies/balloons/balloon_adoption.h"
#include "policies/balloons/balloon_lending.h"
#include "policies/balloons/balloon_placer.h"
#include "policies/balloons/balloon_plan.h"
#include "policies/balloons/balloons_options.h"

namespace resmgr {
namespace {

constexpr std::string_view kWhereItWas = "; where it was before";

std::string_view VerdictOf(const ConsideredBalloon& balloon) {
  if (!balloon.pods_fit) return "has as many pods as it may";
  if (balloon.needed > balloon.most) return "too small";
  return balloon.needed <= balloon.size ? "has room" : "can grow";
}

std::string TextOf(const ConsideredBalloon& balloon, std::string_view name) {
  return fmt::format("{}: {} of {}m requested, needs {} CPUs, could have {}: {}", name,
                     balloon.request, 1000 * balloon.size, balloon.needed, balloon.most,
                     VerdictOf(balloon));
}

Status ReadKeys(const ConfigNode& section, std::vector<ConfigKey>* keys) {
  return ReadBalloonsOptions(&section, keys).status();
}

}  // namespace

StatusOr<std::unique_ptr<Policy>> BalloonsPolicy::Create(const PolicyContext& context) {
  RESMGR_ASSIGN_OR_RETURN(BalloonsOptions options, ReadBalloonsOptions(context.section));
  RESMGR_ASSIGN_OR_RETURN(BalloonSetup setup, BalloonSetup::Create(context, std::move(options)));
  std::unique_ptr<BalloonsPolicy> policy(new BalloonsPolicy(
      std::make_shared<const BalloonSetup>(std::move(setup)), PinningRule(context.runtimes)));
  const Status made = policy->book_.CreateAlways();
  if (!made.ok() && !policy->setup_->FitsOnline()) {
    return InvalidArgument(
        "policy balloons: the balloons that always exist do not fit into CPUs "
        "{}: {}",
        policy->setup_->available().ToString(), Message(made));
  }
  return std::unique_ptr<Policy>(std::move(policy));
}

BalloonsPolicy::BalloonsPolicy(std::shared_ptr<const BalloonSetup> setup, PinningRule pinning)
    : setup_(std::move(setup)), pinning_(std::move(pinning)), book_(setup_) {}

std::unique_ptr<Policy> BalloonsPolicy::Clone() const {
  std::unique_ptr<BalloonsPolicy> clone(new BalloonsPolicy(setup_, pinning_));
  clone->book_ = book_;
  return clone;
}

bool BalloonsPolicy::WantsHints() const {
  return std::ranges::any_of(setup_->options().types,
                             [](const BalloonType& type) { return !type.close_to.empty(); });
}

bool BalloonsPolicy::WantsPodResources() const {
  if (!setup_->options().pod_resource_api) return false;
  return std::ranges::any_of(setup_->options().types, [](const BalloonType& type) {
    return std::ranges::any_of(
        type.close_to, [](std::string_view path) { return path.starts_with("podresourceapi:"); });
  });
}

std::vector<std::string> BalloonsPolicy::Unheeded(const Pod& pod,
                                                  const Container& container) const {
  return rules().Unheeded(pod, container);
}

StatusOr<Plan> BalloonsPolicy::Reconcile(const Snapshot& snapshot) {
  BalloonAdoption adoption(setup_, rules());
  snapshot.ForEachContainer(
      [&](const Pod& pod, const Container& container) { adoption.Add(pod, container); });
  const BalloonBook before = std::exchange(book_, adoption.Run());
  book_.TakeOver(before);
  Plan plan;
  const BalloonPlan made = plan_of_book();
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    const std::optional<size_t> place = book_.Find(container.key);
    Placement placement =
        place ? made.PlacementOf(book_.balloons()[*place], *book_.MemberOf(container.key))
              : UnboundPlacement(adoption.WhyInNone(container.key), container);
    if (placement.SameDecision(container.placement)) return;
    plan.changes.push_back({container.key, std::move(placement)});
  });
  return plan;
}

StatusOr<Plan> BalloonsPolicy::Allocate(const Snapshot& snapshot, const Pod& pod,
                                        const Container& container, const Container* predecessor) {
  BalloonBook before = book_;
  if (const std::string why = rules().WhyInNone(pod, container); !why.empty()) {
    if (predecessor != nullptr) book_.Leave(predecessor->key);
    Plan plan = MakePlan(snapshot, before);
    plan.Change(container.key) = UnboundPlacement(why, container);
    return plan;
  }
  RESMGR_RETURN_IF_ERROR(rules().CheckAsked(pod, container));
  StatusOr<BalloonMember> decided = rules().MemberFor(pod, container);
  if (!decided.ok()) return decided.status();
  const auto member = std::make_shared<BalloonMember>(*std::move(decided));
  const bool alone = setup_->type(member->type).alone;
  if (alone && predecessor != nullptr)
    member->hints = {{"where it was before", predecessor->placement.exclusive}};
  if (predecessor == nullptr || alone || !JoinFormer(*predecessor, member)) {
    if (predecessor != nullptr) book_.Leave(predecessor->key);
    const StatusOr<size_t> place = BalloonPlacer(book_).Place(member);
    if (!place.ok()) {
      book_ = std::move(before);
      const std::string holders = DescribeCpuHolders(snapshot, {}, container.key);
      if (holders.empty()) return place.status();
      return MakeStatus(place.status().code(),
                        fmt::format("{}; {}", Message(place.status()), holders));
    }
  }
  return MakePlan(snapshot, before);
}

bool BalloonsPolicy::JoinFormer(const Container& predecessor,
                                const std::shared_ptr<BalloonMember>& member) {
  const BalloonBook before = book_;
  const std::string text = member->text;
  const Placement& former = predecessor.placement;
  member->text += kWhereItWas;
  const int type = member->type;
  if (const std::optional<size_t> held = book_.Find(predecessor.key)) {
    const std::string held_text = book_.MemberOf(predecessor.key)->text;
    // A member that waits for room goes on waiting: its text says so.
    if (held_text.starts_with(kWantOfRoom)) member->text = held_text;
    if (book_.balloons()[*held].type == type &&
        book_.Replace(*held, predecessor.key, member).ok()) {
      book_.GrowShort();
      return true;
    }
    book_.Leave(predecessor.key);
    member->text = text + std::string(kWhereItWas);
  }
  const auto at = std::ranges::find_if(book_.balloons(), [&](const Balloon& balloon) {
    return balloon.type == type && book_.NameOf(balloon) == former.pool;
  });
  // A new balloon, or an empty one, is the right one only where those that the container belongs to
  // cannot have it.
  if (at == book_.balloons().end() || at->members.empty()) {
    member->text = text;
    if (BalloonPlacer(book_).PlaceTogether(member).ok()) return true;
    member->text += kWhereItWas;
  }
  std::optional<size_t> place;
  const BalloonReason saved = ReadReason(former.reason);
  const CpuSet own = saved.Own();
  if (at != book_.balloons().end()) {
    if (IsFormer(*at, own, *member)) place = static_cast<size_t>(at - book_.balloons().begin());
  } else if (book_.Count(type) < setup_->MaxBalloons(type)) {
    const int index = book_.NextIndex(type);
    if (!own.empty() && own.IsSubsetOf(book_.FreeForNew(type, index))) {
      place = book_.Adopt(type, index, own, saved);
      book_.AdoptRoom(*place, saved.room);
      (void)book_.Complete();
      const bool wants_room = setup_->type(type).grow_within != BalloonLevel::kNone;
      if (wants_room && book_.balloons()[*place].room.empty()) place.reset();
    }
  }
  if (place && book_.Join(*place, member).ok()) {
    // The former balloon may have had CPUs for other containers, too, which are not there any more.
    book_.ShrinkLarge();
    return true;
  }
  book_ = before;
  member->text = text;
  return false;
}

// A new balloon may have the name of a former one, so an equal name does not prove that it is the
// same.
bool BalloonsPolicy::IsFormer(const Balloon& balloon, const CpuSet& own,
                              const BalloonMember& member) const {
  if (balloon.members.empty() || balloon.HoldsPodOf(member)) return true;
  return !setup_->type(balloon.type).keeps_apart() && own.Intersects(balloon.cpus());
}

StatusOr<Plan> BalloonsPolicy::Update(const Snapshot& snapshot, const Pod& pod,
                                      const Container& container) {
  const ContainerKey key = container.key;
  if (!rules().WhyInNone(pod, container).empty()) return Plan{};
  StatusOr<BalloonMember> decided = rules().MemberFor(pod, container);
  const std::optional<size_t> place = book_.Find(key);
  // A running container may have annotations or options by which it could not be created any more.
  if (!decided.ok() && place) decided = rules().RunningMember(pod, container);
  if (!decided.ok()) return decided.status();
  BalloonBook before = book_;
  const auto member = std::make_shared<BalloonMember>(*decided);
  const auto anew = std::make_shared<BalloonMember>(*std::move(decided));
  bool may_stay = false;
  bool may_grow = false;
  if (place) {
    const BalloonMemberPtr held = book_.MemberOf(key);
    member->text = held->text;
    member->considered = held->considered;
    may_stay = member->demand <= held->demand;
    // A guest is placed anew, to find room in a balloon of its own type.
    may_grow = held->type == book_.balloons()[*place].type;
    if (may_grow && book_.Replace(*place, key, member).ok()) {
      book_.GrowShort();
      return MakePlan(snapshot, before);
    }
    book_.Leave(key);
  }
  StatusOr<size_t> found = BalloonPlacer(book_).PlaceWithoutOthers(anew);
  if (!found.ok() && may_grow) {
    const BalloonBook left = std::exchange(book_, before);
    if (BalloonPlacer(book_).GrowInPlace(*place, member).ok()) return MakePlan(snapshot, before);
    book_ = left;
  }
  if (!found.ok()) found = BalloonPlacer(book_).Place(anew);
  if (found.ok()) {
    // A balloon that would only be shorter of CPUs with the container loses none of its CPUs to
    // others meanwhile.
    const bool same = place && book_.balloons()[*found].serial == before.balloons()[*place].serial;
    if (same && anew->text.starts_with(kWantOfRoom)) {
      book_ = before;
      book_.ReplaceShort(*place, key, anew);
    }
    return MakePlan(snapshot, before);
  }
  book_ = std::move(before);
  if (!may_stay) return found.status();
  return Plan{};
}

std::vector<ConsideredPlace> BalloonsPolicy::Considered(ContainerKey key) const {
  if (!book_.Find(key)) return {};
  std::vector<ConsideredPlace> places;
  for (const ConsideredBalloon& considered : book_.MemberOf(key)->considered) {
    if (places.size() == kMostToldBalloons) break;
    ConsideredPlace& place = places.emplace_back();
    place.name = book_.NameOf(considered.type, considered.index);
    place.free = MilliCpu{int64_t{1000} * considered.size - considered.request};
    place.verdict = VerdictOf(considered);
  }
  return places;
}

std::vector<std::string> BalloonsPolicy::WaysIn(const Snapshot& /*snapshot*/, const Pod& pod,
                                                const Container& container) const {
  const StatusOr<BalloonMember> member = rules().MemberFor(pod, container);
  if (!member.ok()) return {};
  BalloonBook book = book_;
  return BalloonPlacer(book).WaysIn(*member);
}

StatusOr<Plan> BalloonsPolicy::Release(const Snapshot& snapshot, ContainerKey key) {
  const BalloonBook before = book_;
  book_.Leave(key);
  return MakePlan(snapshot, before);
}

// The CPUs that its former balloon would regain must be idle, and no other balloon may have its
// name.
bool BalloonsPolicy::MayReturn(ContainerKey key, const Placement& former) const {
  const CpuSet own = ReadReason(former.reason).Own();
  const std::optional<size_t> place = book_.Find(key);
  if (place && book_.NameOf(book_.balloons()[*place]) == former.pool)
    return (own - book_.balloons()[*place].cpus()).IsSubsetOf(book_.idle());
  const bool taken = std::ranges::any_of(book_.balloons(), [&](const Balloon& balloon) {
    return book_.NameOf(balloon) == former.pool;
  });
  if (taken) return false;
  const bool alone = place && book_.balloons()[*place].members.size() == 1;
  return (alone ? own - book_.balloons()[*place].cpus() : own).IsSubsetOf(book_.idle());
}

// Containers that share for want of room look for a balloon of their type again.
StatusOr<Plan> BalloonsPolicy::Rebalance(const Snapshot& snapshot) {
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    if (!container.placement.reason.starts_with(kWantOfRoom)) return;
    StatusOr<BalloonMember> decided = rules().MemberFor(pod, container);
    if (!decided.ok() || !book_.Find(container.key)) return;
    const BalloonBook held = book_;
    book_.Leave(container.key);
    const auto member = std::make_shared<BalloonMember>(*std::move(decided));
    const bool found = BalloonPlacer(book_).Place(member).ok();
    if (!found || member->text.starts_with(kWantOfRoom)) book_ = held;
  });
  book_.SettleBorrowed();
  return plan_of_book().Complete(snapshot);
}

StatusOr<Plan> BalloonsPolicy::FollowUse(const Snapshot& snapshot, const policy::MeasuredUse& use) {
  const BalloonBook before = book_;
  FollowMeasuredUse(book_, use);
  return MakePlan(snapshot, before);
}

Plan BalloonsPolicy::MakePlan(const Snapshot& snapshot, const BalloonBook& before) {
  book_.SettleBorrowed();
  return plan_of_book().Since(before, snapshot);
}

std::vector<std::string> BalloonsPolicy::Explain(ContainerKey key) const {
  const std::optional<size_t> place = book_.Find(key);
  if (!place) return {};
  const Balloon& balloon = book_.balloons()[*place];
  std::vector<std::string> lines;
  const BalloonMemberPtr member = book_.MemberOf(key);
  for (const ConsideredBalloon& considered : member->considered) {
    if (lines.size() == kMostToldBalloons) {
      lines.emplace_back("and more of the type");
      break;
    }
    lines.push_back(TextOf(considered, book_.NameOf(considered.type, considered.index)));
  }
  if (!balloon.borrowed.empty()) {
    lines.push_back(fmt::format("{}: also has idle CPUs {}, by what its containers use",
                                book_.NameOf(balloon), balloon.borrowed.ToString()));
  }
  for (const std::string& hint : balloon.dropped)
    lines.push_back(fmt::format("{}: not followed: {}", book_.NameOf(balloon), hint));
  for (const std::string& path : setup_->type(balloon.type).close_to) {
    if (!CpusNearDevice(setup_->machine(), path).empty()) continue;
    lines.push_back(fmt::format("{}: only devices and volumes of containers tell where {} is",
                                book_.NameOf(balloon), path));
  }
  return lines;
}

ClassNames BalloonsPolicy::ClassesOfType(int type) const {
  const BalloonType& own = setup_->type(type);
  ClassNames classes = own.classes;
  if (!own.irq_mode.empty()) classes["irq"] = own.irq_mode;
  if (!own.irq_claims.empty())
    classes["irq-claim"] = fmt::format("{}", fmt::join(own.irq_claims, "\n"));
  return classes;
}

ClassNames BalloonsPolicy::ClassesOf(ContainerKey key) const {
  const std::optional<size_t> place = book_.Find(key);
  return place ? ClassesOfType(book_.balloons()[*place].type) : ClassNames();
}

// Adds zones for the parts of a composite balloon whose CPUs have classes of their own.
void BalloonsPolicy::AddParts(const BalloonPart& part, const std::string& above,
                              std::vector<Zone>& zones) const {
  int number = 0;
  for (const BalloonPart& one : part.parts) {
    const std::string name = fmt::format("{}/{}.{}", above, setup_->type(one.type).name, number++);
    AddParts(one, name, zones);
    ClassNames classes = ClassesOfType(one.type);
    if (!one.parts.empty() || classes.empty()) continue;
    zones.push_back({.name = name,
                     .parent = above,
                     .kind = "component",
                     .cpus = one.cpus,
                     .shared = one.cpus,
                     .free = MilliCpu{0},
                     .classes = std::move(classes)});
  }
}

Placement BalloonsPolicy::UnboundPlacement(const std::string& why,
                                           const Container& container) const {
  Placement placement;
  placement.reason = why + container.needs_note;
  return placement;
}

std::vector<Zone> BalloonsPolicy::Zones(const Snapshot& /*snapshot*/) const {
  std::vector<Zone> zones;
  const auto add = [&](Zone zone) {
    for (const int node : setup_->machine().NodesOf(zone.cpus))
      zone.mems.Add(node);
    zones.push_back(std::move(zone));
  };
  for (int type = 0; type < setup_->types(); ++type) {
    const bool alone = setup_->type(type).alone;
    std::vector<const Balloon*> own;
    for (const Balloon& balloon : book_.balloons()) {
      if (balloon.type == type) own.push_back(&balloon);
    }
    std::ranges::sort(own, {}, &Balloon::index);
    for (const Balloon* const balloon : own) {
      add({.name = book_.NameOf(*balloon),
           .kind = "balloon",
           .cpus = balloon->cpus() | balloon->borrowed,
           .exclusive = alone ? balloon->cpus() : CpuSet(),
           .shared =
               alone ? CpuSet() : balloon->cpus() | balloon->borrowed | book_.SharedIdle(*balloon),
           .shared_request = MilliCpu{alone ? 0 : balloon->request},
           .free = MilliCpu{alone ? 0 : int64_t{1000} * book_.MostNow(*balloon) - balloon->request},
           .containers = static_cast<int>(balloon->members.size()),
           .classes = ClassesOfType(type)});
      std::vector<Zone> parts;
      AddParts(balloon->part, book_.NameOf(*balloon), parts);
      for (Zone& part : parts)
        add(std::move(part));
    }
  }
  const CpuSet idle = book_.unlent();
  const std::string& idle_class = setup_->options().idle_cpu_class;
  if (!idle.empty()) {
    add({.name = "idle",
         .kind = "idle",
         .cpus = idle,
         .classes = {{"cpu", idle_class.empty() ? "default" : idle_class}}});
  }
  return zones;
}

PolicyFactory BalloonsPolicyFactory() {
  return {
      .name = "balloons",
      .description =
          "containers in balloons: sets of CPUs by type, which grow and shrink with what "
          "their containers request",
      .create = BalloonsPolicy::Create,
      .read_section = ReadKeys,
      .without_effect = BalloonsWithoutEffect,
      .named_classes = BalloonsNamedClasses,
  };
}

}  // namespace resmgr
