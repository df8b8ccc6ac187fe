// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/topology/machine.h"

namespace resmgr::test {

// A second implementation of the allocator's rules for comparison, as simple as possible and
// without regard for speed. It shares no code with the real one.

CpuSet ReferencePacked(const Machine& machine, const CpuSet& free, int count, bool by_uncore,
                       bool spread);

// Compares every combination of nodes and every subset for the remainder.
CpuSet ReferenceDistributed(const Machine& machine, const CpuSet& free, int count, int group);

// The part of `free` in the one package that has enough and the fewest, else in those that have the
// most.
CpuSet ReferenceInFewestPackages(const Machine& machine, const CpuSet& free, int count);

}  // namespace resmgr::test
