// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/topology/cpu_set.h"

namespace resmgr {

// How many containers use each CPU, as far as none, one or several: the CPUs of all that were
// added (`any`), and those that were added more than once (`several`).
struct CpuUsers {
  CpuSet any;
  CpuSet several;

  void Add(const CpuSet& cpus) {
    several |= any & cpus;
    any |= cpus;
  }
  CpuSet Single() const { return any - several; }
};

}  // namespace resmgr
