// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/classes/class_report.h"
#include "pkg/classes/memory_wish.h"
#include "pkg/config/classes_config.h"

namespace resmgr {

// A container with a class of memory. A value.
struct MemoryClassSubject {
  std::string container{};      // "namespace/pod/container"
  std::string id{};             // empty while it is being created
  std::string cgroup_parent{};  // of its pod
  MemoryWish wish{};

  friend bool operator==(const MemoryClassSubject&, const MemoryClassSubject&) = default;
};

// Adds the classes of memory: those of the configuration, and with what `read` tells of a file of
// the container's cgroup, those that containers have. `unified`: the node has cgroup v2.
void AddMemoryClasses(const std::vector<MemoryClassSubject>& subjects, const ClassesConfig& config,
                      bool unified,
                      const std::function<StatusOr<std::string>(const MemoryClassSubject& subject,
                                                                const std::string& file)>& read,
                      ClassReport& report);

}  // namespace resmgr
