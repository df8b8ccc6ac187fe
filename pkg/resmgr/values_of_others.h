// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/ids.h"
#include "pkg/model/resource_values.h"

namespace resmgr {

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

}  // namespace resmgr
