// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/memory_places.h"

#include <fmt/format.h>
#include <unistd.h>

#include "pkg/base/bytes_text.h"
#include "pkg/base/parse.h"
#include "pkg/sys/files.h"

namespace resmgr {
namespace {

// Memory that a process has before it is bound may lie anywhere.
constexpr int64_t kLeast = int64_t{1} << 20;

// Where the controller of memory has the directory that FindCpuset has found.
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

// "anon N0=4096 N1=0" in bytes; "anon=1 N0=1 N1=0" in pages.
std::map<int, int64_t> ParseAnonymous(std::string_view text, bool unified) {
  const std::string_view key = unified ? "anon " : "anon=";
  const int64_t unit = unified ? 1 : ::sysconf(_SC_PAGESIZE);
  std::map<int, int64_t> found;
  for (const std::string_view line : Split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    for (std::string_view word : Split(line, ' ')) {
      const size_t equals = word.find('=');
      if (!word.starts_with('N') || equals == std::string_view::npos) continue;
      const auto node = ParseInt(word.substr(1, equals - 1));
      const auto amount = ParseInt(word.substr(equals + 1));
      if (!node || !amount || *node < 0 || *node > NodeSet::kMaxId) continue;
      found[static_cast<int>(*node)] = *amount * unit;
    }
  }
  return found;
}

StatusOr<std::map<int, int64_t>> ReadNodes(const CgroupReader& cgroups,
                                           const CgroupReader::CpusetDirectory& cpuset) {
  const std::string file = fmt::format("{}/memory.numa_stat", MemoryDirectory(cgroups, cpuset));
  const StatusOr<std::string> text = ReadFile(file, CgroupReader::kMostBytes);
  if (!text.ok()) return NotFound("{}: {}", file, Message(text.status()));
  return ParseAnonymous(*text, cpuset.unified);
}

}  // namespace

StatusOr<std::map<int, int64_t>> ReadMemoryOnNodes(const CgroupReader& cgroups,
                                                   std::string_view cgroup_parent,
                                                   std::string_view id) {
  RESMGR_ASSIGN_OR_RETURN(const CgroupReader::CpusetDirectory cpuset,
                          cgroups.FindCpuset(cgroup_parent, id));
  return ReadNodes(cgroups, cpuset);
}

std::string MemoryElsewhere(const CgroupReader& cgroups, const MemorySubject& subject) {
  const auto cpuset = cgroups.FindCpuset(subject.cgroup_parent, subject.id);
  if (!cpuset.ok()) return "";
  const auto found = ReadNodes(cgroups, *cpuset);
  if (!found.ok()) return "";
  std::string text;
  for (const auto& [node, bytes] : *found) {
    if (bytes < kLeast || subject.nodes.Contains(node)) continue;
    text += fmt::format("{}{} on memory node {}", text.empty() ? "" : ", ", BytesText(bytes), node);
  }
  if (text.empty()) return "";
  return text + (cpuset->unified ? ": the kernel has not moved it"
                                 : " stays there: cgroup v1 moves no memory");
}

}  // namespace resmgr
