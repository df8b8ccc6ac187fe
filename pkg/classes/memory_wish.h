// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/process_settings.h"
#include "pkg/base/status.h"
#include "pkg/config/classes_config.h"
#include "pkg/config/memory_classes_config.h"
#include "pkg/model/pod.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The class of memory of a container. A value type.
struct MemoryWish {
  std::string name{};    // "": none
  std::string source{};  // the pool or the annotations
  std::string note{};    // annotations that have no effect, with the reason; usually empty
  // The texts of files in its cgroup v2.
  std::map<std::string, std::string> files{};
  bool by_pod = false;  // the pod's annotations ask for some of the files
  // The memory policy, by an annotation or by the class.
  std::optional<MemoryPolicySettings> policy{};
  std::string policy_name{};    // the class that has the policy; "": an annotation
  std::string policy_source{};  // the pool or the annotation

  friend bool operator==(const MemoryWish&, const MemoryWish&) = default;
};

// The class that the policy chooses for the containers of a pool. Empty if there is none, or, with
// a note, if the class needs a memory limit and the container has none. Pure.
MemoryWish MemoryOfPool(std::string_view class_name, std::string_view pool, int64_t memory_limit,
                        const ClassesConfig& config);

// The class chosen by the pod's annotation "class.memory-qos.nri.io/CONTAINER", or for all
// containers by the one without "/CONTAINER". An empty value chooses no class; without an
// annotation, `of_pool` counts. Annotations for single files ("memory.swap.max.memory-qos.nri.io")
// override the class if the configuration allows the file. `memory_limit` is in bytes; 0: none.
// InvalidArgument: an unknown class, a file that is not allowed, or a class that needs a limit; the
// message names the annotation. Pure.
StatusOr<MemoryWish> MemoryOf(const Pod& pod, std::string_view container, int64_t memory_limit,
                              const ClassesConfig& config, const MemoryWish& of_pool = {});

// The memory policy that a pod asks for. A value type.
struct MemoryPolicyWish {
  std::optional<MemoryPolicyConfig> policy{};  // nullopt: none
  std::string name{};                          // of its class; "": none
  std::string source{};                        // the annotation that counts; "": none does
  std::string note{};                          // why the annotations have no effect

  friend bool operator==(const MemoryPolicyWish&, const MemoryPolicyWish&) = default;
};

// Reads the annotations of nri-plugins' memory-policy: "policy.memory-policy.nri.io/container.NAME"
// (mode, nodes and flags) and "class.memory-policy.nri.io/container.NAME" (a class of memory with a
// policy). Without "/container.NAME" they are for all containers. An annotation for the container
// alone overrides one for all; at equal scope a policy overrides a class. An empty value asks for
// no policy. InvalidArgument: another annotation of the domain, an unknown class, or a malformed
// policy; the message names the annotation. Pure.
StatusOr<MemoryPolicyWish> MemoryPolicyOf(const Pod& pod, std::string_view container,
                                          const ClassesConfig& config);

// "interleave 0-3", "bind 0 static-nodes". Pure.
std::string PolicyText(const MemoryPolicySettings& policy);

// The policy with node numbers, for a container that may run on `cpus` and use `mems`; an empty set
// stands for all CPUs or nodes that containers may use. InvalidArgument: the machine has none of
// the policy's nodes. Pure.
StatusOr<MemoryPolicySettings> ResolveMemoryPolicy(const MemoryPolicyConfig& policy,
                                                   const CpuSet& cpus, const NodeSet& mems,
                                                   const Machine& machine);

}  // namespace resmgr
