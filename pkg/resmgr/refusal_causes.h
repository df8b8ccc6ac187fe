// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/ids.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

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
