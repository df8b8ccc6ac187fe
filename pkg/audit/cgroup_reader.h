// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/model/resources.h"
#include "pkg/topology/cpu_set.h"
#include "pkg/topology/cpuset_limits.h"

namespace resmgr {

// The values that the kernel enforces for one container. An empty field is not set in the cgroup,
// or could not be read.
struct CgroupValues {
  // The values as written into the cgroup. On cgroup v2 the shares are `cpu_weight` instead.
  ResourceValues set{};
  std::optional<int64_t> cpu_weight{};
  // The CPUs of `set.cpus` that the cgroups above allow, including CPUs that partitions below took.
  std::optional<CpuSet> effective_cpus{};
  std::optional<NodeSet> effective_mems{};
  // Causes and remedies from CpusetLimits: the reason why fewer CPUs are left than were written, or
  // why the cgroup cannot have a cpuset or a weight.
  std::string why_fewer_cpus{};
  std::string why_fewer_mems{};
  std::string why_no_cpuset{};
  bool idle = false;  // cpu.idle
  // The CPUs of the first process in the cgroup itself, by its affinity and its cgroup, and the
  // process that started it.
  std::optional<CpuSet> process_cpus{};
  std::optional<CpuSet> parent_cpus{};
};

// Finds containers' cgroups and reads them, on cgroup v1 (a hierarchy for each controller) and on
// v2. The file system is the kernel's memory and does not hang, but a thousand containers take
// tens of milliseconds: not for the event loop. Thread-safe.
class CgroupReader {
 public:
  // The mount point of cgroups, the directory of processes and the file with the online CPUs; tests
  // set other paths.
  explicit CgroupReader(std::string mount_point = "/sys/fs/cgroup", std::string proc = "/proc",
                        std::string online = "/sys/devices/system/cpu/online");

  // Reads the container with this whole id. `cgroup_parent` is its pod's as the kubelet names it: a
  // path ("/kubepods/burstable/pod1"), or a systemd slice ("kubepods-burstable-pod1.slice"); empty:
  // the runtime's default, which is looked for. The container's is the directory below it that is
  // named after the id, whatever the runtime puts around it ("cri-containerd-ID.scope"). `limits`
  // finds the causes of differences; nullptr skips this. NotFound: the cgroup does not exist.
  // InvalidArgument: the parent or the id cannot be the name of a cgroup.
  StatusOr<CgroupValues> Read(std::string_view cgroup_parent, std::string_view id,
                              CpusetLimits* limits = nullptr) const;
  // The limits that all calls of Read share during one look at many cgroups.
  CpusetLimits Limits() const;
  // As Read, but with the memory limits and without CPUs and memory nodes.
  StatusOr<CgroupValues> ReadNumbers(std::string_view cgroup_parent, std::string_view id) const;

  // Longer files are not read; a list of 8192 CPUs has 40 KiB at worst.
  static constexpr size_t kMostBytes = size_t{64} << 10;
  const std::string& mount_point() const { return mount_point_; }
  // The directory of the container's cpuset, as a path below the mount point. Errors as of Read.
  struct CpusetDirectory {
    std::string path;
    bool unified = false;  // cgroup v2

    // From the root of the hierarchy: "/kubepods/pod1/abc".
    std::string InHierarchy() const {
      const size_t root = unified ? 0 : path.find('/');
      return "/" + path.substr(path.find_first_not_of('/', root));
    }
  };
  StatusOr<CpusetDirectory> FindCpuset(std::string_view cgroup_parent, std::string_view id) const;

 private:
  void ReadAffinity(const std::string& directory, CgroupValues& values) const;

  const std::string mount_point_;
  const std::string proc_;
  const std::string online_;
};

// Describes for people how much of the container's own memory lies on other nodes than decided, by
// memory.numa_stat; "" if that is unknown or less than a mebibyte on each. Pages of files are left
// out, since other containers may have read them first. Cgroup v1 does not move the pages of a
// container that moves.
struct MemorySubject {
  std::string cgroup_parent{};
  std::string id{};
  NodeSet nodes{};  // the decided nodes
};
std::string MemoryElsewhere(const CgroupReader& cgroups, const MemorySubject& subject);

}  // namespace resmgr
