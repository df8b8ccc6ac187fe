// SPDX-License-Identifier: Apache-2.0
#include "pkg/claims/part_placer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pkg/allocator/alignment.h"
#include "pkg/base/amount_text.h"
#include "pkg/claims/claim_options.h"
#include "pkg/claims/claim_place.h"
#include "pkg/model/container_facts.h"
#include "pkg/policy/conventions.h"

namespace resmgr {
namespace {

// Limit of L3 caches that are tried for a part, since each may cost two decisions of the policy.
constexpr size_t kMostPlaces = 16;

// The part that is being placed.
const ClaimPart& LastPart(const HeldClaim& claim) {
  return claim.claim.parts[claim.parts.size() - 1];
}

}  // namespace

Status PartPlacer::Place(HeldClaim& claim, const Policy* before) {
  const Container part = held_.AddPart(claim, machine_);
  const ClaimView view(all_, held_, carriers_);
  const std::unique_ptr<Policy> copy = before == nullptr ? policy_->Clone() : nullptr;
  if (before == nullptr) before = copy.get();
  StatusOr<Tried> placed = Try(view, claim, part, {});
  if (!placed.ok()) {
    const std::string parameters = DescribeOptions(claim.claim.options);
    return Annotate(placed.status(), parameters.empty()
                                         ? claim.Title()
                                         : fmt::format("{}{}: policy {}", claim.Title(), parameters,
                                                       policy_->name()));
  }
  if (!placed->inside) {
    for (const CpuSet& near : PlacesToTry(view, claim, placed->placement.exclusive)) {
      policy_ = before->Clone();
      placed = Try(view, claim, part, near);
      if (placed.ok() && placed->inside) break;
    }
  }
  if (!placed.ok() || !placed->inside) return Shortage(view, claim);
  RESMGR_RETURN_IF_ERROR(CheckSeen(claim, placed->placement));
  Container& own = claim.parts.back();
  own.placement = std::move(placed->placement);
  own.state = ContainerState::kRunning;
  own.cpus_bound = true;
  own.mems_bound = own.placement.mems.has_value();
  return OkStatus();
}

StatusOr<PartPlacer::Tried> PartPlacer::Try(const Snapshot& view, const HeldClaim& claim,
                                            const Container& part, const CpuSet& near) {
  std::optional<Container> former;
  if (!near.empty()) {
    former = part;
    former->key = HeldClaims::kNoPart;
    former->name = LastPart(claim).device;  // differs, so IsFormerAttempt of the part is false
    former->placement.cpus = near;
    former->placement.exclusive = near;
    // Names a pool inside the place. Without it, affinities to the claim's other parts would draw
    // the part to their pools.
    former->placement.pool = PoolInside(view, claim);
  }
  const StatusOr<Plan> plan = policy_->Allocate(view, claim.pod, part, former ? &*former : nullptr);
  if (!plan.ok()) return plan.status();
  Placement placement =
      AsHeld(claim, part, plan->NewPlacement(part).value_or(Placement()), machine_);
  RESMGR_RETURN_IF_ERROR(CheckExclusive(claim, placement));
  const bool inside = FitsPart(LastPart(claim), claim.claim.options, placement.exclusive, machine_);
  if (inside) all_.Apply(*plan);
  return Tried{.placement = std::move(placement), .inside = inside};
}

Status PartPlacer::CheckExclusive(const HeldClaim& claim, const Placement& placement) const {
  const CpuSet& cpus = placement.exclusive;
  const CpuSet seen = placement.cpus.value_or(CpuSet());
  const bool alone = claim.claim.options.avoid_siblings ? !seen.empty() && seen.IsSubsetOf(cpus)
                                                        : !cpus.empty() && seen == cpus;
  if (!alone) {
    return FailedPrecondition("policy {} gives it no exclusive CPUs{}{}", policy_->name(),
                              placement.reason.empty() ? "" : ": ", placement.reason);
  }
  const int wanted = LastPart(claim).cpus;
  if (cpus.size() == wanted) return OkStatus();
  return FailedPrecondition("policy {} gives it {} for {}", policy_->name(),
                            CountText(cpus.size(), "exclusive CPU"), wanted);
}

// Checks avoidSiblings, for which a policy has to hide threads; the other parameters work with
// every policy.
Status PartPlacer::CheckSeen(const HeldClaim& claim, const Placement& placement) const {
  if (!claim.claim.options.avoid_siblings) return OkStatus();
  for (const CpuSet& core : machine_.cores()) {
    if (placement.cpus->CountCommon(core) < 2) continue;
    return FailedPrecondition(
        "{}: parameter avoidSiblings: policy {} does not keep containers off all but one thread of "
        "each core",
        claim.Title(), policy_->name());
  }
  return OkStatus();
}

// The sets of CPUs to try for a part: its place or, if the claim wants one L3 cache, each cache in
// turn, the one with the fewest free CPUs first. Each place gives up to three sets: first only its
// CPUs that are isolated if those of the policy's choice `first` are (else only those that are
// not), since policies grant the other kind last; then all its free CPUs; then exactly the needed
// number.
std::vector<CpuSet> PartPlacer::PlacesToTry(const Snapshot& view, const HeldClaim& claim,
                                            const CpuSet& first) const {
  const int needed = LastPart(claim).cpus;
  const CpuSet candidates = Candidates(view, claim);
  std::vector<CpuSet> places = {candidates};
  if (claim.claim.options.l3) {
    const AlignedPlaces caches(machine_);
    places.clear();
    for (const AlignedPlace& cache : caches.Of(Alignment::kL3))
      places.push_back(candidates & cache.cpus);
    std::ranges::stable_sort(places, {}, &CpuSet::size);
  }
  std::erase_if(places, [needed](const CpuSet& place) { return place.size() < needed; });
  if (places.size() > kMostPlaces) places.resize(kMostPlaces);
  std::vector<CpuSet> tries;
  const CpuSet& isolated = machine_.isolated();
  for (const CpuSet& place : places) {
    const CpuSet alike = isolated.Intersects(first) ? place & isolated : place - isolated;
    if (alike != place && alike.size() >= needed) tries.push_back(alike);
    tries.push_back(place);
    tries.push_back(Exactly(place, needed));
  }
  return tries;
}

// The largest pool of the policy within the device's place; "" if there is none.
std::string PartPlacer::PoolInside(const Snapshot& view, const HeldClaim& claim) const {
  const StatusOr<ClaimPlace> place = PlaceOf(LastPart(claim), machine_);
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

// The free CPUs of the part's place that the policy may grant: not those that are offline or that
// the configuration excludes.
CpuSet PartPlacer::Candidates(const Snapshot& view, const HeldClaim& claim) const {
  const StatusOr<ClaimPlace> place = PlaceOf(LastPart(claim), claim.claim.options, machine_);
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

// Returns `cpus` of the candidates, preferring cores of which all threads are candidates.
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

Status PartPlacer::Shortage(const Snapshot& view, const HeldClaim& claim) const {
  const ClaimPart& part = LastPart(claim);
  const ClaimOptions& options = claim.claim.options;
  const CpuSet free = Candidates(view, claim);
  const ClaimPlace asked = PlaceOf(part, options, machine_).value_or(ClaimPlace{});
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
  // There may be enough free CPUs: the policy may keep the last ones for other containers.
  return ResourceExhausted("{}: needs {}{}{}, and of {} that {} free policy {} gives fewer{}{}",
                           claim.Title(), CountText(part.cpus, "exclusive CPU"), where,
                           DescribeOptions(options), free.size(), free.size() == 1 ? "is" : "are",
                           policy_->name(), held.empty() ? "" : ": ", held);
}

}  // namespace resmgr
