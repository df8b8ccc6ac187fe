// SPDX-License-Identifier: Apache-2.0
#include "pkg/claims/part_placer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pkg/base/count_text.h"
#include "pkg/claims/claim_place.h"
#include "pkg/model/cpu_holders.h"
#include "pkg/policy/pool_names.h"

namespace resmgr {
Status PartPlacer::Place(HeldClaim& claim, const Policy* before) {
  const Container part = held_.AddPart(claim, machine_);
  const ClaimPart& wanted = claim.claim.parts[claim.parts.size() - 1];
  const ClaimView view(all_, held_, carriers_);
  const std::unique_ptr<Policy> copy = before == nullptr ? policy_->Clone() : nullptr;
  if (before == nullptr) before = copy.get();
  StatusOr<std::optional<Placement>> placed = Try(view, claim, part, {});
  if (!placed.ok()) return Annotate(placed.status(), claim.Title());
  if (!*placed) {
    const CpuSet candidates = Candidates(view, wanted);
    for (const CpuSet& near : {candidates, Exactly(candidates, wanted.cpus)}) {
      if (near.size() < wanted.cpus) break;
      policy_ = before->Clone();
      placed = Try(view, claim, part, near);
      if (placed.ok() && *placed) break;
    }
  }
  if (!placed.ok() || !*placed) return Shortage(view, claim, wanted);
  Container& own = claim.parts.back();
  own.placement = **std::move(placed);
  own.state = ContainerState::kRunning;
  own.cpus_bound = true;
  own.mems_bound = own.placement.mems.has_value();
  return OkStatus();
}

// nullopt: the policy puts it elsewhere.
StatusOr<std::optional<Placement>> PartPlacer::Try(const Snapshot& view, const HeldClaim& claim,
                                                   const Container& part, const CpuSet& near) {
  const ClaimPart& wanted = claim.claim.parts[claim.parts.size() - 1];
  std::optional<Container> former;
  if (!near.empty()) {
    former = part;
    former->key = HeldClaims::kNoPart;
    former->name = wanted.device;  // no attempt of the part (IsFormerAttempt)
    former->placement.cpus = near;
    former->placement.exclusive = near;
    // Affinities of the claim's own parts would lead policies with pools away from it.
    former->placement.pool = PoolInside(view, wanted);
  }
  const StatusOr<Plan> plan = policy_->Allocate(view, claim.pod, part, former ? &*former : nullptr);
  if (!plan.ok()) return plan.status();
  Placement placement = plan->NewPlacement(part).value_or(Placement());
  RESMGR_RETURN_IF_ERROR(CheckExclusive(wanted, placement));
  if (!IsInside(claim, wanted, placement.exclusive)) return std::nullopt;
  all_.Apply(*plan);
  return placement;
}

Status PartPlacer::CheckExclusive(const ClaimPart& part, const Placement& placement) const {
  const CpuSet& cpus = placement.exclusive;
  if (cpus.empty() || cpus != placement.cpus.value_or(CpuSet())) {
    return FailedPrecondition("policy {} gives it no exclusive CPUs{}{}", policy_->name(),
                              placement.reason.empty() ? "" : ": ", placement.reason);
  }
  if (cpus.size() == part.cpus) return OkStatus();
  return FailedPrecondition("policy {} gives it {} for {}", policy_->name(),
                            CountText(cpus.size(), "exclusive CPU"), part.cpus);
}

bool PartPlacer::IsInside(const HeldClaim& claim, const ClaimPart& part, const CpuSet& cpus) const {
  if (claim.claim.options.whole_cores && machine_.WithSiblings(cpus) != cpus) return false;
  const StatusOr<ClaimPlace> place = PlaceOf(part, machine_);
  return place.ok() && (place->name.empty() || cpus.IsSubsetOf(place->cpus));
}

// The largest pool of the policy within the part's place; "" where there is none.
std::string PartPlacer::PoolInside(const Snapshot& view, const ClaimPart& part) const {
  const StatusOr<ClaimPlace> place = PlaceOf(part, machine_);
  if (!place.ok() || place->name.empty()) return "";
  std::string name;
  int most = 0;
  for (const Zone& zone : policy_->Zones(view)) {
    if (IsReservedPool(zone.name) || !zone.cpus.IsSubsetOf(place->cpus)) continue;
    if (zone.cpus.size() <= most) continue;
    most = zone.cpus.size();
    name = zone.name;
  }
  return name;
}

// The free CPUs of the part's place that the policy may grant: others are offline, or the
// configuration keeps them from it.
CpuSet PartPlacer::Candidates(const Snapshot& view, const ClaimPart& part) const {
  const StatusOr<ClaimPlace> place = PlaceOf(part, machine_);
  const std::vector<Zone> zones = policy_->Zones(view);
  CpuSet free = zones.empty() ? machine_.allowed() : CpuSet();
  CpuSet taken;
  for (const Zone& zone : zones) {
    const bool theirs = IsReservedPool(zone.name) || zone.kind == "balloon";
    CpuSet& cpus = theirs ? taken : free;
    cpus |= zone.cpus;
  }
  view.ForEachContainer(
      [&taken](const Pod&, const Container& container) { taken |= container.placement.exclusive; });
  if (place.ok()) free &= place->cpus;
  return free - taken;
}

// So many of them, those of free cores first.
CpuSet PartPlacer::Exactly(const CpuSet& candidates, int cpus) const {
  CpuSet chosen;
  for (const bool whole : {true, false}) {
    for (const CpuSet& core : machine_.cores()) {
      if (core.IsSubsetOf(candidates) != whole) continue;
      for (const int cpu : core& candidates) {
        if (chosen.size() == cpus) return chosen;
        chosen.Add(cpu);
      }
    }
  }
  return chosen;
}

Status PartPlacer::Shortage(const Snapshot& view, const HeldClaim& claim,
                            const ClaimPart& part) const {
  const CpuSet free = Candidates(view, part);
  const ClaimPlace asked = PlaceOf(part, machine_).value_or(ClaimPlace{});
  const CpuSet& place = asked.cpus;
  std::vector<Holding> holders;
  view.ForEachContainer([&](const Pod& pod, const Container& container) {
    const int held = container.placement.exclusive.CountCommon(place);
    if (held > 0) holders.push_back({&pod, &container, held});
  });
  const std::string held = DescribeHolders(std::move(holders), [&](const Holding& holder) {
    const CpuSet cpus = holder.container->placement.exclusive & place;
    return fmt::format("CPU{} {}", cpus.size() == 1 ? "" : "s", cpus.ToString());
  });
  const std::string where = asked.name.empty() ? "" : fmt::format(" of {}", asked.name);
  const std::string_view whole = claim.claim.options.whole_cores ? " of whole cores" : "";
  // Some of what is free may be the last for others.
  return ResourceExhausted("{}: needs {}{}{}, and of {} that {} free policy {} gives fewer{}{}",
                           claim.Title(), CountText(part.cpus, "exclusive CPU"), whole, where,
                           free.size(), free.size() == 1 ? "is" : "are", policy_->name(),
                           held.empty() ? "" : ": ", held);
}

}  // namespace resmgr
