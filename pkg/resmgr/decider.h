// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/policy/plan_check.h"
#include "pkg/policy/policy.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/shifts.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Mostly one or two.
using ContainerKeys = std::vector<ContainerKey>;

// Asks the policy, checks its plan and writes it into the store. Every call returns the containers
// whose placement changed, ascending. A call that fails leaves the placements as they were; after
// an Internal one the caller undoes its own change of the store and calls Recover. Loop's thread
// only.
class Decider {
 public:
  // All references must outlive it.
  Decider(const Machine& machine, Policy& policy, ContainerStore& store);

  // Another policy takes all containers over and decides from now on. It must outlive this too.
  // `withheld`: CPUs that no container may have for itself any more.
  StatusOr<ContainerKeys> Switch(Policy& policy, const CpuSet& withheld = {});
  // `policy` has decided all that the store holds, and decides from now on.
  void Resume(Policy& policy);
  // CPUs of the machine that are offline: from now on a policy that takes containers over finds
  // them without these.
  void SetOffline(const CpuSet& offline) { usable_ = machine_.online() - offline; }
  // What the policy does when it takes all containers over.
  StatusOr<Plan> TakeOver(Policy& policy, const CpuSet& withheld = {}) const;
  // What the policy would do; neither it nor the store keep any of it. `policy` need not be the
  // active one, which is why it may believe in the plan afterwards.
  StatusOr<Plan> Preview(StatusOr<Plan> plan) const;

  // Adds to a new placement of the container what undoes a binding by an earlier decision: nothing
  // else would, and its memory would stay where it suited other CPUs.
  void LiftRestrictions(const Container& container, Placement& next) const;
  // Takes back a decision that the runtime may have been told of: the container has its former
  // placement again, and what the decision bound beyond that is lifted.
  void PutBack(Container& container, Placement former) const;

  StatusOr<ContainerKeys> Reconcile();
  StatusOr<ContainerKeys> Rebalance();
  // The record is new in the store. `predecessor` may be nullptr; it is not placeable any more.
  StatusOr<ContainerKeys> Allocate(const ContainerRecord& record, const Container* predecessor);
  StatusOr<ContainerKeys> Update(const ContainerRecord& record);
  StatusOr<ContainerKeys> LookAgain(ContainerKey key);
  // The container is erased or not placeable any more.
  StatusOr<ContainerKeys> Release(ContainerKey key);

  // A broken plan was thrown away, but the policy believes in it: makes it hold again what the
  // store holds.
  ContainerKeys Recover();

  // What the last decision, if it did not fail, did to containers that had a place before; valid
  // until the next one.
  std::span<const Shift> shifts() const { return shifts_.all(); }
  // Nothing had to be decided this time.
  void ForgetShifts() { shifts_.Clear(); }

 private:
  StatusOr<ContainerKeys> Apply(StatusOr<Plan> plan);
  void GiveShared(const SharedChange& change, Container& container);

  const Machine& machine_;
  CpuSet usable_;  // CPUs that containers can run on
  Policy* policy_;
  ContainerStore& store_;
  // All containers that may have exclusive CPUs: these are granted only here, and a rollback only
  // restores what was granted here.
  ExclusiveHolders holders_;
  Shifts shifts_;
};

}  // namespace resmgr
