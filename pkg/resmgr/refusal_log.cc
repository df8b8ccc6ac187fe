// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/refusal_log.h"

#include <initializer_list>
#include <string_view>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr size_t kMostOfName = 256;

bool HasAny(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts)
    if (text.find(part) != std::string_view::npos) return true;
  return false;
}

}  // namespace

std::string UpdateRemedy(const Pod& pod, const Container& container, const Status& why) {
  std::string end =
      pod.name.empty() ? fmt::format("stop container {}", Printable(container.name, kMostOfName))
                       : fmt::format("delete pod {}/{}", Printable(pod.namespace_name, kMostOfName),
                                     Printable(pod.name, kMostOfName));
  const std::string_view text = Message(why);
  // The kernel refuses shares for a cgroup with cpu.idle.
  if (HasAny(text, {"cpu.weight", "cpu.shares"}) && HasAny(text, {"invalid argument"})) {
    return "if cpu.idle is 1 in its cgroup, set it to 0; or " + end;
  }
  // The kernel refuses a limit below the present use, and runc reports it with these words.
  if (HasAny(text, {"set memory limit", "memory.limit_in_bytes", "memory.max"})) {
    return "another program changed its memory limit in the cgroup: restore it, or " + end;
  }
  // If a cause was found, the remedy is to remove it.
  if (HasAny(text, {"; likely cause: "})) return "remove the likely cause, or " + end;
  // With cgroup v1 a cgroup has no CPUs that its parent lacks, for example because they were
  // offline.
  if (HasAny(text, {"cpuset.cpus"}) && HasAny(text, {"permission denied"})) {
    return "a cgroup above it may not use these CPUs: add them to cpuset.cpus there, or " + end;
  }
  if (why.code() == StatusCode::kDeadlineExceeded) {
    return "its shim may hang: see the runtime's log, or " + end;
  }
  return end;
}

}  // namespace resmgr
