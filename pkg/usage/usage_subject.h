// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/resmgr/resource_manager.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// A running container whose use is sampled, and the decision for it. A value.
struct UsageSubject {
  std::string id{};
  std::string namespace_name{};
  std::string pod{};
  std::string container{};
  std::string cgroup_parent{};
  CpuSet cpus{};       // empty: it is not bound
  CpuSet exclusive{};  // the part of `cpus` that no other container may use
  NodeSet mems{};      // those decided for it; empty: any
  std::string pool{};
  // CPUs: those that are its own or, if that is more, its request.
  double granted = 0;
  double limit = 0;  // CPUs; 0: none

  // "namespace/pod/container"
  std::string FullName() const;
};

// Those that run. None under the null policy.
std::vector<UsageSubject> UsageSubjects(const ResourceManager* manager);

}  // namespace resmgr
