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
#include "pkg/topology/machine.h"

namespace resmgr {

// The grants of a policy, found by asking copies of it; the policy itself stays as it is. Pure.

// The CPUs that the policy can grant to single containers: those of its pools without the reserved
// ones.
CpuSet AllocatableCpus(const Policy& policy, const Snapshot& snapshot);
// The CPUs that single containers have, and those of claims.
CpuSet ExclusiveCpus(const Policy& policy, const Snapshot& snapshot);

// The number of threads of the machine's largest core. Pure.
int ThreadsPerCore(const Machine& machine);

struct PlaceableOptions {
  // CPUs are granted in multiples of this number if the policy grants whole cores only; such
  // numbers are tried first. Any other number is possible if containers may share cores.
  int threads_per_core = 1;
  // Limit of containers that are tried for all zones together, and again to try each number by
  // itself. Each try is one decision of a copy of the policy. When the limit is reached, the zones
  // without a result count as full.
  int most_tries = 200;
};

// For each zone, the largest number of CPUs that one container gets inside it, after other
// containers got the results of the other zones. So all results together can be granted, in the
// order in which the policy fills the zones, and each of them by itself. A container that the
// policy places on shared CPUs counts if all its CPUs are inside one zone.
std::vector<int> PlaceableCpus(const Policy& policy, const Snapshot& snapshot,
                               std::span<const CpuSet> zones, const PlaceableOptions& options);

// Whether the policy refuses a container that does not fit into a single zone, instead of granting
// CPUs of several zones. A copy without containers is asked, so the answer depends only on the
// configuration.
bool RefusesToSplit(const Policy& policy, std::span<const CpuSet> zones,
                    const PlaceableOptions& options);

// The unit in which the policy grants CPUs to claims: a core's threads if it refuses a single CPU
// and grants a core, else 1; nullopt if it grants neither. A copy without containers and claims is
// asked, so the answer depends only on the configuration.
std::optional<int> CpuStep(const Policy& policy, const Machine& machine);

struct ClaimableOptions {
  int step = 1;  // claims ask for multiples of this number
  // Limit of claims that are tried in each order, for all places together. Each try is one decision
  // of a copy of the policy. When the limit is reached, the places without a result count as full.
  int most_tries = 200;
};

// For each place, the largest number of CPUs that one more claim gets there, after claims with the
// results of the places before it (`cpus` of `places` is not read). If there are isolated CPUs,
// which policies may grant last, the numbers also hold if claims come in descending order, or after
// smaller claims that took all ordinary CPUs elsewhere. All results together can be granted. Copies
// of the policy are asked, and the policy itself does not change. Pure.
std::vector<int> ClaimableCpus(const ClaimedPolicy& policy, const Snapshot& snapshot,
                               std::span<const ClaimPart> places, const Machine& machine,
                               const ClaimableOptions& options);

// All containers that a policy may see, and in addition imagined ones, for which a copy of the
// policy is asked for places. Real containers keep their placements. Loop's thread only; `all` must
// outlive this and not change.
class WhatIf final : public Snapshot {
 public:
  explicit WhatIf(const Snapshot& all) : all_(all) {}

  // Adds a container with so many whole CPUs, in a Guaranteed pod of its own without annotations in
  // the namespace `default`. The reference is valid as long as this object.
  const Container& Add(int cpus);
  // Removes the container that was added last.
  void RemoveLast() { imagined_.pop_back(); }
  ContainerKey LastKey() const { return imagined_.back().container.key; }
  const Pod& PodOfLast() const { return imagined_.back().pod; }
  // Sets the placement of the container that was added last.
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
  uint64_t made_ = 0;              // number of pods made, so that no id is used twice
};

}  // namespace resmgr
