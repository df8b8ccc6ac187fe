// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "pkg/audit/cgroup_reader.h"
#include "pkg/base/status.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// The memory of its own, in bytes, that a container has on each memory node, by memory.numa_stat.
// Pages of files are left out, since other containers may have read them first. Errors as of
// CgroupReader::Read; NotFound where the kernel counts no memory by node.
StatusOr<std::map<int, int64_t>> ReadMemoryOnNodes(const CgroupReader& cgroups,
                                                   std::string_view cgroup_parent,
                                                   std::string_view id);

// The memory on other nodes than decided, as a text for people; "" where it is less than a mebibyte
// or unknown. Cgroup v1 moves no pages when a container moves.
struct MemorySubject {
  std::string cgroup_parent{};
  std::string id{};
  NodeSet nodes{};  // that were decided
};
std::string MemoryElsewhere(const CgroupReader& cgroups, const MemorySubject& subject);

}  // namespace resmgr
