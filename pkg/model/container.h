// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "pkg/base/ids.h"
#include "pkg/model/pod.h"
#include "pkg/model/resources.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Where a container runs, decided by a policy. `cpus` has exclusive and shared ones together; a
// value that is not set stays as requested.
struct Placement : ResourceValues {
  // The part of `cpus` that no other container may use.
  CpuSet exclusive;
  // If `mems` is not set: the memory nodes on which its memory is counted, wherever it lies.
  NodeSet counted_mems;
  // The time since the container's start after which the policy wants to be asked again
  // (Policy::LookAgain). 0: never.
  std::chrono::milliseconds look_again_after{0};
  // If `cpus` is not set: the CPUs that are sent to lift the restriction of a former policy. The
  // resource manager sets them; policies neither set nor read them.
  std::optional<CpuSet> lifted_to;

  std::string pool;  // name of the policy's pool: "shared", "reserved", "exclusive", "NUMA node #1"
  std::string reason;  // the rule that decided, for explain

  const ResourceValues& values() const { return *this; }
  // The CPUs that the runtime must enforce.
  const std::optional<CpuSet>& EnforcedCpus() const { return cpus ? cpus : lifted_to; }
  // Whether all values that a policy decides are equal.
  bool SameDecision(const Placement& other) const {
    const auto decided = [](const Placement& placement) {
      return std::tie(placement.values(), placement.exclusive, placement.counted_mems,
                      placement.look_again_after, placement.pool, placement.reason);
    };
    return decided(*this) == decided(other);
  }
};

// Names one incarnation of a container for the life of the daemon, from before the runtime gave it
// an id. Two attempts of the same container never share a key.
enum class ContainerKey : uint64_t {};

// A place that is near to a device or a mounted volume of a container.
struct LocalityHint {
  std::string source{};  // what it comes from: "device /dev/nvme0n1", "mount /mnt/data"
  CpuSet cpus{};         // empty: no hint about CPUs
  NodeSet nodes{};       // empty: no hint about memory

  friend bool operator==(const LocalityHint&, const LocalityHint&) = default;
};

enum class ContainerState { kCreating, kCreated, kRunning, kExited };

std::string_view ToString(ContainerState state);  // "creating", ...

// One container, as the resource manager keeps it and policies see it.
struct Container {
  ContainerKey key{};
  ContainerId id;  // empty while kCreating
  PodSandboxId pod_id;
  std::string name;
  uint32_t attempt = 0;
  StringMap labels;
  StringMap annotations;
  LinuxResources requested;  // resources of the last request, before any stage changed it
  NumbersSetLater set_later;
  Requirements requirements;  // the needs that the policy works with
  // The part of the webhook's annotation that has no effect, and why; empty if all of it counts.
  // Appended to the reason of each placement.
  std::string needs_note;
  std::vector<LocalityHint> hints;  // only when the policy wants them
  // Each decision reads the members below, of every container, so they lie together.
  ContainerState state = ContainerState::kCreating;
  // Whether a policy has bound the container to CPUs (memory nodes). Stays true when the
  // restriction is lifted, since the runtime may not have done that yet.
  bool cpus_bound = false;
  bool mems_bound = false;
  // The container may be on other CPUs than reported: a restart has found an update of it under
  // way, and knows no exclusive CPUs of it. Cleared by the first decision about the container.
  bool may_be_elsewhere = false;
  Placement placement;  // the active policy's decision; empty under a policy that leaves it alone
};

// "namespace/pod/container" for messages and logs.
std::string FullName(const Pod& pod, std::string_view container_name);

// The beginning of the name that a container without a name has until the runtime reports the name
// that it chose.
inline constexpr std::string_view kPlaceholderName = "unnamed-";

inline std::string PlaceholderName(uint64_t number) {
  return std::string(kPlaceholderName) + std::to_string(number);
}

inline bool IsPlaceholderName(std::string_view name) {
  return name.starts_with(kPlaceholderName);
}

}  // namespace resmgr
