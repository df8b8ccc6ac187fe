// SPDX-License-Identifier: Apache-2.0
#include "pkg/claims/claimed_policy.h"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "pkg/allocator/alignment.h"
#include "pkg/base/amount_text.h"
#include "pkg/claims/claim_options.h"
#include "pkg/claims/claim_place.h"
#include "pkg/claims/part_placer.h"

namespace resmgr {
namespace {

constexpr int kMostParts = 32;  // results of an allocation, by the API

// Whether some cores within these CPUs have together so many threads.
bool HasWholeCores(const Machine& machine, const CpuSet& place, int cpus) {
  std::vector<bool> reached(static_cast<size_t>(cpus) + 1);
  reached[0] = true;
  for (const CpuSet& core : machine.cores()) {
    if (!core.IsSubsetOf(place)) continue;
    const auto threads = static_cast<size_t>(core.size());
    for (size_t sum = reached.size(); sum-- > threads;)
      if (reached[sum - threads]) reached[sum] = true;
  }
  return reached.back();
}

// Whether the machine has so many CPUs where the part and the parameters want them.
Status CheckPart(const ClaimPart& part, const ClaimOptions& options, const Machine& machine) {
  RESMGR_ASSIGN_OR_RETURN(const ClaimPlace found, PlaceOf(part, options, machine));
  const CpuSet& place = found.name.empty() ? machine.online() : found.cpus;
  const std::string needed = CountText(part.cpus, "CPU");
  if (part.cpus > place.size()) {
    return InvalidArgument("needs {}{}, and there are {}", needed, DescribeOptions(options),
                           place.size());
  }
  if (options.WholeCores() && !HasWholeCores(machine, place, part.cpus)) {
    return InvalidArgument("{}: no whole cores there have {} together",
                           options.whole_cores ? "wholeCores" : "avoidSiblings", needed);
  }
  if (!options.l3) return OkStatus();
  const AlignedPlaces places(machine);
  const bool fits = std::ranges::any_of(places.Of(Alignment::kL3), [&](const AlignedPlace& cache) {
    const CpuSet cpus = cache.cpus & place;
    return options.WholeCores() ? HasWholeCores(machine, cpus, part.cpus)
                                : cpus.size() >= part.cpus;
  });
  if (fits) return OkStatus();
  return InvalidArgument("l3: no L3 cache there has {}", needed);
}

Status CheckClaim(const Claim& claim, const Machine& machine) {
  if (claim.uid.empty()) return InvalidArgument("a claim without uid");
  if (claim.parts.empty()) return InvalidArgument("it asks for no CPUs");
  if (claim.parts.size() > kMostParts) {
    return InvalidArgument("it has more than {} parts", kMostParts);
  }
  for (const ClaimPart& part : claim.parts) {
    if (part.cpus < 1) return InvalidArgument("device {}: no CPUs are asked for", part.device);
    RESMGR_RETURN_IF_ERROR(
        Annotate(CheckPart(part, claim.options, machine), fmt::format("device {}", part.device)));
  }
  return OkStatus();
}

// Whether a container that is not on its own claims has CPUs of claims as its own, as one that a
// daemon finds where it was before an update.
bool AnyDisputed(const Snapshot& snapshot, const HeldClaims& held, const ClaimCarriers& carriers) {
  const CpuSet claimed = held.Cpus();
  bool disputed = false;
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    disputed |= container.placement.exclusive.Intersects(claimed) &&
                !ClaimView::IsHidden(container.key, held, carriers);
  });
  return disputed;
}

// Leaves the changes of containers in the plan.
void RemoveParts(Plan& plan) {
  std::erase_if(plan.changes,
                [](const PlacementChange& change) { return HeldClaims::IsPart(change.key); });
}

// A claim's CPUs that are online, as a place that the policy behind is to keep.
void ShowUsable(const CpuSet& usable, Placement& placement) {
  placement.exclusive &= usable;
  placement.cpus = placement.cpus.value_or(CpuSet()) & usable;
  if (placement.cpus->empty()) placement.cpus = placement.exclusive;
  if (!placement.exclusive.empty()) return;
  placement.cpus.reset();
  placement.pool.clear();
}

}  // namespace

ClaimedPolicy::ClaimedPolicy(std::unique_ptr<Policy> policy, const Machine& machine,
                             const ClaimCarriers& carriers)
    : policy_(std::move(policy)),
      machine_(machine),
      carriers_(carriers),
      held_(std::make_shared<HeldClaims>()) {}

std::unique_ptr<ClaimedPolicy> ClaimedPolicy::CloneOn(const Policy& policy) const {
  auto copy = std::make_unique<ClaimedPolicy>(policy.Clone(), machine_, carriers_);
  copy->held_ = held_;
  copy->must_keep_ = must_keep_;
  copy->usable_ = usable_;
  return copy;
}

void ClaimedPolicy::Hold(HeldClaims held) {
  held_ = std::make_shared<HeldClaims>(std::move(held));
}

// Calls with the snapshot that the policy behind is to see.
template <typename Ask>
auto ClaimedPolicy::AsSeen(const Snapshot& snapshot, Ask ask) const {
  if (held_->empty()) return ask(snapshot);
  return ask(ClaimView(snapshot, *held_, carriers_));
}

template <typename Decide>
StatusOr<Plan> ClaimedPolicy::Decided(const Snapshot& snapshot, Decide decide) {
  if (held_->empty()) return decide(snapshot);
  // The view refers to them, and the plan may replace them.
  const std::shared_ptr<const HeldClaims> held = held_;
  return OfContainers(decide(ClaimView(snapshot, *held, carriers_)));
}

// Takes the parts of claims out of the plan. Their CPUs stay; other decisions about them are noted.
StatusOr<Plan> ClaimedPolicy::OfContainers(StatusOr<Plan> plan) {
  if (!plan.ok()) return plan;
  RESMGR_RETURN_IF_ERROR(CheckOthers(*plan, held_->Cpus()));
  std::shared_ptr<HeldClaims> next;
  for (const PlacementChange& change : plan->changes) {
    if (!HeldClaims::IsPart(change.key)) continue;
    if (next == nullptr) next = std::make_shared<HeldClaims>(*held_);
    Container* const part = next->FindPart(change.key);
    if (part == nullptr) return Internal("policy {} places a claim that is not held", name());
    Placement placement = AsHeld(*next->FindByPart(change.key), *part, change.placement, machine_);
    if (placement.exclusive != part->placement.exclusive) {
      return Internal("policy {} moves a claim", name());
    }
    // The containers of the claim know the CPUs that they see, so these stay.
    placement.cpus = part->placement.cpus;
    part->placement = std::move(placement);
  }
  if (next == nullptr) return plan;
  held_ = std::move(next);
  RemoveParts(*plan);
  return plan;
}

// Whether the plan leaves the CPUs of claims alone.
Status ClaimedPolicy::CheckOthers(const Plan& plan, const CpuSet& claimed) const {
  for (const PlacementChange& change : plan.changes) {
    if (HeldClaims::IsPart(change.key)) continue;
    if (!change.placement.cpus || !change.placement.cpus->Intersects(claimed)) continue;
    return Internal("policy {} puts a container on CPUs {} of claims", name(),
                    (*change.placement.cpus & claimed).ToString());
  }
  for (const SharedChange& change : plan.shared) {
    if (!change.cpus.Intersects(claimed)) continue;
    return Internal("policy {} shares CPUs {} of claims", name(),
                    (change.cpus & claimed).ToString());
  }
  return OkStatus();
}

StatusOr<Plan> ClaimedPolicy::Reserve(const Snapshot& snapshot, const Claim& claim) {
  const auto next = std::make_shared<HeldClaims>(*held_);
  HeldClaim& added = next->Add(claim);
  if (const Status valid = CheckClaim(claim, machine_); !valid.ok()) {
    return Annotate(valid, added.Title());
  }
  if (held_->Find(claim.uid) != nullptr) return AlreadyExists("{} is held", added.Title());
  PlannedView all(snapshot);
  std::unique_ptr<Policy> before = policy_->Clone();
  PartPlacer placer(policy_, machine_, carriers_, all, *next);
  Status status;
  for (size_t part = 0; status.ok() && part < claim.parts.size(); ++part)
    status = placer.Place(added, part == 0 ? before.get() : nullptr);
  if (status.ok()) status = CheckShared(ClaimView(all, *next, carriers_), added);
  if (!status.ok()) {
    policy_ = std::move(before);
    return status;
  }
  held_ = next;
  return all.Together();
}

// Other containers, future ones included, need a CPU to run on.
Status ClaimedPolicy::CheckShared(const Snapshot& view, const HeldClaim& claim) const {
  Pod pod;
  pod.id = PodSandboxId("claim-probe");
  pod.name = "probe";
  pod.namespace_name = "default";
  Container probe;
  probe.key = HeldClaims::kNoPart;
  probe.pod_id = pod.id;
  probe.name = "probe";
  const StatusOr<Plan> plan = policy_->Clone()->Allocate(view, pod, probe, nullptr);
  if (plan.ok()) return OkStatus();
  return ResourceExhausted(
      "{}: needs CPUs {}, and none would be left for containers that share: {}", claim.Title(),
      claim.Cpus().ToString(), Message(plan.status()));
}

StatusOr<Plan> ClaimedPolicy::GiveBack(const Snapshot& snapshot, const std::string& uid) {
  const HeldClaim* const found = held_->Find(uid);
  if (found == nullptr) return Plan();
  const HeldClaim given = *found;
  const std::shared_ptr<const HeldClaims> before = held_;
  const auto next = std::make_shared<HeldClaims>(*held_);
  next->Remove(uid);
  bool carried = false;
  for (const auto& [key, uids] : carriers_) {
    const bool visible = !ClaimView::IsHidden(key, *next, carriers_);
    if (Hidden(key) && visible) carried = carried || snapshot.FindContainer(key) != nullptr;
  }
  PlannedView all(snapshot);
  const std::unique_ptr<Policy> policy_before = policy_->Clone();
  held_ = next;
  Status status;
  if (carried) {
    // Containers that carried the claim have no right to its CPUs now, and are placed like found
    // containers.
    StatusOr<Plan> plan = Reconcile(snapshot);
    if (plan.ok()) return plan;
    status = plan.status();
  }
  for (size_t part = 0; status.ok() && part < given.parts.size(); ++part) {
    if (HeldClaims::IsLost(given.parts[part])) continue;  // the policy does not know it
    const StatusOr<Plan> plan = Decided(
        all, [&](const Snapshot& seen) { return policy_->Release(seen, given.parts[part].key); });
    if (plan.ok()) all.Apply(*plan);
    status = plan.status();
  }
  if (status.ok()) {
    Plan plan = all.Together();
    PlaceCarriers(snapshot, plan);
    return plan;
  }
  policy_ = policy_before->Clone();
  held_ = before;
  return status;
}

StatusOr<Plan> ClaimedPolicy::Reconcile(const Snapshot& snapshot) {
  if (held_->empty()) return policy_->Reconcile(snapshot);
  HeldClaims held = *held_;
  const CpuSet usable = usable_.value_or(machine_.online());
  for (const HeldClaim& claim : held_->all()) {
    for (const Container& part : claim.parts)
      ShowUsable(usable, held.FindPart(part.key)->placement);
  }
  std::unique_ptr<Policy> before = policy_->Clone();
  const bool lacked = held.Lost() > 0;
  ClaimView::Options shown{.lost_too = true,
                           .parts_first = AnyDisputed(snapshot, *held_, carriers_)};
  StatusOr<Plan> plan = ReconcileParts(snapshot, shown, held);
  if (!plan.ok()) return plan;
  if (name() != "null") {
    Status kept = must_keep_ ? CheckKept(held) : OkStatus();
    // Once more without parts that got nothing, with the containers of claims that have none left,
    // and without those of claims that have some again. These containers may get CPUs that the
    // policy takes from another claim, whose containers are placed then.
    for (bool again = lacked || held.Lost() > 0; kept.ok() && again;) {
      const size_t lost = held.Lost();
      shown.lost_too = false;
      plan = ReconcileParts(snapshot, shown, held);
      kept = plan.ok() && must_keep_ ? CheckKept(held) : plan.status();
      again = held.Lost() > lost;
    }
    if (!kept.ok()) {
      policy_ = std::move(before);
      return kept;
    }
    held_ = std::make_shared<HeldClaims>(std::move(held));
  }
  RemoveParts(*plan);
  PlaceCarriers(snapshot, *plan);
  return plan;
}

// Asks the policy behind, and notes in `held` what it gives to parts.
StatusOr<Plan> ClaimedPolicy::ReconcileParts(const Snapshot& snapshot,
                                             const ClaimView::Options& shown, HeldClaims& held) {
  const CpuSet usable = usable_.value_or(machine_.online());
  StatusOr<Plan> plan = policy_->Reconcile(ClaimView(snapshot, held, carriers_, shown));
  if (!plan.ok()) return plan;
  for (const HeldClaim& claim : held_->all()) {
    for (const Container& part : claim.parts) {
      Container& kept = *held.FindPart(part.key);
      kept.placement =
          AsHeld(claim, part, plan->NewPlacement(kept).value_or(kept.placement), machine_);
      ShowUsable(usable, kept.placement);
    }
  }
  return plan;
}

Status ClaimedPolicy::CheckKept(const HeldClaims& now) const {
  for (const HeldClaim& held : held_->all()) {
    const HeldClaim& next = *now.Find(held.claim.uid);
    bool keeps = true;
    for (size_t part = 0; part < held.parts.size(); ++part) {
      const Placement& had = held.parts[part].placement;
      const Placement& has = next.parts[part].placement;
      keeps = keeps && had.exclusive.IsSubsetOf(has.exclusive) &&
              (had.exclusive != has.exclusive || held.Grant().seen == next.Grant().seen);
    }
    if (keeps) continue;
    return FailedPrecondition(
        "{} holds CPUs {}, which policy {} does not leave to it: its pod has "
        "to end first",
        held.Title(), held.Cpus().ToString(), name());
  }
  return OkStatus();
}

// Adds to the plan the containers that carry claims and are not on their CPUs.
void ClaimedPolicy::PlaceCarriers(const Snapshot& snapshot, Plan& plan) const {
  const bool lets_go = name() == "null";
  for (const auto& [key, uids] : carriers_) {
    const Container* const container = Hidden(key) ? snapshot.FindContainer(key) : nullptr;
    // The null policy has freed containers whose claims have no CPU online.
    if (container == nullptr || (lets_go && plan.Find(key) != nullptr)) continue;
    Placement placement = lets_go ? Placement() : PlacementOfCarrier(ClaimsOf(key));
    if (placement.SameDecision(container->placement)) continue;
    plan.Change(key) = std::move(placement);
  }
}

std::vector<const HeldClaim*> ClaimedPolicy::ClaimsOf(ContainerKey key) const {
  const auto carrier = carriers_.find(key);
  return carrier == carriers_.end() ? std::vector<const HeldClaim*>() : held_->Of(carrier->second);
}

StatusOr<Plan> ClaimedPolicy::Allocate(const Snapshot& snapshot, const Pod& pod,
                                       const Container& container, const Container* predecessor) {
  if (carriers_.contains(container.key))
    return AllocateCarrier(snapshot, pod, container, predecessor);
  return Decided(snapshot, [&](const Snapshot& seen) {
    return policy_->Allocate(seen, pod, container, predecessor);
  });
}

StatusOr<Plan> ClaimedPolicy::AllocateCarrier(const Snapshot& snapshot, const Pod& pod,
                                              const Container& container,
                                              const Container* predecessor) {
  RESMGR_RETURN_IF_ERROR(CheckCarrier(snapshot, pod, container, predecessor));
  Plan plan;
  if (predecessor != nullptr) {
    RESMGR_ASSIGN_OR_RETURN(plan, Decided(snapshot, [&](const Snapshot& seen) {
                              return policy_->Release(seen, predecessor->key);
                            }));
  }
  plan.Change(container.key) =
      name() == "null" ? Placement() : PlacementOfCarrier(ClaimsOf(container.key));
  return plan;
}

// Whether its claims are held, and by no other container that it may not share them with.
Status ClaimedPolicy::CheckCarrier(const Snapshot& snapshot, const Pod& pod,
                                   const Container& container, const Container* predecessor) const {
  for (const std::string& uid : carriers_.at(container.key)) {
    const HeldClaim* const held = held_->Find(uid);
    // Claims are of a namespace, and pods name those of their own.
    const bool own = held != nullptr && held->claim.namespace_name == pod.namespace_name;
    if (!own || held->Cpus().empty()) {
      return NotFound("it names claim {}, for which no CPUs are held on this node for namespace {}",
                      uid, pod.namespace_name);
    }
    for (const auto& [key, uids] : carriers_) {
      const bool same = key == container.key || (predecessor != nullptr && key == predecessor->key);
      if (same || std::ranges::find(uids, uid) == uids.end()) continue;
      const Container* const other = snapshot.FindContainer(key);
      if (other == nullptr) continue;
      const bool in_pod = other->pod_id == pod.id;
      // An earlier attempt of the container.
      if (in_pod && other->name == container.name) continue;
      if (in_pod && held->claim.options.share_within_pod) continue;
      const Pod* const others = snapshot.FindPod(other->pod_id);
      return AlreadyExists(
          "{} is in use by container {}: {}", held->Title(),
          others == nullptr ? other->name : FullName(*others, other->name),
          held->claim.options.share_within_pod
              ? "only containers of one pod share it"
              : "it is for one container, unless its parameters say that a pod shares it");
    }
  }
  return OkStatus();
}

StatusOr<Plan> ClaimedPolicy::Update(const Snapshot& snapshot, const Pod& pod,
                                     const Container& container) {
  if (Hidden(container.key)) return Plan();
  return Decided(snapshot,
                 [&](const Snapshot& seen) { return policy_->Update(seen, pod, container); });
}

StatusOr<Plan> ClaimedPolicy::LookAgain(const Snapshot& snapshot, ContainerKey key) {
  if (Hidden(key)) return Plan();
  return Decided(snapshot, [&](const Snapshot& seen) { return policy_->LookAgain(seen, key); });
}

StatusOr<Plan> ClaimedPolicy::Release(const Snapshot& snapshot, ContainerKey key) {
  return Decided(snapshot, [&](const Snapshot& seen) { return policy_->Release(seen, key); });
}

StatusOr<Plan> ClaimedPolicy::Rebalance(const Snapshot& snapshot) {
  return Decided(snapshot, [&](const Snapshot& seen) { return policy_->Rebalance(seen); });
}

policy::SharedPools ClaimedPolicy::Shared(const Snapshot& snapshot) const {
  return AsSeen(snapshot, [&](const Snapshot& seen) { return policy_->Shared(seen); });
}

std::vector<std::string> ClaimedPolicy::TargetsOf(const Snapshot& snapshot,
                                                  ContainerKey key) const {
  if (Hidden(key)) return {};
  return AsSeen(snapshot, [&](const Snapshot& seen) { return policy_->TargetsOf(seen, key); });
}

StatusOr<Plan> ClaimedPolicy::MoveShared(const Snapshot& snapshot,
                                         std::span<const policy::PoolMove> moves) {
  return Decided(snapshot, [&](const Snapshot& seen) { return policy_->MoveShared(seen, moves); });
}

std::vector<std::string> ClaimedPolicy::Explain(ContainerKey key) const {
  if (!Hidden(key)) return policy_->Explain(key);
  std::vector<std::string> lines;
  for (const HeldClaim* const held : ClaimsOf(key)) {
    for (size_t part = 0; part < held->parts.size(); ++part) {
      const Placement& granted = held->parts[part].placement;
      lines.push_back(fmt::format("{}, device {}: CPUs {}: {}", held->Title(),
                                  held->claim.parts[part].device, granted.exclusive.ToString(),
                                  granted.reason));
    }
  }
  return lines;
}

// The container itself, or the first part of its claims that the policy behind knows.
ContainerKey ClaimedPolicy::Behind(ContainerKey key) const {
  if (!Hidden(key)) return key;
  for (const HeldClaim* const held : ClaimsOf(key)) {
    for (const Container& part : held->parts)
      if (!HeldClaims::IsLost(part)) return part.key;
  }
  return key;
}

std::vector<ConsideredPlace> ClaimedPolicy::Considered(ContainerKey key) const {
  return policy_->Considered(Behind(key));
}

std::vector<std::string> ClaimedPolicy::WaysIn(const Snapshot& snapshot, const Pod& pod,
                                               const Container& container) const {
  if (carriers_.contains(container.key)) return {};
  return AsSeen(snapshot,
                [&](const Snapshot& seen) { return policy_->WaysIn(seen, pod, container); });
}

ClassNames ClaimedPolicy::ClassesOf(ContainerKey key) const {
  return policy_->ClassesOf(Behind(key));
}

StatusOr<Plan> ClaimedPolicy::FollowUse(const Snapshot& snapshot, const policy::MeasuredUse& use) {
  return Decided(snapshot, [&](const Snapshot& seen) { return policy_->FollowUse(seen, use); });
}

std::vector<Zone> ClaimedPolicy::Zones(const Snapshot& snapshot) const {
  return AsSeen(snapshot, [&](const Snapshot& seen) { return policy_->Zones(seen); });
}

std::unique_ptr<Policy> CopyWithoutClaims(const Policy& policy) {
  const auto* const claimed = dynamic_cast<const ClaimedPolicy*>(&policy);
  return claimed == nullptr ? policy.Clone() : claimed->behind().Clone();
}

const HeldClaims& ClaimsOf(const Policy& policy) {
  static const HeldClaims kNone;
  const auto* const claimed = dynamic_cast<const ClaimedPolicy*>(&policy);
  return claimed == nullptr ? kNone : claimed->held();
}

}  // namespace resmgr
