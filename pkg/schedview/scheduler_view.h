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
  CpuSet cpus{};       // those that the policy may grant
  CpuSet exclusive{};  // those of them that containers have for themselves

  friend bool operator==(const ViewZone&, const ViewZone&) = default;
};

// A pool of the policy that has CPUs, for people.
struct ViewPool {
  std::string name{};  // as `pools` of cri-resmgr-ctl shows it
  CpuSet cpus{};
  CpuSet exclusive{};  // those that single containers or claims have for themselves

  friend bool operator==(const ViewPool&, const ViewPool&) = default;
};

// The room that schedulers may count on: one immutable picture of the node, from which everything
// is published (ADR 17). Zones are in the order of their NUMA nodes.
struct SchedulerView {
  // The newer one of two pictures of a daemon has the higher number.
  uint64_t sequence = 0;
  // The policy refuses containers that fit no single zone, and the configuration says that
  // schedulers may rely on it.
  bool refuses = false;
  std::vector<ViewZone> zones{};
  // Guaranteed pods that have containers in the picture, ascending.
  std::vector<PodName> pods{};
  std::vector<ViewPool> pools{};  // in the policy's order; empty unless they are asked for

  // Whether both describe the same state of the node.
  bool SameContent(const SchedulerView& other) const {
    return refuses == other.refuses && zones == other.zones && pods == other.pods &&
           pools == other.pools;
  }
};

// No scheduler reads more zones than this; further NUMA nodes are left out.
inline constexpr size_t kMostViewZones = 64;
// Further pools are left out, so that the object stays small.
inline constexpr size_t kMostViewPools = 256;

// The pools of the policy. Pure.
std::vector<ViewPool> ViewPools(const Policy& policy, const Snapshot& snapshot);

// Makes the picture, with `alignment_refuses` for nrt.Alignment. `policy` is the active one, of
// which copies are asked; `snapshot` has all containers, those that have exited included. Pure; on
// the loop's thread some milliseconds at most, so it is not for the path of a call.
SchedulerView MakeSchedulerView(const Machine& machine, const Policy& policy,
                                const Snapshot& snapshot, bool alignment_refuses);

}  // namespace resmgr
