// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/base/status.h"
#include "pkg/topology/cpu_set.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Reads the CPUs that the kernel has online now, from one small file in memory. `root` is the
// prefix of /sys; empty: the one of HWLOC_FSROOT, as for the live machine.
StatusOr<CpuSet> ReadOnlineCpus(const std::string& root);

// The machine's CPUs that were not online when it was read; only their numbers are known.
CpuSet OfflineCpus(const Machine& machine);

// A hash, in hexadecimal, over what stays the same on one machine when CPUs go offline and come
// back: the numbers of all CPUs, the memory nodes and their distances. Machine::Fingerprint covers
// more, but only of CPUs that are online.
std::string HardwareFingerprint(const Machine& machine);

}  // namespace resmgr
