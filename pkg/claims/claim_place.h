// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/base/status.h"
#include "pkg/claims/claim.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The CPUs that a part of a claim may have.
struct ClaimPlace {
  CpuSet cpus{};       // online ones
  std::string name{};  // "NUMA node 1", "p-core CPUs of NUMA node 1"; "": any place
};

// The number of an L3 cache (one of Machine::l3_groups, not empty) in the name of its device: its
// lowest CPU. A CPU that was offline when the machine was read is in no group; if the numbers of
// the largest cache show that such a CPU is the lowest of this one, it counts. Pure.
int NumberOfCache(const CpuSet& cache, const Machine& machine);

// The place of the part's device on this machine. InvalidArgument: there is no such place, or it is
// a cache that had no online CPU when the machine was read. A NUMA node may have no CPUs. Pure.
StatusOr<ClaimPlace> PlaceOf(const ClaimPart& part, const Machine& machine);
// The place, restricted to the cores that the claim's parameters allow. It may have no CPUs.
StatusOr<ClaimPlace> PlaceOf(const ClaimPart& part, const ClaimOptions& options,
                             const Machine& machine);

// Whether the CPUs are in the place of the part and as the claim's parameters ask: whole cores, one
// L3 cache, the kind of core. Their number does not matter. Pure.
bool FitsPart(const ClaimPart& part, const ClaimOptions& options, const CpuSet& cpus,
              const Machine& machine);

}  // namespace resmgr
