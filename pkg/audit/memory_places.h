// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/audit/cgroup_reader.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// The memory of its own that a container has on other nodes than decided, by memory.numa_stat, as a
// text for people; "" where it is less than a mebibyte on each or unknown. Pages of files are left
// out, since other containers may have read them first. Cgroup v1 moves no pages when a container
// moves.
struct MemorySubject {
  std::string cgroup_parent{};
  std::string id{};
  NodeSet nodes{};  // that were decided
};
std::string MemoryElsewhere(const CgroupReader& cgroups, const MemorySubject& subject);

}  // namespace resmgr
