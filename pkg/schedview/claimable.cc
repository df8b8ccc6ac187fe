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

  // Reserves the largest number of CPUs up to `limit` that the policy grants there; returns it.
  int Take(const ClaimPart& place, int limit) {
    const StatusOr<ClaimPlace> found = PlaceOf(place, machine_);
    if (!found.ok()) return 0;
    const int step = std::max(options_.step, 1);
    const int most = std::min((found->cpus - taken_).size(), limit) / step;
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

}  // namespace

std::vector<int> ClaimableCpus(const ClaimedPolicy& policy, const Snapshot& snapshot,
                               std::span<const ClaimPart> places, const Machine& machine,
                               const ClaimableOptions& options) {
  std::vector<int> found(places.size(), machine.online().size());
  ClaimableSearch ascending(policy, snapshot, machine, options);
  for (size_t at = 0; at < places.size(); ++at)
    found[at] = ascending.Take(places[at], found[at]);
  if (std::ranges::none_of(machine.cpus(), &Cpu::isolated)) return found;
  ClaimableSearch descending(policy, snapshot, machine, options);
  for (size_t at = places.size(); at-- > 0;)
    found[at] = descending.Take(places[at], found[at]);
  return found;
}

}  // namespace resmgr
