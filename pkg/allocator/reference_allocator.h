// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/topology/machine.h"

namespace resmgr::test {

// The allocator's rules written down a second time, in the plainest way and with no regard for
// speed, to compare against. They share no code with the real one.

CpuSet ReferencePacked(const Machine& machine, const CpuSet& free, int count, bool by_uncore,
                       bool spread);

// Looks at every combination of nodes and at every subset for the remainder.
CpuSet ReferenceDistributed(const Machine& machine, const CpuSet& free, int count, int group);

// Of `free` what lies in the one package that has enough and the fewest, else in those that have
// the most.
CpuSet ReferenceInFewestPackages(const Machine& machine, const CpuSet& free, int count);

}  // namespace resmgr::test
