// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/base/string_map.h"
#include "pkg/classes/class_choice.h"
#include "pkg/classes/host_files.h"
#include "pkg/config/classes_config.h"
#include "pkg/model/pod.h"

namespace resmgr {

// The interrupts that must run on a container's own CPUs alone, and those that must keep away from
// them, as globs (Interrupt::Matches). A value type.
struct InterruptWish {
  std::vector<std::string> claim{};
  std::vector<std::string> mask{};
  bool mask_wins = false;  // for interrupts in both lists; otherwise the claim wins

  bool any() const { return !claim.empty() || !mask.empty(); }
  std::string ToString() const;  // "claim eth0*, 24; mask *"
  friend bool operator==(const InterruptWish&, const InterruptWish&) = default;
};

// The annotation of topology-aware in nri-plugins 0.14, "irq-affinity" (pkg/kube/annotations.h):
// {claim: [GLOB], mask: [GLOB], mode: mask-first|claim-first}. A mode names the list that is
// applied first, so the list applied last wins. InvalidArgument names the key. Pure.
Status ReadInterruptWish(const StringMap& annotations, std::string_view container,
                         InterruptWish& wish);

// The disturbances to keep away from a container's CPUs, and what asks for this. A value type.
struct IsolationWish {
  IsolationConfig isolation{};
  InterruptWish affinity{};  // for single interrupts
  std::string source{};      // the key of the configuration, or the annotations
  std::string note{};        // annotations that have no effect, with the reason; usually empty
  IsolationConfig asked{};   // what annotations ask for, if absent classes are refused
  // CRI-O's annotations ask for environment variables that name the housekeeping CPUs, or the
  // container's own and shared CPUs.
  bool tells_housekeeping = false;
  bool tells_shared = false;
  StringMap environment{};  // by the names of variables

  bool any() const { return isolation.any() || affinity.any(); }
  friend bool operator==(const IsolationWish&, const IsolationWish&) = default;
};

// The disturbances to keep away from the container, if it gets CPUs of its own. The pod's
// annotation `isolation` (pkg/kube/annotations.h) overrides the configuration, and CRI-O's
// annotations override both ("irq-load-balancing.crio.io", also with "/CONTAINER" behind it).
// Includes the interrupts of the annotation `irq-affinity`. InvalidArgument: an annotation that
// counts has no valid value; the message names it. Pure.
StatusOr<IsolationWish> IsolationOf(const Pod& pod, std::string_view container,
                                    const ClassesConfig& config);

// Names of classes of isolation: "10us", "isolated".
std::string LatencyName(const std::string& text);
std::string PartitionName(IsolationConfig::Partition partition);

// The classes that make up the isolation, with `source` as their source. Pure.
std::vector<AskedClass> IsolationClasses(const IsolationConfig& isolation, std::string_view source);

// The kinds of isolation that the machine or its kernel does not fully support, for any container.
// May block.
AbsentKinds FindAbsentIsolation(HostFiles& files);

// Whether the kernel is older than this version; false if its version is unknown. May block.
bool IsKernelOlderThan(HostFiles& files, int64_t major, int64_t minor);

}  // namespace resmgr
