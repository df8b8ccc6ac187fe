// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/process_settings.h"
#include "pkg/base/status.h"
#include "pkg/config/classes_config.h"
#include "pkg/config/memory_policy_config.h"
#include "pkg/model/placement.h"
#include "pkg/model/pod.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The memory policy that a pod asks for. A value.
struct MemoryPolicyWish {
  std::optional<MemoryPolicyConfig> policy{};  // nullopt: none
  std::string name{};                          // of its class; "": none
  std::string source{};                        // the annotation that counts; "": none does
  std::string note{};                          // why the annotation has no effect

  friend bool operator==(const MemoryPolicyWish&, const MemoryPolicyWish&) = default;
};

// Reads the annotations "policy.memory-policy.nri.io/container.NAME" (mode, nodes and flags) and
// "class.memory-policy.nri.io/container.NAME" (a class of memory with a policy), or without a
// container for all of them; the container's own one wins, then the policy over the class. An empty
// one is none. These are the annotations of nri-plugins' memory-policy. InvalidArgument: another
// annotation of the domain, an unknown class, or a malformed policy; the message names the
// annotation. Pure.
StatusOr<MemoryPolicyWish> MemoryPolicyOf(const Pod& pod, std::string_view container,
                                          const ClassesConfig& config);

// The policy with numbers of nodes, for a container that may run on `cpus` and use `mems`; each
// empty: all that containers may use. InvalidArgument: there is none of the nodes. Pure.
StatusOr<MemoryPolicySettings> ResolveMemoryPolicy(const MemoryPolicyConfig& policy,
                                                   const CpuSet& cpus, const NodeSet& mems,
                                                   const Machine& machine);

}  // namespace resmgr
