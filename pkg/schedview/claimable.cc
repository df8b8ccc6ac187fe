// SPDX-License-Identifier: Apache-2.0
#include "pkg/schedview/claimable.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "pkg/claims/claim_place.h"
#include "pkg/policy/pool_names.h"
#include "pkg/schedview/what_if.h"

namespace resmgr {
namespace {

// The CPUs of a place that are free for claims.
struct FreeKinds {
  int ordinary = 0;
  int isolated = 0;
};

class ClaimableSearch {
 public:
  ClaimableSearch(const ClaimedPolicy& policy, const Snapshot& snapshot, const Machine& machine,
                  const ClaimableOptions& options)
      : snapshot_(snapshot),
        machine_(machine),
        options_(options),
        policy_(policy.CloneOn(policy.behind())),
        tries_left_(options.most_tries) {
    taken_ = policy.held().Cpus();
    snapshot.ForEachContainer([this](const Pod&, const Container& container) {
      if (container.state != ContainerState::kExited) taken_ |= container.placement.exclusive;
    });
    // Balloons have their CPUs alone, whatever their containers are.
    for (const Zone& zone : policy.Zones(snapshot_))
      if (IsReservedPool(zone.name) || zone.kind == "balloon") taken_ |= zone.cpus;
  }

  // The free CPUs of each place.
  std::vector<FreeKinds> Free(std::span<const ClaimPart> places) const {
    std::vector<FreeKinds> kinds;
    for (const ClaimPart& place : places) {
      const CpuSet free = Free(place);
      const int isolated = free.CountCommon(machine_.isolated());
      kinds.push_back({.ordinary = free.size() - isolated, .isolated = isolated});
    }
    return kinds;
  }
  int OrdinaryLeft(std::span<const ClaimPart> places) const {
    int left = 0;
    for (const FreeKinds& kinds : Free(places))
      left += kinds.ordinary;
    return left;
  }

  // Reserves the largest number of CPUs up to `limit` that the policy grants there; returns it.
  int Take(const ClaimPart& place, int limit) {
    const int step = std::max(options_.step, 1);
    const int most = std::min(Free(place).size(), limit) / step;
    // All of it first, without a copy: mostly it fits, and a refusal changes nothing.
    int fits = most > 0 && Reserve(*policy_, place, most * step) ? most : 0;
    std::unique_ptr<ClaimedPolicy> best;
    for (int too_many = most; too_many - fits > 1;) {
      const int middle = fits + (too_many - fits) / 2;
      std::unique_ptr<ClaimedPolicy> copy = policy_->CloneOn(policy_->behind());
      const bool fitting = Reserve(*copy, place, middle * step);
      (fitting ? fits : too_many) = middle;
      if (fitting) best = std::move(copy);
    }
    if (best != nullptr) policy_ = std::move(best);
    if (fits > 0) taken_ |= policy_->held().all().back().Cpus();
    return fits * step;
  }

 private:
  CpuSet Free(const ClaimPart& place) const {
    const StatusOr<ClaimPlace> found = PlaceOf(place, machine_);
    return found.ok() ? found->cpus - taken_ : CpuSet();
  }

  // False: the policy refuses a claim of so many CPUs, and has not changed.
  bool Reserve(ClaimedPolicy& policy, const ClaimPart& place, int cpus) {
    if (tries_left_ == 0) return false;
    --tries_left_;
    Claim claim{.uid = fmt::format("what-if-{}", tries_left_),
                .namespace_name = "default",
                .name = "what-if",
                .parts = {place}};
    claim.parts[0].cpus = cpus;
    return policy.Reserve(snapshot_, claim).ok();
  }

  const WhatIf snapshot_;  // without containers that have exited
  const Machine& machine_;
  const ClaimableOptions options_;
  std::unique_ptr<ClaimedPolicy> policy_;
  CpuSet taken_;
  int tries_left_;
};

// Lowers the numbers so that each is granted also after smaller claims, which may take all ordinary
// CPUs of the other places and leave the isolated ones. `kept`: the ordinary CPUs that the policy
// grants to no claim.
void LeaveOrdinary(int kept, std::span<const FreeKinds> free, int step, std::vector<int>& found) {
  const auto most_ordinary = [&](size_t at) { return std::min(found[at], free[at].ordinary); };
  for (size_t at = 0; at < found.size(); ++at) {
    int others = 0;
    int all = 0;
    for (size_t other = 0; other < found.size(); ++other) {
      all += free[other].ordinary;
      if (other != at) others += most_ordinary(other);
    }
    const int most = free[at].isolated + std::max(all - kept - others, 0);
    found[at] = std::min(found[at], most / step * step);
  }
}

}  // namespace

std::vector<int> ClaimableCpus(const ClaimedPolicy& policy, const Snapshot& snapshot,
                               std::span<const ClaimPart> places, const Machine& machine,
                               const ClaimableOptions& options) {
  std::vector<int> found(places.size(), machine.online().size());
  ClaimableSearch ascending(policy, snapshot, machine, options);
  const std::vector<FreeKinds> free = ascending.Free(places);
  for (size_t at = 0; at < places.size(); ++at)
    found[at] = ascending.Take(places[at], found[at]);
  if (std::ranges::none_of(machine.cpus(), &Cpu::isolated)) return found;
  ClaimableSearch descending(policy, snapshot, machine, options);
  for (size_t at = places.size(); at-- > 0;)
    found[at] = descending.Take(places[at], found[at]);
  const int kept = std::min(ascending.OrdinaryLeft(places), descending.OrdinaryLeft(places));
  LeaveOrdinary(kept, free, std::max(options.step, 1), found);
  return found;
}

}  // namespace resmgr
