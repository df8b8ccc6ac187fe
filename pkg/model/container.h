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

// Where a device or a mounted volume of a container is near to.
struct LocalityHint {
  std::string source{};  // what it comes from: "device /dev/nvme0n1", "mount /mnt/data"
  CpuSet cpus{};         // empty: says nothing about CPUs
  NodeSet nodes{};       // empty: says nothing about memory

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
  LinuxResources requested;  // as the last request said, before any stage changed it
  NumbersSetLater set_later;
  Requirements requirements;  // what the policy works with
  // The part of the annotation that does not count, and why; empty when all counts. It follows the
  // reason of each placement.
  std::string needs_note;
  std::vector<LocalityHint> hints;  // only when the policy wants them
  // From here on: what each decision looks at, of all containers.
  ContainerState state = ContainerState::kCreating;
  // Some policy bound it to CPUs (memory nodes). It stays so when the container is let go, which
  // the runtime may not know yet.
  bool cpus_bound = false;
  bool mems_bound = false;
  // Found by a restart while an update of it was under way, and without CPUs of its own by what is
  // known: it may be on other CPUs than those that are told. Until the first decision about it.
  bool may_be_elsewhere = false;
  Placement placement;  // what the active policy decided; empty under a policy that leaves it alone
};

// "namespace/pod/container" for messages and logs.
std::string FullName(const Pod& pod, std::string_view container_name);

}  // namespace resmgr
