// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/model/snapshot.h"
#include "pkg/policy/policy.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The numbers of CPUs of one NUMA node, by use.
struct NumaCpus {
  int node = 0;  // operating-system number
  // CPUs that may be exclusive: the policy's without the reserved ones.
  int allocatable = 0;
  int exclusive = 0;  // exclusive CPUs of containers and claims
  int free = 0;       // allocatable ones that are not exclusive

  friend bool operator==(const NumaCpus&, const NumaCpus&) = default;
};

// The CPUs of each NUMA node that has some, by number. Exited containers have none.
std::vector<NumaCpus> CpusByNumaNode(const Machine& machine, const Policy& policy,
                                     const Snapshot& snapshot);

// The value of an annotation of the node, described in docs/annotations.md:
// {"version":1,"numa":[{"id":0,"allocatable":15,"exclusive":4,"free":11}]}
std::string ToJson(const std::vector<NumaCpus>& cpus);

}  // namespace resmgr
