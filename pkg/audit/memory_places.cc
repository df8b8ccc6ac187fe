// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/memory_places.h"

#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "pkg/base/bytes_text.h"
#include "pkg/sys/files.h"
#include "pkg/topology/numa_stat.h"

namespace resmgr {
namespace {

// Memory that a process has before it is bound may lie anywhere.
constexpr int64_t kLeast = int64_t{1} << 20;

// The directory in the hierarchy of the memory controller for the one that FindCpuset found.
std::string MemoryDirectory(const CgroupReader& cgroups,
                            const CgroupReader::CpusetDirectory& cpuset) {
  constexpr std::string_view kCpuset = "cpuset/";
  std::string_view path = cpuset.path;
  if (cpuset.unified || !path.starts_with(kCpuset)) {
    return fmt::format("{}/{}", cgroups.mount_point(), path);
  }
  path.remove_prefix(kCpuset.size());
  return fmt::format("{}/memory/{}", cgroups.mount_point(), path);
}

}  // namespace

std::string MemoryElsewhere(const CgroupReader& cgroups, const MemorySubject& subject) {
  const auto cpuset = cgroups.FindCpuset(subject.cgroup_parent, subject.id);
  if (!cpuset.ok()) return "";
  const StatusOr<std::string> counted =
      ReadFile(MemoryDirectory(cgroups, *cpuset) + "/memory.numa_stat", CgroupReader::kMostBytes);
  if (!counted.ok()) return "";
  const auto found = ParseNumaStat(*counted, cpuset->unified, false).anonymous;
  std::string text;
  for (const auto& [node, bytes] : found) {
    if (bytes < kLeast || subject.nodes.Contains(node)) continue;
    text += fmt::format("{}{} on memory node {}", text.empty() ? "" : ", ", BytesText(bytes), node);
  }
  if (text.empty()) return "";
  return text + (cpuset->unified ? ": the kernel has not moved it"
                                 : " stays there: cgroup v1 moves no memory");
}

}  // namespace resmgr
