// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/ids.h"
#include "pkg/model/placement.h"
#include "pkg/model/pod.h"
#include "pkg/model/resource_values.h"
#include "pkg/model/resources.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

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
  // Some policy bound it to CPUs (memory nodes). It stays so when the container is let go, which
  // the runtime may not know yet.
  bool cpus_bound = false;
  bool mems_bound = false;
  // Set by a restart that finds an update of the container under way and no CPUs known as its own:
  // it may be on other CPUs than reported. Cleared by the first decision about it.
  bool may_be_elsewhere = false;
  Placement placement;  // the active policy's decision; empty under a policy that leaves it alone
};

// "namespace/pod/container" for messages and logs.
std::string FullName(const Pod& pod, std::string_view container_name);

}  // namespace resmgr
