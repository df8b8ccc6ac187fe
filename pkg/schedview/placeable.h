// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

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

}  // namespace resmgr
