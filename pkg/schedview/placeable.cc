// SPDX-License-Identifier: Apache-2.0
#include "pkg/schedview/placeable.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "pkg/claims/claimed_policy.h"
#include "pkg/policy/pool_names.h"
#include "pkg/schedview/what_if.h"

namespace resmgr {
namespace {

// Containers beside which the policy is asked whether it splits others.
constexpr int kMostOthers = 4;

// A place that a copy of the policy granted.
struct ImaginedGrant {
  Placement placement{};
  std::optional<size_t> zone{};  // that it is wholly inside
};

// Asks one copy of the policy: a container that was only tried is released again, which restores
// the state before it.
class PlaceableSearch {
 public:
  PlaceableSearch(const Policy& policy, const Snapshot& snapshot, std::span<const CpuSet> zones,
                  const PlaceableOptions& options)
      : options_(options),
        zones_(zones),
        what_if_(snapshot),
        policy_(policy.Clone()),
        tries_left_(options.most_tries) {
    for (size_t zone = 0; zone < zones.size(); ++zone)
      open_.insert(zone);
    snapshot.ForEachContainer([this](const Pod&, const Container& container) {
      if (container.state != ContainerState::kExited) taken_ |= container.placement.exclusive;
    });
  }

  std::vector<int> Run() {
    std::vector<int> found(zones_.size(), 0);
    while (!open_.empty()) {
      const int cpus = Largest(MostIn());
      const std::optional<ImaginedGrant> granted = Grant(cpus);
      // The same question has the same answer, unless no number fitted.
      if (!granted || !granted->zone || !open_.contains(*granted->zone)) break;
      found[*granted->zone] = cpus;
      open_.erase(*granted->zone);
      taken_ |= granted->placement.exclusive;
    }
    return found;
  }

  // The largest number up to `cpus` that the policy grants in its present state, anywhere.
  int MostAlone(int cpus) {
    while (cpus > 0 && !Try(cpus))
      --cpus;
    return cpus;
  }

  // Whether the policy grants them in its present state, and not in a single zone.
  bool Splits(int cpus) {
    const std::optional<ImaginedGrant> granted = Tried(cpus);
    return granted && !granted->placement.exclusive.empty() && !granted->zone;
  }

  // Whether the policy grants them in its present state, anywhere.
  bool Try(int cpus) { return Tried(cpus).has_value(); }
  // Grants them and keeps the grant. False: the policy refuses.
  bool Keep(int cpus) { return Grant(cpus).has_value(); }

 private:
  // The grant, which is taken back; nullopt also if there are no tries left.
  std::optional<ImaginedGrant> Tried(int cpus) {
    if (tries_left_ == 0) return std::nullopt;
    --tries_left_;
    std::optional<ImaginedGrant> granted = Grant(cpus);
    if (granted) Undo();
    return granted;
  }
  // nullopt: the policy refuses, and nothing has changed.
  std::optional<ImaginedGrant> Grant(int cpus) {
    if (cpus < 1) return std::nullopt;
    const Container& container = what_if_.Add(cpus);
    const StatusOr<Plan> plan =
        policy_->Allocate(what_if_, what_if_.PodOfLast(), container, nullptr);
    std::optional<Placement> placement;
    if (plan.ok()) placement = plan->NewPlacement(container);
    if (!placement) {
      what_if_.RemoveLast();
      return std::nullopt;
    }
    what_if_.Place(*placement);
    const std::optional<size_t> zone = ZoneOf(*placement, cpus);
    return ImaginedGrant{.placement = *std::move(placement), .zone = zone};
  }

  void Undo() {
    const ContainerKey key = what_if_.LastKey();
    what_if_.RemoveLast();
    // Policies release unknown containers, too, so this does not fail.
    [[maybe_unused]] const StatusOr<Plan> released = policy_->Release(what_if_, key);
  }

  // No zone has more CPUs left than this.
  int MostIn() const {
    int most = 0;
    for (const size_t zone : open_)
      most = std::max(most, (zones_[zone] - taken_).size());
    return most;
  }

  std::optional<size_t> ZoneOf(const Placement& placement, int cpus) const {
    const CpuSet where =
        placement.exclusive.empty() ? placement.cpus.value_or(CpuSet()) : placement.exclusive;
    if (where.size() < cpus) return std::nullopt;
    for (size_t zone = 0; zone < zones_.size(); ++zone)
      if (where.IsSubsetOf(zones_[zone])) return zone;
    return std::nullopt;
  }

  // Whether they are granted inside a zone without a result.
  bool FitsOpen(int cpus) {
    const std::optional<ImaginedGrant> granted = Tried(cpus);
    return granted && granted->zone && open_.contains(*granted->zone);
  }

  // Bisects the multiples of a core's threads, then tries the numbers between the last one that
  // fits and the next. 0: none fits.
  int Largest(int most) {
    if (FitsOpen(most)) return most;
    const int step = std::max(options_.threads_per_core, 1);
    int fits = 0;
    int too_many = (most + step - 1) / step;
    while (too_many - fits > 1) {
      const int middle = fits + (too_many - fits) / 2;
      (FitsOpen(middle * step) ? fits : too_many) = middle;
    }
    const int limit = std::min((fits + 1) * step, most) - 1;
    for (int cpus = limit; cpus > fits * step; --cpus)
      if (FitsOpen(cpus)) return cpus;
    return fits * step;
  }

  const PlaceableOptions options_;
  const std::span<const CpuSet> zones_;
  WhatIf what_if_;
  const std::unique_ptr<Policy> policy_;
  std::set<size_t> open_;  // zones without a result
  CpuSet taken_;
  int tries_left_;
};

}  // namespace

CpuSet AllocatableCpus(const Policy& policy, const Snapshot& snapshot) {
  CpuSet allocatable;
  CpuSet reserved;
  for (const Zone& zone : policy.Zones(snapshot)) {
    CpuSet& cpus = IsReservedPool(zone.name) ? reserved : allocatable;
    cpus |= zone.cpus;
  }
  return allocatable - reserved;
}

std::vector<int> PlaceableCpus(const Policy& policy, const Snapshot& snapshot,
                               std::span<const CpuSet> zones, const PlaceableOptions& options) {
  std::vector<int> found = PlaceableSearch(policy, snapshot, zones, options).Run();
  // A policy that chooses between kinds of CPUs may grant a container only after another one.
  PlaceableSearch alone(policy, snapshot, zones, options);
  for (int& cpus : found)
    cpus = alone.MostAlone(cpus);
  return found;
}

std::optional<int> CpuStep(const Policy& policy, const PlaceableOptions& options) {
  const EmptySnapshot empty;
  const std::unique_ptr<Policy> copy = CopyWithoutClaims(policy);
  if (!copy->Reconcile(empty).ok()) return std::nullopt;
  PlaceableSearch search(*copy, empty, {}, options);
  if (search.Try(1)) return 1;
  if (search.Try(options.threads_per_core)) return options.threads_per_core;
  return std::nullopt;
}

bool RefusesToSplit(const Policy& policy, std::span<const CpuSet> zones,
                    const PlaceableOptions& options) {
  if (zones.size() < 2) return true;
  const EmptySnapshot empty;
  const std::unique_ptr<Policy> copy = CopyWithoutClaims(policy);
  if (!copy->Reconcile(empty).ok()) return false;
  const std::vector<int> fits = PlaceableCpus(*copy, empty, zones, options);
  const int largest = std::ranges::max(fits);
  PlaceableOptions more = options;
  more.most_tries *= 2;
  PlaceableSearch search(*copy, empty, zones, more);
  const int step = std::max(options.threads_per_core, 1);
  // A policy that splits at all does so with a little more than fits, or with half as much again.
  for (const int cpus : {largest + step, largest + largest / 2 / step * step})
    if (cpus > largest && search.Try(cpus)) return false;
  // It may refuse these for want of shared CPUs alone, and split smaller ones, at first or beside
  // other containers.
  for (int others = 0; others <= kMostOthers; ++others) {
    for (int cpus = 2; cpus <= largest; ++cpus)
      if (search.Splits(cpus)) return false;
    if (!search.Keep(step)) break;
  }
  return true;
}

}  // namespace resmgr
