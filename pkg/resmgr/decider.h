// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/claims/claim_view.h"
#include "pkg/claims/claimed_policy.h"
#include "pkg/model/plan.h"
#include "pkg/policy/plan_check.h"
#include "pkg/policy/policy.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/observer.h"
#include "pkg/topology/machine.h"

namespace resmgr {

class NodeMetrics;
class Transaction;

// Mostly one or two.
using ContainerKeys = std::vector<ContainerKey>;

// Asks the policy, checks its plan and writes it into the store. Every call returns the containers
// whose placement changed, ascending. A failed call changes no placement; after an Internal error
// the caller undoes its own change of the store (Transaction) and calls Recover. Loop's thread
// only.
class Decider {
 public:
  // All references must outlive it. `metrics` get the time that the policy takes for each decision
  // and preview; may be null.
  Decider(const Machine& machine, std::unique_ptr<Policy> policy, ContainerStore& store,
          NodeMetrics* metrics);

  const Policy& policy() const { return *policy_; }
  // A pod was created: Policy::Prepare.
  void Prepare(const Pod& pod) { policy_->Prepare(pod); }

  // Lets `policy` take all containers and claims over and decide from now on; afterwards `policy`
  // has the former one. FailedPrecondition when a claim would lose CPUs.
  StatusOr<ContainerKeys> Switch(std::unique_ptr<Policy>& policy);
  // The same where CPUs went offline or came back, so that claims may lose some. `withheld`: CPUs
  // that no container may have for itself any more.
  StatusOr<ContainerKeys> SwitchOnline(std::unique_ptr<Policy>& policy, const CpuSet& withheld);
  // Exchanges the active policy and `policy` without a decision; Reconcile has to follow.
  void Exchange(std::unique_ptr<Policy>& policy);
  // CPUs of the machine that are offline: from now on a policy that takes containers over finds
  // them without these.
  void SetOffline(const CpuSet& offline);
  const CpuSet& offline() const { return offline_; }
  // The plan by which `policy` would take all containers over, checked; it may be a clone, and the
  // store keeps none of it.
  StatusOr<Plan> PreviewTakeOver(const Policy& policy) const;
  StatusOr<Plan> PreviewRebalance() const;
  StatusOr<Plan> PreviewMoveShared(std::span<const policy::PoolMove> moves) const;

  // Adds the sets that undo a binding by an earlier decision to a new placement: nothing else would
  // undo it, and the memory would stay near to the former CPUs.
  void LiftRestrictions(const Container& container, Placement& next) const;
  // Takes back a decision that the runtime may have been told of: the container gets its former
  // placement back, and further bindings of the decision are lifted.
  void PutBack(Container& container, Placement former) const;

  StatusOr<ContainerKeys> Reconcile();
  StatusOr<ContainerKeys> Rebalance();
  StatusOr<ContainerKeys> MoveShared(std::span<const policy::PoolMove> moves);
  // The record is new in the store. `predecessor` may be nullptr; it is not placeable any more.
  StatusOr<ContainerKeys> Allocate(const ContainerRecord& record, const Container* predecessor);
  StatusOr<ContainerKeys> Update(const ContainerRecord& record);
  StatusOr<ContainerKeys> LookAgain(ContainerKey key);
  StatusOr<ContainerKeys> FollowUse(const policy::MeasuredUse& use);
  // The container is erased or not placeable any more.
  StatusOr<ContainerKeys> Release(ContainerKey key);

  // CPUs for claims, as ClaimedPolicy gives them.
  StatusOr<ContainerKeys> Reserve(const Claim& claim);
  StatusOr<ContainerKeys> GiveBack(const std::string& uid);
  // Sets the claims of an earlier daemon, after which Reconcile follows, or the held ones with
  // other pods.
  void HoldClaims(HeldClaims held) { claimed().Hold(std::move(held)); }
  std::shared_ptr<const HeldClaims> claims() const { return claimed().shared_held(); }
  // Notes that a container of the store carries these claims until it is erased. Called before its
  // Allocate.
  void SetClaims(ContainerKey key, std::vector<std::string> uids);
  const ClaimCarriers& carriers() const { return carriers_; }
  // The CPUs of the claims that the container carries.
  CpuSet ClaimedFor(ContainerKey key) const;
  // The CPUs of all other claims.
  CpuSet ClaimedByOthers(ContainerKey key) const { return claims()->Cpus() - ClaimedFor(key); }

  // Called when a broken plan was dropped that the policy took for carried out: makes the policy
  // take over the store's placements again.
  ContainerKeys Recover();

  // Changes of the last decision, if it did not fail, to containers that had a place before; valid
  // until the next one.
  std::span<const Shift> shifts() const { return shifts_.all(); }
  // Called when no decision was necessary.
  void ForgetShifts() { shifts_.Clear(); }

 private:
  friend class Transaction;

  ClaimedPolicy& claimed() const { return static_cast<ClaimedPolicy&>(*policy_); }
  std::unique_ptr<Policy> WithClaims(std::unique_ptr<Policy> policy) const;
  StatusOr<ContainerKeys> Switch(std::unique_ptr<Policy>& policy, const CpuSet& withheld,
                                 bool must_keep);
  StatusOr<Plan> TakeOver(Policy& policy, const CpuSet& withheld = {}) const;
  StatusOr<Plan> Checked(StatusOr<Plan> plan) const;
  StatusOr<ContainerKeys> Apply(StatusOr<Plan> plan);
  void GiveShared(const SharedChange& change, Container& container);

  const Machine& machine_;
  NodeMetrics* const metrics_;
  CpuSet offline_;
  CpuSet usable_;                   // CPUs that containers can run on
  ClaimCarriers carriers_;          // of containers in the store
  std::unique_ptr<Policy> policy_;  // a ClaimedPolicy
  ContainerStore& store_;
  // All containers that may have exclusive CPUs: these are granted only here, and a rollback only
  // restores what was granted here.
  ExclusiveHolders holders_;
  Shifts shifts_;
  Transaction* journal_ = nullptr;  // the transaction that notes Apply's changes
};

// A change of records, with the decisions about it, that holds as a whole or not at all: without a
// Commit its end restores the records that were noted, and the policy.
class Transaction {
 public:
  // The former values of a record.
  struct Before {
    ContainerKey key{};
    LinuxResources requested;
    Requirements requirements;
    Placement placement;
    bool cpus_bound = false;
    bool mems_bound = false;
    bool superseded = false;
  };

  // `several`: more than one decision belongs to it, so that the policy is cloned, and the records
  // that decisions change are noted. A single decision that fails changes nothing by itself.
  explicit Transaction(Decider& decider, bool several = false);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // Called before the record is changed.
  void Note(const ContainerRecord& record);
  // Makes all changes final. Returns the notes in their order.
  std::vector<Before> Commit();

 private:
  Decider& decider_;
  std::unique_ptr<Policy> policy_;  // the policy's state before; null with a single decision
  std::vector<Before> journal_;
  bool open_ = true;
};

// Pods and containers as a policy is to take them over when CPUs went offline: no placement has a
// CPU that cannot be used. A container that lost all of its exclusive CPUs has no place at all.
class OnlineView final : public ChangedView {
 public:
  // `usable`: CPUs that containers can run on; `withheld`: those of them that no container may have
  // for itself any more. `all` must outlive this.
  OnlineView(const Snapshot& all, const CpuSet& usable, const CpuSet& withheld);

  // Adds the placements of this view to the plan of a policy that saw it, for containers that the
  // plan leaves in place.
  void Complete(Plan& plan) const;
};

}  // namespace resmgr
