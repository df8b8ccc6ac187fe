// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include <sys/types.h>

#include "pkg/base/status.h"
#include "pkg/classes/host_files.h"

namespace resmgr {

struct CgroupThreads {
  std::set<pid_t> threads{};
  // There are some outside of this process's PID namespace.
  bool unseen = false;
};

// The threads of the cgroup, a path of HostFiles, and of those below it, which a container may have
// made: the first ones of very many. `v2`: it is one of cgroup v2. An error if its own file cannot
// be read. May block.
StatusOr<CgroupThreads> FindCgroupThreads(const std::string& cgroup, bool v2, HostFiles& files);

}  // namespace resmgr
