// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/claims/claim.h"
#include "pkg/schedview/scheduler_view.h"
#include "pkg/topology/machine.h"

namespace resmgr::dra {

// A NUMA node as a device whose CPUs claims consume.
struct NodeDevice {
  int node = 0;     // operating-system number
  int package = 0;  // index in Machine::packages
  // The CPUs that claims hold and that the policy would grant now. Schedulers subtract the former
  // themselves. They do not know of CPUs that other containers have for themselves, so these are
  // not part of this number.
  int cpus = 0;  // a multiple of `step`, more than 0
  int step = 1;  // claims get multiples of it
  bool smt = false;

  friend bool operator==(const NodeDevice&, const NodeDevice&) = default;
};

// The devices of a node, in the order of their NUMA nodes. `view` and `held` are of one moment.
// Pure.
std::vector<NodeDevice> NodeDevices(const SchedulerView& view, const std::vector<ClaimGrant>& held,
                                    const Machine& machine, int step);

}  // namespace resmgr::dra
