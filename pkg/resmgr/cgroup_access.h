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

// Writes CPUs and memory nodes into the cgroups of containers whose update the runtime refuses. The
// runtime does not know of the write: it reports its own notes, and not what is in force. Loop's
// thread only.
class CpusetWriter {
 public:
  virtual ~CpusetWriter() = default;

  struct Subject {
    std::string cgroup_parent{};
    ContainerId id{};
    std::optional<CpuSet> cpus{};  // empty: unchanged
    std::optional<NodeSet> mems{};
  };
  struct Answer {
    // OK: the kernel enforces it. Else it may be in force in part.
    std::function<void(const Status& status)> done;
    // A write that was given up, and already answered, has ended after all: the CPUs in force are
    // not known.
    std::function<void()> late;
  };
  // Runs `done` soon, even if the write hangs, and never inside this call.
  virtual void Write(Subject subject, Answer answer) = 0;
};

// Looks up the values that other programs (koordlet, rubik), or an administrator, have set in
// containers' cgroups without the runtime. containerd writes all values that it has noted of a
// container with each update, also where the request names the cpuset alone: such an update would
// put these values back, or the kernel would refuse it. Shares are left out: a runtime that has
// noted other shares reports them, and after a restart they would be taken for the container's
// request. Loop's thread only.
class ValuesOfOthers {
 public:
  virtual ~ValuesOfOthers() = default;

  struct Subject {
    std::string cgroup_parent{};
    ContainerId id{};
    // The quota and period that the runtime is known to have set. A value that is not set here is
    // not looked up; the same applies to the memory limit.
    ResourceValues known{};
    std::optional<int64_t> memory_limit{};
  };
  // For each subject, in their order, the quota and the memory limits that are in force and are not
  // what the runtime has set. Empty where nothing can be told.
  using Found = std::vector<ResourceValues>;
  // Runs `done` soon, even if the look-up hangs, and never inside this call.
  virtual void Look(std::vector<Subject> subjects, std::function<void(Found)> done) = 0;
};

// Looks for the cause where a runtime refuses to put a container on CPUs or memory nodes: its
// answer has the kernel's error at best ("write .../cpuset.cpus: permission denied"), and the cause
// is in a cgroup above the container's, beside it or below it. Loop's thread only.
class RefusalCauses {
 public:
  virtual ~RefusalCauses() = default;

  struct Subject {
    std::string cgroup_parent{};
    ContainerId id{};  // empty: it was not created
    std::optional<CpuSet> cpus{};
    std::optional<NodeSet> mems{};
  };
  // Runs `done` soon, even if the look hangs, and never inside this call, with causes and remedies;
  // "" where nothing is found.
  virtual void Find(Subject subject, std::function<void(std::string cause)> done) = 0;

  // Whether a runtime's answer is about cpusets, or about a value that a cgroup cannot have.
  static bool MayBeFound(std::string_view answer) {
    const auto has = [answer](const char* word) { return answer.find(word) != answer.npos; };
    return has("cpuset") || has("cgroupv2") || has("cgroup.");
  }
};

}  // namespace resmgr
