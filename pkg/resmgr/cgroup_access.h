// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/model/resources.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// A container with CPUs and memory nodes for its cgroup.
struct CpusetSubject {
  std::string cgroup_parent{};
  ContainerId id{};              // empty: the container was not created
  std::optional<CpuSet> cpus{};  // empty: unchanged
  std::optional<NodeSet> mems{};
};

// Writes CPUs and memory nodes into the cgroups of containers whose update the runtime refuses. The
// runtime does not notice the write: afterwards it reports the sets in its own notes, not the sets
// in force. Loop's thread only.
class CpusetWriter {
 public:
  virtual ~CpusetWriter() = default;

  using Subject = CpusetSubject;
  struct Answer {
    // OK: the sets are in force. Else some of them may be in force.
    std::function<void(const Status& status)> done;
    // Called if a write that was given up, and answered with an error, ends after all: the CPUs in
    // force are then not known.
    std::function<void()> late;
  };
  // Runs `done` soon, even if the write hangs, and never inside this call.
  virtual void Write(Subject subject, Answer answer) = 0;
};

// Looks up the values that other programs (koordlet, rubik), or an administrator, have set in
// containers' cgroups without the runtime. With each update containerd writes all values that it
// has noted of a container, even if the request names only the cpuset: such an update would undo
// the values of others, or the kernel would refuse it. Shares are left out: if the runtime noted
// other shares, it would report them, and after a restart they would be mistaken for the
// container's request. Loop's thread only.
class ValuesOfOthers {
 public:
  virtual ~ValuesOfOthers() = default;

  struct Subject {
    std::string cgroup_parent{};
    ContainerId id{};
    // The quota and period that the runtime is known to have set. If a value is not given here, it
    // is not looked up; the same applies to the memory limit.
    ResourceValues known{};
    std::optional<int64_t> memory_limit{};
  };
  // For each subject, in their order, the quota and the memory limits that are in force and differ
  // from those that the runtime has set. Empty if the values cannot be read.
  using Found = std::vector<ResourceValues>;
  // Runs `done` soon, even if the look-up hangs, and never inside this call.
  virtual void Look(std::vector<Subject> subjects, std::function<void(Found)> done) = 0;
};

// Looks for the cause if a runtime refuses to put a container on CPUs or memory nodes. The
// runtime's answer has the kernel's error at best ("write .../cpuset.cpus: permission denied"), but
// the cause is in a cgroup above the container's, beside it or below it. Loop's thread only.
class RefusalCauses {
 public:
  virtual ~RefusalCauses() = default;

  using Subject = CpusetSubject;
  // Runs `done` soon, even if the search hangs, and never inside this call, with causes and
  // remedies; "" if nothing is found.
  virtual void Find(Subject subject, std::function<void(std::string cause)> done) = 0;

  // Whether a runtime's answer is about cpusets, or about a value that a cgroup cannot have.
  static bool MayBeFound(std::string_view answer) {
    const auto has = [answer](const char* word) { return answer.find(word) != answer.npos; };
    return has("cpuset") || has("cgroupv2") || has("cgroup.");
  }
};

}  // namespace resmgr
