// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/ids.h"
#include "pkg/model/resource_values.h"

namespace resmgr {

// What other programs (koordlet, rubik, an administrator) have set in containers' cgroups beside
// the runtime. containerd writes all values that it has noted of a container with each update, also
// where the request names the cpuset alone: that would put these back, or the kernel refuses it.
// Shares are left out: a runtime that has noted other shares reports them, and after a restart they
// would be taken for the container's request.
// Loop's thread only.
class ValuesOfOthers {
 public:
  virtual ~ValuesOfOthers() = default;

  struct Subject {
    std::string cgroup_parent{};
    ContainerId id{};
    // What the runtime is known to have set, quota and period: looked at where they are set, as is
    // the memory limit.
    ResourceValues known{};
    std::optional<int64_t> memory_limit{};
  };
  // For each subject, in their order, the quota and the memory limits that are in force and are not
  // what the runtime has set. Empty where nothing can be told.
  using Found = std::vector<ResourceValues>;
  // Runs `done` soon, whatever hangs, and never from within.
  virtual void Look(std::vector<Subject> subjects, std::function<void(Found)> done) = 0;
};

}  // namespace resmgr
