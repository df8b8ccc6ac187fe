// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/pod.h"
#include "pkg/topology/cpu_set.h"
#include "test/support/containerd/child_process.h"

namespace resmgr::test {

// A containerd of the test's own, on real runc, beside any other on the machine: its own root,
// state and socket in a fresh directory, serving CRI with the images docker.io/local/pause:1 and
// docker.io/local/busybox:1. Runtime handlers: "" and "runc", and "second" (runc again). Pods need
// no CNI when they use the host's network.
//
// Whatever it started is gone when it is destroyed or when the test's process dies (Cleaner).
// Thread-compatible.
class Containerd {
 public:
  static constexpr std::string_view kPauseImage = "docker.io/local/pause:1";
  static constexpr std::string_view kBusyboxImage = "docker.io/local/busybox:1";

  // An error that names the missing part: root, containerd, ctr, runc or the images. OK: one can
  // run here.
  static Status Runnable();

  // Returns when the CRI service answers and the images are there: imported, or copied with the
  // root of another containerd (RESMGR_CONTAINERD_ROOT in the environment). `programs`: the folder
  // of another containerd than that of PATH, with its shim and ctr. kFailedPrecondition: not
  // runnable here, with the reason.
  static StatusOr<std::unique_ptr<Containerd>> Start(const std::filesystem::path& programs = {});

  Containerd(const Containerd&) = delete;
  Containerd& operator=(const Containerd&) = delete;
  ~Containerd();

  // A place for the test's own sockets, logs and files. Short, as socket paths must be.
  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path socket() const { return directory_ / "containerd.sock"; }
  // The socket for NRI plugins, if it is 1.7 or newer.
  std::filesystem::path nri_socket() const { return directory_ / "nri.sock"; }

  // How a kubelet names the cgroups of pods: as its own driver does, or as systemd's slices.
  enum class CgroupNames { kCgroupfs, kSystemd };
  // A kubelet's cgroup parent for a pod with this UID, below a top cgroup of this containerd's own.
  std::string CgroupParent(QosClass qos, std::string_view uid,
                           CgroupNames names = CgroupNames::kCgroupfs) const;

  // The CPUs that the container's first process may use, as the kernel has it, asked from outside.
  // Nothing when it does not run: not started yet, ended, or not known. From any thread.
  std::optional<CpuSet> AllowedCpus(const std::string& container_id) const;
  // The same of a container that was started: its process takes the place of runc some time after
  // the start is answered. Nothing when it has not done so after twenty seconds, or has ended.
  std::optional<CpuSet> AwaitAllowedCpus(const std::string& container_id) const;

  // kill -9 of its first process, as by the kernel; false when there is none.
  bool EndProcess(const std::string& container_id) const;

  // The directory with the container's config.json for runc.
  std::filesystem::path Bundle(const std::string& container_id) const {
    return directory_ / "state/io.containerd.runtime.v2.task/k8s.io" / container_id;
  }

  // A file of the cgroup of the container's first process, started or not, in whichever hierarchy
  // it is; "" when there is none. From any thread.
  std::string CgroupFile(const std::string& container_id, std::string_view file) const;
  // The path of that file; "" without one.
  std::string CgroupPath(const std::string& container_id, std::string_view file) const;
  // The cpuset of its cgroup: CPUs and memory nodes as kernel lists. "" when there is no cgroup.
  std::string CgroupCpus(const std::string& container_id) const;
  std::string CgroupMems(const std::string& container_id) const;
  // The CPU shares of its cgroup; with a weight, `expected` if runc converts these to the weight,
  // else the least shares that it converts to it. 0 when unknown.
  int64_t CgroupShares(const std::string& container_id, int64_t expected) const;
  // Its CFS quota in microseconds; -1: none. 0 when unknown.
  int64_t CgroupQuota(const std::string& container_id) const;
  // Its limit of memory in bytes; -1: none, also where v1 writes a number that no machine has.
  int64_t CgroupMemoryLimit(const std::string& container_id) const;

  // The number of updates so far, of this container or of all.
  size_t Updates(std::string_view container_id = "") const;

  // kill -9. Containers go on running.
  void Kill();

  // Starts it again on the same state; returns when the CRI service answers.
  Status Restart();

  // The end of its log, for messages.
  std::string Log() const { return LastLines(directory_ / "containerd.log"); }

 private:
  Containerd(std::filesystem::path directory, std::filesystem::path programs, Cleaner cleaner)
      : directory_(std::move(directory)),
        programs_(std::move(programs)),
        cleaner_(std::move(cleaner)) {}

  std::string CgroupName() const { return directory_.filename(); }
  // Its first process, "" when there is none.
  std::string ProcessOf(const std::string& container_id) const;
  // The command line that runs one of its programs.
  std::vector<std::string> Command(std::vector<std::string> argv) const;
  Status WriteConfig() const;
  Status ImportImages() const;

  std::filesystem::path directory_;
  const std::filesystem::path programs_;  // empty: those of PATH
  const Cleaner cleaner_;                 // ends after the process
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace resmgr::test
