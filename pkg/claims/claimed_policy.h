// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/claims/claim_view.h"
#include "pkg/claims/held_claims.h"
#include "pkg/policy/policy.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Adds claims to any other policy, the policy behind. Each part of a claim appears there as a
// Guaranteed container with exclusive CPUs, so the previews, what-if questions and reconciliations
// of that policy count claims, and no other code decides which CPUs a claim gets. A container that
// carries claims is placed on their CPUs, and the policy behind does not see it. Plans name only
// containers of the snapshot. Without claims and carriers each call is passed on unchanged.
class ClaimedPolicy final : public Policy {
 public:
  // `machine` and `carriers` must outlive it and its copies. A container is a carrier before it is
  // allocated, and stays one until it is released. Allocate refuses it with NotFound when one of
  // its claims is not held, and with AlreadyExists when another container has one of them.
  ClaimedPolicy(std::unique_ptr<Policy> policy, const Machine& machine,
                const ClaimCarriers& carriers);

  // Gives the claim, which is not held yet, CPUs of its own for each part, inside its NUMA node, or
  // changes nothing. Shared containers keep a CPU.
  //   ResourceExhausted: what it needs, what is free and what holds the rest
  //   InvalidArgument: it is not a claim, or no node of this kind can ever grant it
  //   FailedPrecondition: this policy gives no exclusive CPUs, or not all parameters
  StatusOr<Plan> Reserve(const Snapshot& snapshot, const Claim& claim);
  // Takes the claim's CPUs back. Containers that still carry the claim are then placed as others
  // are. An unknown uid changes nothing and is not an error.
  StatusOr<Plan> GiveBack(const Snapshot& snapshot, const std::string& uid);

  const HeldClaims& held() const { return *held_; }
  // The held claims as an object that never changes.
  const std::shared_ptr<const HeldClaims>& shared_held() const { return held_; }
  // Takes over claims with the CPUs of their placements. The caller must call Reconcile next.
  void Hold(HeldClaims held);
  // Whether a Reconcile that would take CPUs from a claim fails with FailedPrecondition and changes
  // nothing. If not, the claim has what the policy gives it, which may be nothing. The null policy,
  // which binds no container, is never refused: claims keep their CPUs for the next policy.
  void SetMustKeep(bool must_keep) { must_keep_ = must_keep; }
  // Sets the online CPUs: at the next Reconcile claims lose all others.
  void SetUsable(const CpuSet& usable) { usable_ = usable; }

  // The policy that sees the parts of claims as containers.
  const Policy& behind() const { return *policy_; }
  // A ClaimedPolicy with the same claims and a copy of `policy`, which must be in the state of the
  // policy behind.
  std::unique_ptr<ClaimedPolicy> CloneOn(const Policy& policy) const;

  std::string_view name() const override { return policy_->name(); }
  std::unique_ptr<Policy> Clone() const override { return CloneOn(*policy_); }
  StatusOr<Plan> Reconcile(const Snapshot& snapshot) override;
  void Prepare(const Pod& pod) override { policy_->Prepare(pod); }
  StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod, const Container& container,
                          const Container* predecessor) override;
  StatusOr<Plan> Update(const Snapshot& snapshot, const Pod& pod,
                        const Container& container) override;
  StatusOr<Plan> LookAgain(const Snapshot& snapshot, ContainerKey key) override;
  StatusOr<Plan> Release(const Snapshot& snapshot, ContainerKey key) override;
  StatusOr<Plan> Rebalance(const Snapshot& snapshot) override;
  policy::SharedPools Shared(const Snapshot& snapshot) const override;
  std::vector<std::string> TargetsOf(const Snapshot& snapshot, ContainerKey key) const override;
  StatusOr<Plan> MoveShared(const Snapshot& snapshot,
                            std::span<const policy::PoolMove> moves) override;
  std::vector<std::string> Explain(ContainerKey key) const override;
  std::vector<ConsideredPlace> Considered(ContainerKey key) const override;
  std::vector<std::string> WaysIn(const Snapshot& snapshot, const Pod& pod,
                                  const Container& container) const override;
  std::vector<std::string> Unheeded(const Pod& pod, const Container& container) const override {
    return policy_->Unheeded(pod, container);
  }
  ClassNames ClassesOf(ContainerKey key) const override;
  bool KeepsPoolsApart() const override { return policy_->KeepsPoolsApart(); }
  bool MayReturn(ContainerKey key, const Placement& former) const override {
    return policy_->MayReturn(key, former);
  }
  bool WantsHints() const override { return policy_->WantsHints(); }
  bool WantsPodResources() const override { return policy_->WantsPodResources(); }
  bool FollowsUse() const override { return policy_->FollowsUse(); }
  StatusOr<Plan> FollowUse(const Snapshot& snapshot, const policy::MeasuredUse& use) override;
  std::vector<Zone> Zones(const Snapshot& snapshot) const override;

 private:
  bool Hidden(ContainerKey key) const { return ClaimView::IsHidden(key, *held_, carriers_); }
  // The claims of a hidden container.
  std::vector<const HeldClaim*> ClaimsOf(ContainerKey key) const;
  template <typename Ask>
  auto AsSeen(const Snapshot& snapshot, Ask ask) const;
  template <typename Decide>
  StatusOr<Plan> Decided(const Snapshot& snapshot, Decide decide);
  StatusOr<Plan> OfContainers(StatusOr<Plan> plan);
  ContainerKey Behind(ContainerKey key) const;
  StatusOr<Plan> ReconcileParts(const Snapshot& snapshot, const ClaimView::Options& shown,
                                HeldClaims& held);
  Status CheckOthers(const Plan& plan, const CpuSet& claimed) const;
  StatusOr<Plan> AllocateCarrier(const Snapshot& snapshot, const Pod& pod,
                                 const Container& container, const Container* predecessor);
  Status CheckCarrier(const Snapshot& snapshot, const Pod& pod, const Container& container,
                      const Container* predecessor) const;
  Status CheckKept(const HeldClaims& now) const;
  void PlaceCarriers(const Snapshot& snapshot, Plan& plan) const;
  Status CheckShared(const Snapshot& view, const HeldClaim& claim) const;

  std::unique_ptr<Policy> policy_;
  const Machine& machine_;
  const ClaimCarriers& carriers_;
  std::shared_ptr<const HeldClaims> held_;  // never null; shared with copies
  bool must_keep_ = false;
  std::optional<CpuSet> usable_;
};

// A copy of the policy without claims, for questions that do not depend on them. If the policy held
// some, Reconcile must be called next.
std::unique_ptr<Policy> CopyWithoutClaims(const Policy& policy);
// The claims that hold CPUs by this policy, whether a container carries them or not.
const HeldClaims& ClaimsOf(const Policy& policy);

}  // namespace resmgr
