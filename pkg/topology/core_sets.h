// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/topology/machine.h"

namespace resmgr {

// The cores with at least so many threads, as far as all their threads are among these CPUs.
CpuSet WholeCores(const Machine& machine, const CpuSet& cpus, int threads = 1);

// The lowest of these CPUs in each core.
CpuSet OneThreadPerCore(const Machine& machine, const CpuSet& cpus);

}  // namespace resmgr
