// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/base/status.h"
#include "pkg/claims/claim.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Where the CPUs of a part of a claim have to lie.
struct ClaimPlace {
  CpuSet cpus{};       // online ones
  std::string name{};  // "NUMA node 1", "p-core CPUs of NUMA node 1"; "": any place
};

// The number of an L3 cache of the machine (of Machine::l3_groups, not empty) in the name of its
// device: its lowest CPU. A CPU that was offline when the machine was read belongs to no cache
// there; it counts where the largest cache shows by its own numbers that this one begins with it.
// Pure.
int NumberOfCache(const CpuSet& cache, const Machine& machine);

// The place of the part's device on this machine. InvalidArgument: there is no such place, or none
// of its CPUs is online. Pure.
StatusOr<ClaimPlace> PlaceOf(const ClaimPart& part, const Machine& machine);
// The place, restricted to the cores that the claim's parameters allow. It may have no CPUs.
StatusOr<ClaimPlace> PlaceOf(const ClaimPart& part, const ClaimOptions& options,
                             const Machine& machine);

}  // namespace resmgr
