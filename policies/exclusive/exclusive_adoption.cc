// SPDX-License-Identifier: Apache-2.0
// The part of ExclusivePolicy that takes over running containers.
#include <utility>

#include "pkg/allocator/want_of_room.h"
#include "pkg/claims/held_claims.h"
#include "pkg/policy/conventions.h"
#include "policies/exclusive/exclusive_policy.h"

namespace resmgr {
namespace {

constexpr std::string_view kFound = "the CPUs that it was found on";

// Whether the container shares because there was no room when it was placed. CPUs that became free
// since are not a reason to move it.
bool SharesForWantOfRoom(const Placement& placement) {
  return placement.pool == kSharedPool && placement.reason.starts_with(kWantOfRoom);
}

// CPUs that other containers use. A container that may be elsewhere is not counted in `users`, so
// all users there are others.
const CpuSet& UsedByOthers(const CpuUsers& users, const Container& container) {
  return container.may_be_elsewhere ? users.any : users.several;
}

}  // namespace

StatusOr<Plan> ExclusivePolicy::Reconcile(const Snapshot& snapshot) {
  std::map<ContainerKey, Grant> former = std::exchange(grants_, {});
  wanting_.clear();
  granted_ = {};
  sharers_.clear();
  const Members members = MembersOf(snapshot);
  CpuUsers users;
  CpuUsers running;
  for (const Member& member : members) {
    const Container& container = *member.container;
    if (!container.placement.cpus || member.claim.unbound) continue;
    if (container.may_be_elsewhere) continue;
    users.Add(*container.placement.cpus);
    if (container.state == ContainerState::kRunning) running.Add(*container.placement.cpus);
  }
  AdoptExact(members, users, true);
  AdoptMixed(members, users);
  AdoptExact(members, running, false);
  AdoptUnclear(members, running);
  FinishGrowing(members);
  const std::map<ContainerKey, std::string> refused = GrantTheRest(members);
  TakeExplanations(former);
  Plan plan;
  for (const Member& member : members) {
    const ContainerKey key = member.container->key;
    if (Shares(member.claim, key)) AddSharer(key);
    const auto why = refused.find(key);
    Placement placement;
    if (why == refused.end()) {
      Place(member.claim, key, placement);
    } else {
      PlaceShared(why->second, placement);
    }
    if (placement.SameDecision(member.container->placement)) continue;
    plan.changes.push_back({key, std::move(placement)});
  }
  return plan;
}

// Placements do not tell what was considered, so grants that are as before take that over.
void ExclusivePolicy::TakeExplanations(std::map<ContainerKey, Grant>& former) {
  for (auto& [key, grant] : grants_) {
    const auto before = former.find(key);
    if (before == former.end() || before->second.cpus != grant.cpus) continue;
    if (grant.considered.empty()) grant.considered = std::move(before->second.considered);
  }
}

ExclusivePolicy::Members ExclusivePolicy::MembersOf(const Snapshot& snapshot) {
  Members members;
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    Member& member = members.emplace_back(Member{&pod, &container, ClaimOf(pod, container)});
    if (member.claim.exclusive == 0 || !SharesForWantOfRoom(container.placement)) return;
    wanting_[container.key] = member.claim.exclusive;
    member.claim = CpuClaim();
    member.claim.why = container.placement.reason;
  });
  return members;
}

// Adopts exclusive CPUs that are fully known: CPUs saved as exclusive, and, of a container that is
// entitled only to exclusive CPUs, exactly that many CPUs of which it is the sole user. A sole user
// of fewer CPUs was about to get more: it keeps these (FinishGrowing). Sole users come first
// (`alone`). In the second pass only running containers count as `users`: of two containers on the
// same CPUs, one may have exactly that many by coincidence, and if both run, it is a coincidence.
void ExclusivePolicy::AdoptExact(const Members& members, const CpuUsers& users, bool alone) {
  for (const auto& [pod, container, claim] : members) {
    const Placement& present = container->placement;
    const bool decided = !present.exclusive.empty();
    if (claim.exclusive == 0 || (!decided && claim.shared)) continue;
    const CpuSet cpus = decided ? present.exclusive : present.cpus.value_or(CpuSet());
    const bool own = decided || !cpus.Intersects(UsedByOthers(users, *container));
    if (grants_.contains(container->key) || (alone && !own)) continue;
    if (!own && container->state == ContainerState::kRunning) continue;
    // The CPUs were saved as shared, so it is the sole user only by coincidence.
    if (cpus.size() < claim.exclusive && !decided && present.pool == kSharedPool) continue;
    if (cpus.empty() || cpus.size() > claim.exclusive || !Legal(cpus)) continue;
    if (!alone && (cpus.size() < claim.exclusive || !cpus.IsSubsetOf(Ownable(claim)))) continue;
    const bool keeps_reason = decided && present.reason.starts_with(claim.why);
    Give(container->key, {cpus,
                          keeps_reason ? present.reason : fmt::format("{}: {}", claim.why, kFound),
                          pod->id,
                          {}});
  }
}

// Adopts a container with exclusive and shared CPUs if only the runtime's report is known: its
// exclusive CPUs are those that no other container uses. There may be more of these than it is
// entitled to, if it is also the sole user of shared CPUs. Then any of them will do, since its
// cpuset stays the same.
void ExclusivePolicy::AdoptMixed(const Members& members, const CpuUsers& users) {
  for (const Member& member : members) {
    if (!IsUnknownMix(member)) continue;
    const Container& container = *member.container;
    const CpuSet own =
        (*container.placement.cpus & (Grantable() - granted_)) - UsedByOthers(users, container);
    AdoptSome(member, own, cpus_.isolated);
  }
}

// Adopts a container whose exclusive CPUs others use as well, because an earlier change did not
// reach all containers. At most one of these containers can be running there, so CPUs that no two
// running containers use are preferred.
void ExclusivePolicy::AdoptUnclear(const Members& members, const CpuUsers& running) {
  for (const Member& member : members) {
    if (!IsUnknownMix(member) || grants_.contains(member.container->key)) continue;
    CpuSet own = *member.container->placement.cpus & (Ownable(member.claim) - granted_);
    const bool runs = member.container->state == ContainerState::kRunning;
    const CpuSet undisputed = own - UsedByOthers(running, *member.container);
    if (runs) own = undisputed;
    AdoptSome(member, own, runs ? cpus_.isolated : undisputed);
  }
}

bool ExclusivePolicy::IsUnknownMix(const Member& member) {
  const Placement& present = member.container->placement;
  const bool mixed = member.claim.exclusive > 0 && member.claim.shared;
  return mixed && present.exclusive.empty() && present.cpus;
}

void ExclusivePolicy::AdoptSome(const Member& member, const CpuSet& from, const CpuSet& preferred) {
  if (from.size() < member.claim.exclusive) return;
  // Isolated CPUs are never shared, so the container keeps all that it has.
  const CpuSet isolated = from & cpus_.isolated;
  CpuSet place = PlaceToKeep(from & preferred, member.claim, isolated);
  if (place.empty()) place = PlaceToKeep(from, member.claim, isolated);
  const StatusOr<ExclusivePicker::Pick> pick =
      picker_.Shrink(place.empty() ? from : from & place, member.claim.exclusive, preferred);
  if (!pick.ok() || !Legal(pick->cpus)) return;
  Give(member.container->key,
       {pick->cpus, fmt::format("{}: {}", member.claim.why, kFound), member.pod->id, {}});
}

// Gives containers with fewer exclusive CPUs the missing ones, unless fewer were decided for them.
void ExclusivePolicy::FinishGrowing(const Members& members) {
  for (const auto& [pod, container, claim] : members) {
    const auto held = grants_.find(container->key);
    if (held == grants_.end() || held->second.cpus.size() == claim.exclusive) continue;
    const std::string fewer = fmt::format("{}: {}", claim.why, kFewerCpus);
    if (held->second.reason != fewer) {
      StatusOr<Grant> grant = Resize(held->second, claim);
      if (grant.ok()) {
        Take(container->key);
        Give(container->key, *std::move(grant));
        continue;
      }
    }
    held->second.reason = fewer;
    wanting_[container->key] = claim.exclusive;
  }
}

// Places the other containers. Since an existing container cannot be refused, it shares if there is
// no room. Returns such containers with the reason.
std::map<ContainerKey, std::string> ExclusivePolicy::GrantTheRest(const Members& members) {
  std::map<ContainerKey, std::string> refused;
  const CpuSet shared = SharedNow();
  for (const auto& [pod, container, claim] : members) {
    if (claim.exclusive == 0 || grants_.contains(container->key)) continue;
    if (WasFoundSharing(container->placement, shared)) {
      wanting_[container->key] = claim.exclusive;
      refused.emplace(container->key, fmt::format("{}when it was found", kWantOfRoom));
      continue;
    }
    StatusOr<Grant> grant = Find(claim, *pod, {.cpus = container->placement.exclusive}, granted_);
    if (grant.ok()) {
      Give(container->key, *std::move(grant));
    } else {
      wanting_[container->key] = claim.exclusive;
      refused.emplace(container->key, fmt::format("{}{}", kWantOfRoom, Message(grant.status())));
    }
  }
  return refused;
}

bool ExclusivePolicy::WasFoundSharing(const Placement& present, const CpuSet& shared) const {
  const bool unknown =
      present.pool.empty() && present.exclusive.empty() && present.reason != kWasToChange;
  return unknown && present.cpus && shared.IsSubsetOf(*present.cpus) &&
         present.cpus->IsSubsetOf(cpus_.shared | shared);
}

// Gives containers that share for want of room, or have fewer exclusive CPUs than requested, the
// requested number if it is free now.
StatusOr<Plan> ExclusivePolicy::Rebalance(const Snapshot& snapshot) {
  const CpuSet shared_before = SharedNow();
  std::vector<std::pair<ContainerKey, CpuClaim>> granted;
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    // The containers of a claim know its CPUs.
    if (!wanting_.contains(container.key) || HeldClaims::IsPart(container.key)) return;
    CpuClaim claim = ClaimOf(pod, container);
    const auto held = grants_.find(container.key);
    StatusOr<Grant> grant =
        held == grants_.end() ? Find(claim, pod, {}, granted_) : Resize(held->second, claim);
    const int own = held == grants_.end() ? 0 : held->second.cpus.size();
    if (!grant.ok() || !CheckOverhead(snapshot, claim.exclusive - own).ok()) return;
    Take(container.key);
    Give(container.key, *std::move(grant));
    granted.emplace_back(container.key, std::move(claim));
  });
  Plan plan;
  // The plan must have each container only once.
  for (const auto& [key, claim] : granted)
    RemoveSharer(key);
  TellSharers(shared_before, {}, plan);
  for (const auto& [key, claim] : granted) {
    if (Shares(claim, key)) AddSharer(key);
    Place(claim, key, plan.Change(key));
  }
  return plan;
}

}  // namespace resmgr
