// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "pkg/resmgr/applied_resources.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// How running containers change places without meeting: which of its decided CPUs a container may
// be sent while others are still on them, which containers wait for CPUs, and circles of containers
// that wait for each other. Reads what the pusher notes in the records (PushState), and sends
// nothing. Loop's thread only.
class Handover {
 public:
  // `everywhere`: the CPUs that a container without a cpuset may run on. `claimed_by_others`: the
  // CPUs of claims that a container does not carry. `store` outlives this object.
  Handover(const ContainerStore& store, const CpuSet& everywhere,
           std::function<CpuSet(ContainerKey)> claimed_by_others);

  // The values that a container may be sent now.
  struct Target {
    SharedResources resources;
    bool whole = true;  // whether the target has all decided values
  };
  // Returns the decided values of a followed container without CPUs that others have not left yet.
  // A container that does not run gets all of them: its start waits for the others.
  Target SafeTarget(const ContainerRecord& record) const;
  // Returns values by which the container waits on CPUs that are not exclusively assigned until its
  // new ones are free. nullopt: it is in no other container's way, or there are no such CPUs.
  std::optional<AppliedResources> Aside(const ContainerRecord& record) const;

  // The part of these CPUs that the container may be running on and has to leave. Empty if the
  // policy leaves the container in place, or if it is not followed: a wait for it would never end.
  CpuSet ToLeave(const ContainerRecord& record, const CpuSet& cpus) const;
  CpuSet ToLeave(const ContainerRecord& record) const { return ToLeave(record, everywhere_); }
  // CPUs that the container may still have exclusively, although they are no longer its own.
  static CpuSet LeftoverOf(const ContainerRecord& record);
  // The containers with leftover CPUs.
  const std::set<ContainerKey>& leftovers() const { return leftovers_; }
  // Called after each change of a followed container's PushState::held or exclusive CPUs.
  void Track(const ContainerRecord& record);

  // Notes that the container was sent less than decided because of others.
  void HoldBack(ContainerKey key) { held_back_.insert(key); }
  // Notes that it does not wait any more. Returns whether it did.
  bool Release(ContainerKey key);
  const std::set<ContainerKey>& held_back() const { return held_back_; }
  // The container is not followed any more.
  void Forget(ContainerKey key);

  // For each container that waits, and for which no answer is pending: those that have to leave
  // CPUs before it is sent all of its own.
  std::map<ContainerKey, std::vector<ContainerKey>> Waits() const;
  // Returns containers for which no answer is pending and that wait in a circle, each for the next
  // one: they can only go on if the circle is broken. Empty if there is none.
  std::set<ContainerKey> FindCircle() const;

 private:
  // A waiting container, with the CPUs that it must leave and the CPUs that it still has
  // exclusively.
  struct InTheWay {
    ContainerKey key;
    CpuSet leaves;
    CpuSet leftover;
  };
  CpuSet ExclusiveOfOthers(ContainerKey key) const;
  CpuSet OccupiedByOthers(const ContainerRecord& waiting, const CpuSet& cpus) const;
  CpuSet HeldByOthers(ContainerKey key) const;
  bool WaitsIdly(const ContainerRecord& record) const;
  std::vector<InTheWay> AllInTheWay() const;
  void AddIfInTheWay(const ContainerRecord& record, std::vector<InTheWay>& all) const;
  static std::vector<ContainerKey> BlockersOf(const ContainerRecord& waiting,
                                              const std::vector<InTheWay>& all);

  const ContainerStore& store_;
  const CpuSet everywhere_;
  const std::function<CpuSet(ContainerKey)> claimed_by_others_;
  std::set<ContainerKey> leftovers_;
  std::set<ContainerKey> held_back_;
};

}  // namespace resmgr
