// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/classes/host_keeper.h"

namespace resmgr {

// The way from the present partitions of cpusets to the wanted ones (Linux 6.7, cgroup-v2.rst). The
// kernel refuses CPUs in cpuset.cpus.exclusive that a cgroup beside it has, and ends a partition
// whose CPUs a cgroup above does not have any more. So first each cgroup loses the CPUs that it
// shall not keep, then cgroups above get what moving partitions need, then the partitions move. A
// partition moves without an end if its new CPUs are free. If two partitions swap CPUs, the first
// one ends for a moment.
//
// Each list has all paths of `wanted` in the order of writing, and is to be written as a whole
// before the next list, and `wanted` after the last one. Empty: `wanted` can be written at once.
// Reads the files of partitions. May block.
std::vector<std::vector<HostValue>> PartitionSteps(const std::vector<HostValue>& wanted,
                                                   HostFiles& files);

// Keeps the values of each step, and `wanted` at the end.
HostKeeper::Result KeepInSteps(const std::vector<HostValue>& wanted, HostKeeper& keeper);

}  // namespace resmgr
