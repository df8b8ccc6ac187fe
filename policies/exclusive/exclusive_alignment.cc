// SPDX-License-Identifier: Apache-2.0
// The part of ExclusivePolicy for exclusive CPUs that must be in one place of the machine, and for
// the changes that would let a refused container in.
#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/kube/annotations.h"
#include "policies/exclusive/exclusive_policy.h"

namespace resmgr {

CpuSet ExclusivePolicy::Allowed(const CpuClaim& claim, const CpuSet& free) const {
  CpuSet allowed = claim.require_isolated ? CpuSet() : free & ordinary_;
  const bool never = claim.prefer_isolated == false && !claim.require_isolated;
  if (!never) allowed |= free & cpus_.isolated;
  return allowed;
}

CpuSet ExclusivePolicy::Usable(const CpuClaim& claim, const CpuSet& free) const {
  return picker_.Grantable(Allowed(claim, free));
}

// Takes the CPUs that the options choose if these are in one place; else CPUs of the place that
// fits most tightly. A new attempt gets the CPUs of the former one even if they are not in one
// place, since they were granted before. CPUs that a claim asks for were not: only places count
// that have enough of them.
StatusOr<ExclusivePicker::Pick> ExclusivePolicy::TakeAligned(const CpuClaim& claim,
                                                             const ExclusivePicker::Need& need,
                                                             const CpuSet& ordinary,
                                                             const CpuSet& isolated) const {
  StatusOr<ExclusivePicker::Pick> anywhere = picker_.Take(need, ordinary, isolated);
  if (!anywhere.ok() && anywhere.status().code() != StatusCode::kResourceExhausted) return anywhere;
  const bool good =
      anywhere.ok() && (places_.IsAligned(claim.alignment, anywhere->cpus) ||
                        (!need.former_is_place && anywhere->cpus.IsSubsetOf(need.former)));
  if (good) return anywhere;
  std::multimap<int, const AlignedPlace*> tightest;
  for (const AlignedPlace& place : places_.Of(claim.alignment)) {
    CpuSet inside = place.cpus & (ordinary | isolated);
    if (need.former_is_place) inside &= need.former;
    const int free = Usable(claim, inside).size();
    if (free >= claim.exclusive) tightest.emplace(free, &place);
  }
  Status failed;
  for (const auto& [free, place] : tightest) {
    ExclusivePicker::Need inside = need;
    inside.former &= place->cpus;
    inside.left_by_pod &= place->cpus;
    StatusOr<ExclusivePicker::Pick> pick =
        picker_.Take(inside, ordinary & place->cpus, isolated & place->cpus);
    if (pick.ok()) return pick;
    failed = pick.status();
  }
  return failed.ok() ? WantOfPlace(claim, {}, ordinary | isolated) : failed;
}

// A container gets further CPUs of the kind that it has, else of the other kind, and of both only
// if neither is enough.
StatusOr<ExclusivePicker::Pick> ExclusivePolicy::Grow(const CpuSet& current, const CpuClaim& claim,
                                                      const CpuSet& free) const {
  const CpuSet allowed = Allowed(claim, free);
  const CpuSet isolated = allowed & cpus_.isolated;
  std::array<CpuSet, 2> kinds = {allowed - isolated, isolated};
  if (current.Intersects(cpus_.isolated)) std::swap(kinds[0], kinds[1]);
  for (const CpuSet& kind : kinds) {
    if (kind == allowed) break;
    StatusOr<ExclusivePicker::Pick> pick = GrowAligned(current, claim, kind);
    if (pick.ok() || pick.status().code() != StatusCode::kResourceExhausted) return pick;
  }
  return GrowAligned(current, claim, allowed);
}

StatusOr<ExclusivePicker::Pick> ExclusivePolicy::GrowAligned(const CpuSet& current,
                                                             const CpuClaim& claim,
                                                             const CpuSet& free) const {
  if (claim.alignment == Alignment::kPrefer) return picker_.Grow(current, claim.exclusive, free);
  for (const AlignedPlace& place : places_.Of(claim.alignment)) {
    if (!current.IsSubsetOf(place.cpus)) continue;
    StatusOr<ExclusivePicker::Pick> pick =
        picker_.Grow(current, claim.exclusive, free & place.cpus);
    if (pick.ok() || pick.status().code() != StatusCode::kResourceExhausted) return pick;
  }
  return WantOfPlace(claim, current, free | current);
}

CpuSet ExclusivePolicy::PlaceToKeep(const CpuSet& current, const CpuClaim& claim,
                                    const CpuSet& needed) const {
  const AlignedPlace* best = nullptr;
  int best_size = 0;
  for (const AlignedPlace& place : places_.Of(claim.alignment)) {
    if (!needed.IsSubsetOf(place.cpus)) continue;
    const int size = picker_.Grantable(current & place.cpus).size();
    if (size < claim.exclusive || (best != nullptr && size >= best_size)) continue;
    best = &place;
    best_size = size;
  }
  return best == nullptr ? CpuSet() : best->cpus;
}

// A refusal with the free CPUs of each place, or only of its own place for a container that keeps
// `current`.
Status ExclusivePolicy::WantOfPlace(const CpuClaim& claim, const CpuSet& current,
                                    const CpuSet& now) const {
  const std::string_view in_one = InOnePlace(claim.alignment);
  const std::string what = fmt::format("needs {} {} CPU{} {}", claim.exclusive,
                                       claim.require_isolated ? "isolated" : "exclusive",
                                       claim.exclusive == 1 ? "" : "s", in_one);
  std::vector<std::pair<std::string_view, int>> free;
  int most = 0;
  for (const AlignedPlace& place : places_.Of(claim.alignment)) {
    most = std::max(most, Usable(claim, place.cpus).size());
    if (!current.IsSubsetOf(place.cpus)) continue;
    free.emplace_back(place.name, Usable(claim, place.cpus & now).size());
  }
  if (claim.exclusive > most) {
    return InvalidArgument("{}, but this node can grant no more than {} there", what, most);
  }
  if (free.empty()) {
    return ResourceExhausted("{}, but the CPUs {} that it runs on are not, and it keeps them", what,
                             current.ToString());
  }
  return ResourceExhausted("{}{} ({})", what, current.empty() ? "" : ", where it runs",
                           DescribeLack(free, claim.exclusive));
}

std::vector<std::string> ExclusivePolicy::WaysIn(const Snapshot& snapshot, const Pod& pod,
                                                 const Container& container) const {
  if (grants_.contains(container.key)) {
    // A refused resize: the container's own CPUs are not a reason against it.
    ExclusivePolicy without = *this;
    without.Take(container.key);
    return without.WaysIn(snapshot, pod, container);
  }
  const CpuClaim claim = ClaimOf(pod, container);
  std::vector<std::string> ways;
  if (claim.exclusive == 0 || !CheckOverhead(snapshot, claim.exclusive).ok()) return ways;
  const auto add_if_it_fits = [&](std::string_view way, const CpuClaim& other) {
    if (Find(other, pod, {}, granted_).ok()) ways.emplace_back(way);
  };
  const auto annotation = [&](std::string_view key, std::string_view value) {
    return AnnotationChange(pod.annotations, key, container.name, value);
  };
  CpuClaim other = claim;
  if (claim.alignment != Alignment::kPrefer) {
    other.alignment = Alignment::kPrefer;
    add_if_it_fits(WayToSplit(claim.alignment, pod.annotations, container.name, name_), other);
  }
  other = claim;
  if (claim.require_isolated) {
    other.require_isolated = false;
    add_if_it_fits(annotation("require-isolated-cpus", "false"), other);
  } else if (claim.prefer_isolated == false) {
    other.prefer_isolated = true;
    add_if_it_fits(annotation("prefer-isolated-cpus", "true"), other);
  }
  if (!options_.full_pcpus_only) return ways;
  ExclusiveOptions divided = options_;
  divided.full_pcpus_only = false;
  const ExclusivePicker::Need need = {.count = claim.exclusive,
                                      .prefer_isolated = claim.prefer_isolated,
                                      .require_isolated = claim.require_isolated};
  const auto pick = Pick(
      [&](const CpuSet& ordinary, const CpuSet& isolated) {
        return ExclusivePicker(machine_, divided, {}, cpus_.offline).Take(need, ordinary, isolated);
      },
      granted_);
  const bool fits = pick.ok() && places_.IsAligned(claim.alignment, pick->cpus);
  if (fits) ways.emplace_back("full-pcpus-only: \"false\"");
  return ways;
}

}  // namespace resmgr
