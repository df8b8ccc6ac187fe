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

  // Lets `policy` take over all containers and claims and decide from now on; afterwards `policy`
  // is the former one. FailedPrecondition if a claim would lose CPUs.
  StatusOr<ContainerKeys> Switch(std::unique_ptr<Policy>& policy);
  // As Switch, after CPUs went offline or came back, so that claims may lose some. `withheld`: CPUs
  // that no container may have exclusively any more.
  StatusOr<ContainerKeys> SwitchOnline(std::unique_ptr<Policy>& policy, const CpuSet& withheld);
  // Exchanges the active policy and `policy` without a decision; Reconcile has to follow.
  void Exchange(std::unique_ptr<Policy>& policy);
  // Sets the offline CPUs of the machine: policies that take containers over from now on find them
  // without these CPUs.
  void SetOffline(const CpuSet& offline);
  const CpuSet& offline() const { return offline_; }
  // The checked plan with which `policy` would take over all containers. It is made on a copy, and
  // the store does not change.
  StatusOr<Plan> PreviewTakeOver(const Policy& policy) const;
  StatusOr<Plan> PreviewRebalance() const;
  StatusOr<Plan> PreviewMoveShared(std::span<const policy::PoolMove> moves) const;

  // Adds to a new placement the sets that undo a binding by an earlier decision: without them the
  // runtime would keep the binding, and the memory would stay near to the former CPUs.
  void LiftRestrictions(const Container& container, Placement& next) const;
  // Takes back a decision that the runtime may already have been sent: the container gets its
  // former placement, and bindings that the decision added are lifted.
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
  // Sets the held claims: those of an earlier daemon, after which Reconcile must be called, or the
  // same ones with other pods.
  void HoldClaims(HeldClaims held) { claimed().Hold(std::move(held)); }
  const std::shared_ptr<const HeldClaims>& claims() const { return claimed().shared_held(); }
  // Notes that a container of the store carries these claims until it is erased. Called before its
  // Allocate.
  void SetClaims(ContainerKey key, std::vector<std::string> uids);
  const ClaimCarriers& carriers() const { return carriers_; }
  // The CPUs of the claims that the container carries.
  CpuSet ClaimedFor(ContainerKey key) const;
  // The CPUs of all other claims.
  CpuSet ClaimedByOthers(ContainerKey key) const { return claims()->Cpus() - ClaimedFor(key); }
  // Whether some of the CPUs are exclusive ones of another container, or of a claim that the
  // container does not carry.
  bool OthersOwn(const CpuSet& cpus, ContainerKey key) const;

  // Whether the container may have its former place again, which no other container and no claim
  // has by now. `holder`: the container that has its place, which may be itself.
  bool MayReturn(ContainerKey key, const Placement& former, ContainerKey holder) const {
    return !OthersOwn(former.exclusive, key) && policy_->MayReturn(holder, former);
  }

  // Called when the policy's plan was broken and dropped, while the policy believes that it was
  // carried out: makes the policy take over the store's placements again.
  ContainerKeys Recover();

  // Changes by the last successful decision to containers that had a place before; valid until the
  // next decision.
  std::span<const Shift> shifts() const { return shifts_.all(); }
  // Called if no decision was necessary, so that shifts() is empty.
  void ForgetShifts() { shifts_.Clear(); }

 private:
  friend class Transaction;

  ClaimedPolicy& claimed() const { return static_cast<ClaimedPolicy&>(*policy_); }
  std::unique_ptr<Policy> WithClaims(std::unique_ptr<Policy> policy) const;
  StatusOr<ContainerKeys> Switch(std::unique_ptr<Policy>& policy, const CpuSet& withheld,
                                 bool must_keep);
  // Asks the policy for a plan about the containers that it sees, and records the time. Kind:
  // NodeMetrics::Operation, which this header only declares.
  template <typename Kind, typename Ask>
  StatusOr<Plan> Timed(Kind kind, const Ask& ask) const;
  template <typename Kind, typename Ask>
  StatusOr<ContainerKeys> Decide(Kind kind, const Ask& ask);
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
  Transaction* journal_ = nullptr;  // open transaction that notes the records Apply changes
};

// A change of records, with the decisions about it, that is made completely or not at all: unless
// Commit is called, its end restores the noted records and the policy.
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

  // `several`: more than one decision belongs to the change, so the policy is cloned, and each
  // record that a decision changes is noted. For one decision this is not needed: if it fails, it
  // changes nothing.
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

// Pods and containers for a policy that takes them over after CPUs went offline: placements do not
// have CPUs that cannot be used, and a container that lost all of its exclusive CPUs has no place
// at all.
class OnlineView final : public ChangedView {
 public:
  // `usable`: CPUs that containers can run on; `withheld`: usable CPUs that no container may have
  // exclusively any more. `all` must outlive this.
  OnlineView(const Snapshot& all, const CpuSet& usable, const CpuSet& withheld);

  // Adds the placements of this view to the plan of a policy that saw it, for containers that the
  // plan does not name.
  void Complete(Plan& plan) const;
};

}  // namespace resmgr
