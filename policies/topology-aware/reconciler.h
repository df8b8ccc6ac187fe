// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pkg/model/plan.h"
#include "policies/topology-aware/grant_book.h"
#include "policies/topology-aware/placer.h"

namespace resmgr {

// Takes over containers that exist. No container with a legal placement moves:
//   1. a container whose placement names a pool (decided by this policy) keeps pool, exclusive CPUs
//      and memory; those with exclusive CPUs come first. If its shared CPUs are outside that pool,
//      it is in the smallest pool that has them;
//   2. if only CPUs and memory are known (after a loss of state, from another policy), its needs
//      decide: if it is on exactly as many CPUs as it is entitled to, without another user, these
//      are exclusive; else it shares the smallest pool that has its CPUs;
//   3. the others are placed like new ones, but none can be refused: without room they share.
class Reconciler {
 public:
  // Removes all grants from the book. Both references must outlive it.
  Reconciler(GrantBook& book, const Placer& placer);

  // `demand` has no affinities. Pod and container must stay until Run returns.
  void Add(const Pod& pod, const Container& container, Demand demand);

  // Returns the changes. `add_affinities` completes the demand of a container that is placed anew,
  // after the others have their grants; `placed` is called for each container whose grant changed
  // then.
  Plan Run(const std::function<void(const Pod&, const Container&, Demand&)>& add_affinities,
           const std::function<void(const Pod&, const Container&)>& placed);

 private:
  struct Entry {
    const Pod* pod;
    const Container* container;
    Demand demand;
    bool placed = false;
    bool lacks_memory = false;  // whether its grant has no zone yet
    bool holds = false;         // whether its grant only holds its present CPUs until it is placed

    ContainerKey Key() const { return container->key; }
  };

  std::vector<Entry*> WholeFirst();
  void AdoptKnown(Entry& entry, bool exclusive);
  int KnownPool(const Placement& present) const;
  void AdoptFound(Entry& entry, bool exclusive, const CpuSet& crowded);
  int PoolOfMemory(const Entry& entry) const;
  const CpuSet& Sharable() const;
  bool WasSharing(const Entry& entry, int pool) const;
  void FitNeed(Need& need, const Entry& entry, bool exclusive) const;
  bool Adopt(Entry& entry, int pool, const CpuSet& exclusive, std::string reason);
  bool AdoptUnpooled(Entry& entry, const std::string& reason);
  CpuSet MissingOfSharers() const;
  CpuSet OwnCpus(const Entry& entry, const CpuSet& crowded) const;
  CpuSet WithHidden(const Entry& entry, const CpuSet& visible) const;
  // Whether these CPUs can be adopted as exclusive. `decided`: an earlier decision granted them, so
  // sharing containers need only have a CPU left.
  bool Grantable(const CpuSet& cpus, bool decided) const;
  bool AdoptMemory(Grant& grant, const Placement& present) const;
  void FindMissingMemory();
  void CountEstimates();
  void HoldOwn(Entry& entry);
  std::vector<ContainerKey> PlaceAnew(Entry& entry);
  std::optional<Grant> KeepOwn(Entry& entry) const;
  void MoveFromEmptyPools();
  Plan Changes() const;

  GrantBook& book_;
  const Placer& placer_;
  std::map<ContainerKey, Grant> former_;  // the book's former grants, for explanations
  std::vector<Entry> entries_;
  CpuSet missing_;  // result of MissingOfSharers
};

}  // namespace resmgr
