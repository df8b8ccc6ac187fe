// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Tells for each CPU whether no, one or several containers use it: `any` has the CPUs of all added
// sets, and `several` those that were in more than one set.
struct CpuUsers {
  CpuSet any;
  CpuSet several;

  void Add(const CpuSet& cpus) {
    several |= any & cpus;
    any |= cpus;
  }
};

}  // namespace resmgr
