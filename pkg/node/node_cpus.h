// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/model/snapshot.h"
#include "pkg/policy/policy.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// How many CPUs of one NUMA node are allocated.
struct NumaCpus {
  int node = 0;  // operating-system number
  // That containers may have for themselves: those of the policy without the reserved ones.
  int allocatable = 0;
  int exclusive = 0;  // that single containers have for themselves
  int free = 0;       // allocatable ones that no container has for itself

  friend bool operator==(const NumaCpus&, const NumaCpus&) = default;
};

// Of each NUMA node with CPUs, in the order of their number. Containers that have exited have none.
std::vector<NumaCpus> CpusByNumaNode(const Machine& machine, const Policy& policy,
                                     const Snapshot& snapshot);

// As an annotation of the node, described in docs/annotations.md:
//   {"version":1,"numa":[{"id":0,"allocatable":15,"exclusive":4,"free":11}]}
std::string ToJson(const std::vector<NumaCpus>& cpus);

}  // namespace resmgr
