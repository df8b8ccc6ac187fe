// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace resmgr::nri {

// What a runtime makes of requests, as far as what plugins want depends on it.
struct RuntimeTraits {
  // By what it learns of CDI devices.
  enum class Cdi { kNone, kAnnotation, kField };

  Cdi cdi = Cdi::kField;
  bool recursive_read_only = true;  // honours Mount.recursive_read_only
  bool cgroup_v2 = true;            // of the node
};

// By what CRI Version says. containerd has CDI devices since 1.7 and recursively read-only mounts
// since 2.0, CRI-O the former by annotation since 1.23 and by field since 1.27, the latter since
// 1.30 (their release notes). "docker" is the Docker API of any version: it has neither, and fields
// for memory.low and pids.max on each version of cgroups. What is not known counts as new.
RuntimeTraits TraitsOf(std::string_view name, std::string_view version, bool cgroup_v2);

}  // namespace resmgr::nri
