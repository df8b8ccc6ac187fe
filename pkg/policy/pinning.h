// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "pkg/config/runtimes_config.h"
#include "pkg/model/pod.h"
#include "pkg/model/resources.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The pods whose containers are never bound to CPUs or memory nodes, by the handlers of
// `runtimeClasses` (Pinning sandbox and none). A virtual machine takes the size of its containers'
// cpusets for its own number of CPUs, and a kernel in user space runs all containers in the
// sandbox's process: a container's cpuset does harm there or nothing. Immutable; a copy is
// independent.
class PinningRule {
 public:
  PinningRule() = default;
  // nullptr: all containers are bound.
  explicit PinningRule(const RuntimesConfig* runtimes);

  // Why containers of the pod are not bound, as the reason of their placements; empty where they
  // are.
  std::string_view WhyUnbound(const Pod& pod) const;

 private:
  std::map<std::string, std::string, std::less<>> unbound_;  // handler to reason
};

// The sets for a container that a policy bound and no policy binds any more, since nothing else
// would undo the binding: the CPUs (memory nodes) of its request if this machine has all of them,
// else all of the machine's.
CpuSet CpusWithoutPolicy(const Machine& machine, const LinuxResources& requested);
NodeSet MemsWithoutPolicy(const Machine& machine, const LinuxResources& requested);

}  // namespace resmgr
