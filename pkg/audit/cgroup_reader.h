// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/model/resource_values.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// What the kernel enforces for one container. An empty value is one that the cgroup does not set,
// or that could not be read.
struct CgroupValues {
  // As they were written into the cgroup. On cgroup v2 the shares are `cpu_weight` instead.
  ResourceValues set{};
  std::optional<int64_t> cpu_weight{};
  // What is left of them after all cgroups above.
  std::optional<CpuSet> effective_cpus{};
  std::optional<NodeSet> effective_mems{};
  // What the first process in the cgroup itself may use, by its affinity and its cgroup, and the
  // process that started it.
  std::optional<CpuSet> process_cpus{};
  std::optional<CpuSet> parent_cpus{};
};

// Finds containers' cgroups and reads them, on cgroup v1 (a hierarchy for each controller) and on
// v2. The file system is the kernel's memory and does not hang, but a thousand containers take
// tens of milliseconds: not for the event loop. Thread-safe.
class CgroupReader {
 public:
  // Where cgroups and processes are; for tests something else.
  explicit CgroupReader(std::string mount_point = "/sys/fs/cgroup", std::string proc = "/proc");

  // Reads the container with this whole id. `cgroup_parent` is its pod's as the kubelet names it: a
  // path ("/kubepods/burstable/pod1"), or a systemd slice ("kubepods-burstable-pod1.slice"); empty:
  // the runtime's default, which is looked for. The container's is the directory below it that is
  // named after the id, whatever the runtime puts around it ("cri-containerd-ID.scope"). NotFound:
  // there is no such cgroup. InvalidArgument: the parent or the id cannot be a name of one.
  StatusOr<CgroupValues> Read(std::string_view cgroup_parent, std::string_view id) const;
  // The same without CPUs and memory nodes, and with memory.
  StatusOr<CgroupValues> ReadNumbers(std::string_view cgroup_parent, std::string_view id) const;

  // A longer file is no file of a cgroup: a CPU list of 8192 CPUs has 40 KiB at worst.
  static constexpr size_t kMostBytes = size_t{64} << 10;
  const std::string& mount_point() const { return mount_point_; }
  // Where the container's CPUs and memory nodes are: below the mount point. Errors as of Read.
  struct CpusetDirectory {
    std::string path;
    bool unified = false;  // cgroup v2
  };
  StatusOr<CpusetDirectory> FindCpuset(std::string_view cgroup_parent, std::string_view id) const;

 private:
  void ReadAffinity(const std::string& directory, CgroupValues& values) const;

  const std::string mount_point_;
  const std::string proc_;
};

}  // namespace resmgr
