// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::test {

// A process that removes the remains of a private container runtime: shims, containers, mounts,
// cgroups and its directory (test/support/containerd/clean-up). It does so once this is destroyed
// and also when the test's process dies, whatever the reason. Thread-compatible.
class Cleaner {
 public:
  struct Places {
    std::filesystem::path directory;
    std::string cgroup;  // the name of the one top cgroup below which all containers have theirs
    // Below the directory:
    std::string runc_root;  // runc's state of each container
    std::string tasks;      // the shims' state of each container
  };
  // kUnavailable: no process could be started.
  static StatusOr<Cleaner> Start(const Places& places);

  Cleaner() = default;
  Cleaner(Cleaner&&) = default;
  Cleaner& operator=(Cleaner&&) = delete;
  // Waits until all is removed, for half a minute at most.
  ~Cleaner();

 private:
  explicit Cleaner(UniqueFd peer) : peer_(std::move(peer)) {}

  UniqueFd peer_;  // its standard input and output
};

}  // namespace resmgr::test
