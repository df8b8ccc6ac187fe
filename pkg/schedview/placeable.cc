// SPDX-License-Identifier: Apache-2.0
#include "pkg/schedview/placeable.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "pkg/claims/claim_place.h"
#include "pkg/claims/claimed_policy.h"
#include "pkg/policy/conventions.h"

namespace resmgr {
namespace {

// Limit of other containers that are placed first in the test whether the policy splits containers.
constexpr int kMostOthers = 4;

// A node without containers, such as one that has just joined.
class EmptySnapshot final : public Snapshot {
 public:
  const Pod* FindPod(const PodSandboxId& /*id*/) const override { return nullptr; }
  const Container* FindContainer(ContainerKey /*key*/) const override { return nullptr; }
  void ForEachContainer(
      const std::function<void(const Pod&, const Container&)>& /*visit*/) const override {}
  Overhead OverheadOf(const Pod& /*pod*/) const override { return {}; }
  HeldOverheads Overheads() const override { return {}; }
};

// A place that a copy of the policy granted.
struct ImaginedGrant {
  Placement placement{};
  std::optional<size_t> zone{};  // the zone that it is wholly inside; nullopt: none
};

// Tries containers on one copy of the policy: each tried container is released again, which
// restores the state before.
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
      // This grant was just tried by Largest, so it fails only if no number of CPUs fitted.
      if (!granted || !granted->zone || !open_.contains(*granted->zone)) break;
      found[*granted->zone] = cpus;
      open_.erase(*granted->zone);
      taken_ |= granted->placement.exclusive;
    }
    return found;
  }

  // The largest number of CPUs up to `cpus` that the policy grants in its present state, in one or
  // several zones.
  int MostAlone(int cpus) {
    while (cpus > 0 && !Try(cpus))
      --cpus;
    return cpus;
  }

  // Whether the policy grants so many exclusive CPUs in its present state, but not in a single
  // zone.
  bool Splits(int cpus) {
    const std::optional<ImaginedGrant> granted = Tried(cpus);
    return granted && !granted->placement.exclusive.empty() && !granted->zone;
  }

  // Whether the policy grants so many CPUs in its present state, in one or several zones.
  bool Try(int cpus) { return Tried(cpus).has_value(); }
  // Grants so many CPUs and keeps the grant. False: the policy refuses.
  bool Keep(int cpus) { return Grant(cpus).has_value(); }

 private:
  // Grants so many CPUs and takes the grant back; nullopt also if there are no tries left.
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
    // Cannot fail: policies also release containers that the snapshot does not have.
    [[maybe_unused]] const StatusOr<Plan> released = policy_->Release(what_if_, key);
  }

  // An upper limit: no open zone has more CPUs left than this.
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

  // Whether so many CPUs are granted inside a zone that has no result yet.
  bool FitsOpen(int cpus) {
    const std::optional<ImaginedGrant> granted = Tried(cpus);
    return granted && granted->zone && open_.contains(*granted->zone);
  }

  // The largest number of CPUs that fits into an open zone: bisects multiples of a core's threads,
  // then tries the numbers up to the next multiple. 0: none fits.
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

// The CPUs of a place that are free for claims.
struct FreeKinds {
  int ordinary = 0;
  int isolated = 0;
};

Claim ImaginedClaim(int number, const ClaimPart& part) {
  return {.uid = fmt::format("what-if-{}", number),
          .namespace_name = "default",
          .name = "what-if",
          .parts = {part}};
}

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
    // No claim can get a balloon's CPUs, even if its containers share them.
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

  // Reserves as many CPUs up to `limit` as the policy grants in this place, and returns their
  // number.
  int Take(const ClaimPart& place, int limit) {
    const int step = std::max(options_.step, 1);
    const int most = std::min(Free(place).size(), limit) / step;
    // Tries the whole number first without a copy of the policy: it usually fits, and a refusal
    // changes nothing.
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
    ClaimPart part = place;
    part.cpus = cpus;
    return policy.Reserve(snapshot_, ImaginedClaim(tries_left_, part)).ok();
  }

  const WhatIf snapshot_;  // without containers that have exited
  const Machine& machine_;
  const ClaimableOptions options_;
  std::unique_ptr<ClaimedPolicy> policy_;
  CpuSet taken_;
  int tries_left_;
};

// Lowers the numbers so that each can be granted even after smaller claims, which may have taken
// all ordinary CPUs of the other places and left the isolated ones. `kept`: the ordinary CPUs that
// the policy grants to no claim.
void LeaveOrdinary(int kept, std::span<const FreeKinds> free, int step, std::vector<int>& found) {
  const auto most_ordinary = [&](size_t at) { return std::min(found[at], free[at].ordinary); };
  int unclaimed = -kept;  // ordinary CPUs for further claims if each place is claimed as in `found`
  for (size_t at = 0; at < found.size(); ++at)
    unclaimed += free[at].ordinary - most_ordinary(at);
  for (size_t at = 0; at < found.size(); ++at) {
    unclaimed += most_ordinary(at);
    const int most = free[at].isolated + std::max(unclaimed, 0);
    found[at] = std::min(found[at], most / step * step);
    unclaimed -= most_ordinary(at);
  }
}

// Real containers have keys from 1 on, so these are never used.
constexpr uint64_t kFirstImaginedKey = uint64_t{1} << 63;
// Guaranteed pods have a memory limit; this one is so small that it does not affect the place.
constexpr Bytes kImaginedMemory{1 << 20};

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

CpuSet ExclusiveCpus(const Policy& policy, const Snapshot& snapshot) {
  CpuSet exclusive = ClaimsOf(policy).Cpus();
  snapshot.ForEachContainer([&exclusive](const Pod&, const Container& container) {
    if (container.state != ContainerState::kExited) exclusive |= container.placement.exclusive;
  });
  return exclusive;
}

std::vector<int> PlaceableCpus(const Policy& policy, const Snapshot& snapshot,
                               std::span<const CpuSet> zones, const PlaceableOptions& options) {
  std::vector<int> found = PlaceableSearch(policy, snapshot, zones, options).Run();
  // A policy that chooses between kinds of CPUs may grant a number only after another container, so
  // each is also tried by itself.
  PlaceableSearch alone(policy, snapshot, zones, options);
  for (int& cpus : found)
    cpus = alone.MostAlone(cpus);
  return found;
}

int ThreadsPerCore(const Machine& machine) {
  int most = 1;
  for (const CpuSet& core : machine.cores())
    most = std::max(most, core.size());
  return most;
}

std::optional<int> CpuStep(const Policy& policy, const Machine& machine) {
  const EmptySnapshot empty;
  const ClaimCarriers no_carriers;
  ClaimedPolicy copy(CopyWithoutClaims(policy), machine, no_carriers);
  if (!copy.Reconcile(empty).ok()) return std::nullopt;
  // A claim and not a container, which may get shared CPUs where a claim gets exclusive ones.
  for (const int cpus : {1, ThreadsPerCore(machine)})
    if (copy.Reserve(empty, ImaginedClaim(0, {.cpus = cpus})).ok()) return cpus;
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
  // A policy that splits containers grants a little more than fits in one zone, or half as much
  // again.
  for (const int cpus : {largest + step, largest + largest / 2 / step * step})
    if (cpus > largest && search.Try(cpus)) return false;
  // The policy may have refused these numbers only for lack of shared CPUs, and still split smaller
  // ones, alone or beside other containers.
  for (int others = 0; others <= kMostOthers; ++others) {
    for (int cpus = 2; cpus <= largest; ++cpus)
      if (search.Splits(cpus)) return false;
    if (!search.Keep(step)) break;
  }
  return true;
}

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

const Container& WhatIf::Add(int cpus) {
  const uint64_t number = made_++;
  Imagined& one = imagined_.emplace_back();
  one.pod.id = PodSandboxId(fmt::format("what-if-{}", number));
  one.pod.uid = PodUid(fmt::format("what-if-{}", number));
  one.pod.name = "what-if";
  one.pod.namespace_name = "default";
  one.pod.qos = QosClass::kGuaranteed;
  one.container.key = ContainerKey{kFirstImaginedKey + number};
  one.container.pod_id = one.pod.id;
  one.container.name = "what-if";
  one.container.requirements = {.cpu_request = {int64_t{cpus} * 1000},
                                .cpu_limit = {int64_t{cpus} * 1000},
                                .memory_request = kImaginedMemory,
                                .memory_limit = kImaginedMemory};
  return one.container;
}

const Pod* WhatIf::FindPod(const PodSandboxId& id) const {
  for (const Imagined& one : imagined_)
    if (one.pod.id == id) return &one.pod;
  return all_.FindPod(id);
}

const Container* WhatIf::FindContainer(ContainerKey key) const {
  for (const Imagined& one : imagined_)
    if (one.container.key == key) return &one.container;
  const Container* const found = all_.FindContainer(key);
  return found == nullptr || found->state == ContainerState::kExited ? nullptr : found;
}

void WhatIf::ForEachContainer(
    const std::function<void(const Pod&, const Container&)>& visit) const {
  all_.ForEachContainer([&visit](const Pod& pod, const Container& container) {
    if (container.state != ContainerState::kExited) visit(pod, container);
  });
  for (const Imagined& one : imagined_)
    visit(one.pod, one.container);
}

}  // namespace resmgr
