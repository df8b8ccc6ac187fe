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
// `runtimeClasses` (Pinning sandbox and none). A virtual machine gets as many CPUs as its
// containers' cpusets have, so a cpuset would make it smaller; a kernel in user space runs all
// containers in the sandbox's process, so a container's cpuset has no effect. Immutable; a copy is
// independent.
class PinningRule {
 public:
  PinningRule() = default;
  // nullptr: all containers are bound.
  explicit PinningRule(const RuntimesConfig* runtimes);

  // Why containers of the pod are not bound, as the reason of their placements; empty if they are
  // bound.
  std::string_view WhyUnbound(const Pod& pod) const;

 private:
  std::map<std::string, std::string, std::less<>> unbound_;  // handler to reason
};

// The sets for a container that a policy bound before and no policy binds now: without an update,
// the old binding would stay. Returns the CPUs (memory nodes) of its request if this machine has
// all of them, else all of the machine.
CpuSet CpusWithoutPolicy(const Machine& machine, const LinuxResources& requested);
NodeSet MemsWithoutPolicy(const Machine& machine, const LinuxResources& requested);

}  // namespace resmgr
