// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/cgroup_threads.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr size_t kMostThreads = 65'536;
constexpr int kMostDepth = 8;
constexpr size_t kMostCgroups = 1024;

constexpr std::array kControlPrefixes = {"cgroup.", "cpu.",     "cpuset.", "memory.", "io.",
                                         "pids.",   "hugetlb.", "rdma.",   "misc.",   "irq."};

bool IsControlFile(std::string_view name) {
  return std::ranges::any_of(kControlPrefixes,
                             [name](std::string_view prefix) { return name.starts_with(prefix); });
}

class ThreadFinder {
 public:
  ThreadFinder(const char* file, HostFiles& files) : file_(file), files_(files) {}

  Status Add(const std::string& cgroup, int depth) {
    if (++cgroups_ > kMostCgroups) return OkStatus();
    RESMGR_ASSIGN_OR_RETURN(const std::string text,
                            files_.Read(fmt::format("{}/{}", cgroup, file_)));
    for (const std::string_view line : Split(text, '\n')) {
      const std::optional<int64_t> thread = ParseInt(Trim(line));
      found.unseen = found.unseen || thread == 0;
      if (thread && *thread > 0 && *thread <= std::numeric_limits<pid_t>::max())
        found.threads.insert(static_cast<pid_t>(*thread));
      if (found.threads.size() >= kMostThreads) return OkStatus();
    }
    if (depth == kMostDepth) return OkStatus();
    // One that goes meanwhile has no threads.
    for (const std::string& name : files_.List(cgroup)) {
      if (!IsControlFile(name) && name != file_)
        Add(fmt::format("{}/{}", cgroup, name), depth + 1).IgnoreError();
    }
    return OkStatus();
  }

  CgroupThreads found{};

 private:
  const char* const file_;
  HostFiles& files_;
  size_t cgroups_ = 0;
};

}  // namespace

StatusOr<CgroupThreads> FindCgroupThreads(const std::string& cgroup, bool v2, HostFiles& files) {
  ThreadFinder finder(v2 ? "cgroup.threads" : "tasks", files);
  RESMGR_RETURN_IF_ERROR(finder.Add(cgroup, 0));
  return std::move(finder.found);
}

const std::string& CgroupOf(const ClassSubject& subject) {
  return subject.cgroup.empty() ? subject.cgroup_v1 : subject.cgroup;
}

StatusOr<std::set<pid_t>> ThreadsOfContainer(const ClassSubject& subject, HostFiles& files) {
  const std::string& cgroup = CgroupOf(subject);
  if (cgroup.empty()) return NotFound("the container has no cgroup");
  RESMGR_ASSIGN_OR_RETURN(CgroupThreads found,
                          FindCgroupThreads(cgroup, !subject.cgroup.empty(), files));
  // Written, such a number would be this thread itself.
  if (found.unseen) {
    return FailedPrecondition(
        "{} has threads that this daemon cannot see: it needs the host's PID namespace", cgroup);
  }
  return std::move(found.threads);
}

}  // namespace resmgr
