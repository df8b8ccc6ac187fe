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
  // Where `mems` is not set: the memory nodes that its memory is counted on, wherever it lies.
  NodeSet counted_mems;
  // The policy wants to be asked again (Policy::LookAgain) when the container has run for so long,
  // counted from its start. 0: it does not.
  std::chrono::milliseconds look_again_after{0};
  // Where `cpus` is not set: the CPUs that lift the restriction by a former policy. The resource
  // manager sets them; policies neither set nor read them.
  std::optional<CpuSet> lifted_to;

  std::string
      pool;  // where in the policy's pools: "shared", "reserved", "exclusive", "NUMA node #1"
  std::string reason;  // the rule that decided, for explain

  const ResourceValues& values() const { return *this; }
  // The CPUs that the runtime is to enforce.
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

// The place near to a device or a mounted volume of a container.
struct LocalityHint {
  std::string source{};  // what it comes from: "device /dev/nvme0n1", "mount /mnt/data"
  CpuSet cpus{};         // empty: no hint about CPUs
  NodeSet nodes{};       // empty: no hint about memory

  friend bool operator==(const LocalityHint&, const LocalityHint&) = default;
};

enum class ContainerState { kCreating, kCreated, kRunning, kExited };

std::string_view ToString(ContainerState state);  // "creating", ...

// One container, as the brain keeps it and as policies see it.
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
  // The part of the annotation without effect, and the reason; empty if all of it counts. It
  // follows the reason of each placement.
  std::string needs_note;
  std::vector<LocalityHint> hints;  // only when the policy wants them
  // Every decision reads the members from here on, of all containers.
  ContainerState state = ContainerState::kCreating;
  // A policy has bound the container to CPUs (memory nodes). Stays true when that is lifted, since
  // the runtime may not know it yet.
  bool cpus_bound = false;
  bool mems_bound = false;
  // Set by a restart that finds an update of the container under way and no CPUs known as its own:
  // it may be on other CPUs than reported. Cleared by the first decision about it.
  bool may_be_elsewhere = false;
  Placement placement;  // the active policy's decision; empty under a policy that leaves it alone
};

// "namespace/pod/container" for messages and logs.
std::string FullName(const Pod& pod, std::string_view container_name);

// The name of a container until its runtime reports the one that it made up.
inline constexpr std::string_view kPlaceholderName = "unnamed-";

inline std::string PlaceholderName(uint64_t number) {
  return std::string(kPlaceholderName) + std::to_string(number);
}

inline bool IsPlaceholderName(std::string_view name) {
  return name.starts_with(kPlaceholderName);
}

}  // namespace resmgr
