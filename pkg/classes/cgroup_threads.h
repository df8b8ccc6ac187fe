// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include <sys/types.h>

#include "pkg/base/status.h"
#include "pkg/classes/class_plan.h"
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

// The container's cgroup of v2, else of v1; "": it has none.
const std::string& CgroupOf(const ClassSubject& subject);
// The threads of the container, as above. NotFound: it has no cgroup; FailedPrecondition: there are
// some outside of this process's PID namespace, which no file takes. May block.
StatusOr<std::set<pid_t>> ThreadsOfContainer(const ClassSubject& subject, HostFiles& files);

}  // namespace resmgr
