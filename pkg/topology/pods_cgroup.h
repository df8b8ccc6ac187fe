// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pkg/topology/cpu_set.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The CPUs and memory nodes that one cgroup may use.
struct CgroupSets {
  std::string name{};  // "/kubepods.slice"; "/": the root
  CpuSet cpus{};       // empty: unknown
  NodeSet mems{};      // likewise
  // The reason why the cgroup of pods may not use CPUs that are online, from CpusetLimits; "" if it
  // may, or if no reason is found.
  std::string why{};
};

// The places of cgroups.
struct CgroupPlaces {
  // The cgroup of all pods: a path or the name of a slice. Empty: the one that a kubelet makes,
  // kubepods.slice or kubepods; if none is below the root, the only one nearest to it, as a kubelet
  // with --cgroup-root makes it.
  std::string pods{};
  // The prefix of /sys/fs/cgroup and /proc/self/cgroup; for tests.
  std::string root{};
};

// Reads the cgroup of all pods, on cgroup v1 and v2. If that cgroup does not exist yet, or lacks
// the sets, it reads the nearest one above it, up to the root. It reads only the kernel's memory: a
// dozen small files or, where it may not use all CPUs or is not below the root, those of all
// cgroups at most.
CgroupSets ReadPodsCgroup(const CgroupPlaces& places);

// Reads the cgroup of this process. nullopt if this is of no use: the process is in a pod, whose
// CPUs this daemon decides itself, or its place is not visible.
std::optional<CgroupSets> ReadOwnCgroup(const CgroupPlaces& places);

// Warnings for an operator about the sets of `pods`, which containers may use: they are less than
// the machine has, or more than this process may use itself. Each is a sentence.
std::vector<std::string> CgroupDifferences(const Machine& machine, const CgroupSets& pods,
                                           const std::optional<CgroupSets>& own);

}  // namespace resmgr
