// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/classes/host_keeper.h"

namespace resmgr {

// The way from the partitions of cpusets as they are to the wanted ones (Linux 6.7,
// cgroup-v2.rst). The kernel refuses CPUs in cpuset.cpus.exclusive that a cgroup beside it has, and
// ends a partition whose CPUs a cgroup above does not have any more. So first each cgroup loses the
// CPUs that it shall not keep, then cgroups above get what moving partitions need, then these move.
// A partition whose new CPUs are free already moves without an end. One whose new CPUs belong to
// others that wait for its own ends for a moment: of two that swap CPUs, the first one does.
//
// Each list has all paths of `wanted`, in the order in which they are to be written, and is to be
// kept as a whole before the next; `wanted` comes last. Empty: `wanted` can be written at once.
// Reads the files of partitions. May block.
std::vector<std::vector<HostValue>> PartitionSteps(const std::vector<HostValue>& wanted,
                                                   HostFiles& files);

// Keeps all steps, and `wanted` at the end.
HostKeeper::Result KeepInSteps(const std::vector<HostValue>& wanted, HostKeeper& keeper);

}  // namespace resmgr
