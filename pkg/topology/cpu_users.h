// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Whether no, one or several containers use each CPU: the CPUs of all that were added (`any`), and
// those that were added more than once (`several`).
struct CpuUsers {
  CpuSet any;
  CpuSet several;

  void Add(const CpuSet& cpus) {
    several |= any & cpus;
    any |= cpus;
  }
};

}  // namespace resmgr
