// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/topology/cpu_set.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The hierarchy of cgroups that has the cpusets.
struct CpusetHierarchy {
  std::string mount{};
  bool unified = false;  // cgroup v2
  // The kernel's list of CPUs that are online.
  std::string online = "/sys/devices/system/cpu/online";

  // The hierarchy below the mount point of cgroups, "/sys/fs/cgroup".
  static CpusetHierarchy At(const std::string& cgroups);
};

// Finds out why a cgroup may not use CPUs or memory nodes that were written into it: a cgroup above
// allows fewer, a partition of cgroup v2 took them, they are offline, or the controller is not
// enabled. Every text names the cause and the remedy; it is empty if no cause is found. An object
// serves one look at many cgroups, since it remembers the partitions. It reads only kernel memory,
// but up to some thousand small files: not for the event loop.
class CpusetLimits {
 public:
  explicit CpusetLimits(CpusetHierarchy hierarchy);

  // Why a cgroup directly below `path` ("/kubepods/pod1", "": the root) does not get these CPUs or
  // nodes. Example: "/kubepods allows CPUs 0-3 only: widen its cpuset.cpus; CPU 9 is offline".
  std::string WhyNot(std::string_view path, const CpuSet& cpus);
  std::string WhyNot(std::string_view path, const NodeSet& mems) const;
  // Why the cgroup `path` itself can have no cpuset. Example: "the controller cpuset is not enabled
  // in cgroup.subtree_control of /kubepods: write +cpuset into it".
  std::string WhyNone(std::string_view path) const;
  // The causes that keep the cgroup `own` ("": a new one) below `above` from these CPUs: cgroups
  // beside it have some exclusively or, on cgroup v1, cgroups below it have others.
  std::string Conflicts(std::string_view above, std::string_view own, const CpuSet& cpus) const;
  // CPUs that the processes of the cgroup `path` may use, and those that partitions below it took.
  // Empty: unknown.
  CpuSet AllowedCpus(std::string_view path) const;
  NodeSet AllowedMems(std::string_view path) const;

 private:
  struct Partition {
    std::string path;
    CpuSet cpus;
  };
  std::string Directory(std::string_view path) const;
  std::string TakeAbove(std::string_view path, CpuSet& lost) const;
  std::string TakePartitions(std::string_view path, CpuSet& lost);
  const std::vector<Partition>& Partitions();
  std::optional<Partition> ReadPartition(const std::string& path) const;

  const CpusetHierarchy hierarchy_;
  std::optional<std::vector<Partition>> partitions_;
};

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
  // The cgroup of all pods: a path or the name of a slice. Empty: it is searched for as a kubelet
  // makes it, kubepods.slice or kubepods below the root or, with --cgroup-root, the only one
  // nearest to the root.
  std::string pods{};
  // The prefix of /sys/fs/cgroup and /proc/self/cgroup; for tests.
  std::string root{};
};

// Reads the cgroup of all pods, on cgroup v1 and v2. If it does not exist yet, or lacks the sets,
// the nearest one above it is read. Reads only kernel memory: a dozen small files, or files of all
// cgroups at most if the cgroup may not use all CPUs or is not below the root.
CgroupSets ReadPodsCgroup(const CgroupPlaces& places);

// Reads the cgroup of this process. nullopt if the process is in a pod, whose CPUs this daemon
// itself decides, or if its place is not visible.
std::optional<CgroupSets> ReadOwnCgroup(const CgroupPlaces& places);

// Warnings for an operator if `pods`, the sets that containers may use, are less than the machine
// has, or more than this process may use. Each is a sentence.
std::vector<std::string> CgroupDifferences(const Machine& machine, const CgroupSets& pods,
                                           const std::optional<CgroupSets>& own);

}  // namespace resmgr
