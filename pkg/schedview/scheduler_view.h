// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pkg/kube/pod_fingerprint.h"
#include "pkg/model/snapshot.h"
#include "pkg/policy/policy.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// One resource of a zone: whole CPUs, or bytes.
struct ViewAmount {
  std::string name{};  // "cpu", "memory", "hugepages-2Mi"
  int64_t capacity = 0;
  int64_t allocatable = 0;
  int64_t available = 0;  // CPUs that the policy would grant to one container

  friend bool operator==(const ViewAmount&, const ViewAmount&) = default;
};

// One NUMA node that has CPUs.
struct ViewZone {
  int numa_id = 0;               // operating-system number
  std::vector<int> distances{};  // to each zone of the view, in their order
  std::vector<ViewAmount> amounts{};
  CpuSet cpus{};       // CPUs that the policy may grant
  CpuSet exclusive{};  // CPUs of these that containers have exclusively

  friend bool operator==(const ViewZone&, const ViewZone&) = default;
};

// A pool of the policy that has CPUs, as shown to users.
struct ViewPool {
  std::string name{};  // as `pools` of cri-resmgr-ctl shows it
  CpuSet cpus{};
  CpuSet exclusive{};  // CPUs that single containers or claims have exclusively

  friend bool operator==(const ViewPool&, const ViewPool&) = default;
};

// The room that schedulers may count on: an immutable picture of the node, from which all published
// data is made (ADR 17). Zones are in the order of their NUMA nodes.
struct SchedulerView {
  // Increases with each picture that a daemon makes, so the newer one has the higher number.
  uint64_t sequence = 0;
  // Whether the policy refuses containers that do not fit into a single zone, and the configuration
  // allows schedulers to rely on it.
  bool refuses = false;
  std::vector<ViewZone> zones{};
  // Guaranteed pods that have containers in the picture, ascending.
  std::vector<PodName> pods{};
  std::vector<ViewPool> pools{};  // in the policy's order; empty unless they are asked for

  // Whether both describe the same state of the node, regardless of `sequence`.
  bool SameContent(const SchedulerView& other) const {
    return refuses == other.refuses && zones == other.zones && pods == other.pods &&
           pools == other.pools;
  }
};

// Limit of zones, since schedulers read no more; further NUMA nodes are left out.
inline constexpr size_t kMostViewZones = 64;
// Limit of pools, so that the object stays small; further pools are left out.
inline constexpr size_t kMostViewPools = 256;

// The pools of the policy. Pure.
std::vector<ViewPool> ViewPools(const Policy& policy, const Snapshot& snapshot);

// Makes the picture. `policy` is the active one, of which copies are asked; `snapshot` has all
// containers, also exited ones. `alignment_refuses`: whether nrt.Alignment is refuse. Pure; takes
// up to some milliseconds on the loop's thread, so no call should wait for it.
SchedulerView MakeSchedulerView(const Machine& machine, const Policy& policy,
                                const Snapshot& snapshot, bool alignment_refuses);

}  // namespace resmgr
