// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "pkg/claims/claimed_policy.h"
#include "pkg/model/snapshot.h"
#include "pkg/policy/policy.h"

namespace resmgr {

// The grants of a policy, found by asking copies of it; the policy itself stays as it is. Pure.

// The CPUs that the policy may grant to single containers at all: those of its pools without the
// reserved ones.
CpuSet AllocatableCpus(const Policy& policy, const Snapshot& snapshot);

struct PlaceableOptions {
  // Containers that may share a core's threads with others come in any number of CPUs; with whole
  // cores only, in multiples of this number, which is tried first.
  int threads_per_core = 1;
  // How many containers are tried at most, for all zones together, and again to try each number by
  // itself. Each is one decision of a copy of the policy. Zones that are left when they are used up
  // count as full.
  int most_tries = 200;
};

// For each zone, the largest number of CPUs that one container gets wholly inside it, after the
// containers with the results of the other zones got theirs. So all results together can be
// granted, in the order in which the policy itself fills the zones, and each of them by itself. A
// container that the policy places on shared CPUs counts where all its CPUs are inside one zone.
std::vector<int> PlaceableCpus(const Policy& policy, const Snapshot& snapshot,
                               std::span<const CpuSet> zones, const PlaceableOptions& options);

// Whether the policy refuses a container that fits no single zone, instead of granting CPUs of
// several. Asked of a copy without containers, so that the answer follows from the configuration
// alone.
bool RefusesToSplit(const Policy& policy, std::span<const CpuSet> zones,
                    const PlaceableOptions& options);

// How many CPUs at a time the policy grants: a core's threads if it refuses a single CPU and grants
// a core, else 1; nullopt if it grants neither now. Asked of a copy without containers and claims.
std::optional<int> CpuStep(const Policy& policy, const PlaceableOptions& options);

struct ClaimableOptions {
  int step = 1;  // claims ask for multiples of it
  // Claims that are tried at most in each order, for all places together. Each is one decision of a
  // copy of the policy. Places that are left when they are used up count as full.
  int most_tries = 200;
};

// For each place (`cpus` of the parts is not read), the largest number of CPUs that one more claim
// gets there, after claims with the results of the places before it got theirs. If there are
// isolated CPUs, which policies may grant last, the numbers also hold if claims come in descending
// order, or after smaller claims that took all ordinary CPUs elsewhere. All results together can be
// granted. Found by asking copies of the policy, which stays as it is. Pure.
std::vector<int> ClaimableCpus(const ClaimedPolicy& policy, const Snapshot& snapshot,
                               std::span<const ClaimPart> places, const Machine& machine,
                               const ClaimableOptions& options);

// The containers that a policy may look at, and with them containers that do not exist: a copy of
// the policy is asked for their places. Those that exist keep the placements that they have. Loop's
// thread only; `all` must outlive this and stay as it is.
class WhatIf final : public Snapshot {
 public:
  explicit WhatIf(const Snapshot& all) : all_(all) {}

  // A container with so many whole CPUs, in a Guaranteed pod of its own without annotations in the
  // namespace `default`. The result stays valid as long as this object.
  const Container& Add(int cpus);
  // Removes the last one.
  void RemoveLast() { imagined_.pop_back(); }
  ContainerKey LastKey() const { return imagined_.back().container.key; }
  const Pod& PodOfLast() const { return imagined_.back().pod; }
  // Notes where the last one has its place.
  void Place(const Placement& placement) { imagined_.back().container.placement = placement; }

  const Pod* FindPod(const PodSandboxId& id) const override;
  const Container* FindContainer(ContainerKey key) const override;
  void ForEachContainer(
      const std::function<void(const Pod&, const Container&)>& visit) const override;
  Overhead OverheadOf(const Pod& pod) const override { return all_.OverheadOf(pod); }
  HeldOverheads Overheads() const override { return all_.Overheads(); }

 private:
  struct Imagined {
    Pod pod;
    Container container;
  };

  const Snapshot& all_;
  std::deque<Imagined> imagined_;  // ascending by key
  uint64_t made_ = 0;              // numbers the pods, so that no id is used twice
};

}  // namespace resmgr
