// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Who is where: the CPUs of all that were added, and which of them several have.
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
