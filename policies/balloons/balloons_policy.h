// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/policy/pinning.h"
#include "pkg/policy/policy.h"
#include "pkg/policy/registry.h"
#include "policies/balloons/balloon_book.h"
#include "policies/balloons/balloon_plan.h"
#include "policies/balloons/balloon_rules.h"

namespace resmgr {

// Places containers in balloons: sets of CPUs, each made by the rules of its type, that grow and
// shrink with the requests of their containers. Rules, options, annotations and differences from
// nri-plugins: README.md beside this file.
//
// All state that is needed after a restart is in the placements: the balloon's name is the pool,
// and the reason ends with the balloon's own CPUs, since containers may run on idle ones, too.
class BalloonsPolicy : public Policy {
 public:
  // InvalidArgument if the section is invalid, or if the machine has too few CPUs for the balloons
  // that always exist.
  static StatusOr<std::unique_ptr<Policy>> Create(const PolicyContext& context);

  std::string_view name() const override { return "balloons"; }
  std::unique_ptr<Policy> Clone() const override;
  StatusOr<Plan> Reconcile(const Snapshot& snapshot) override;
  StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod, const Container& container,
                          const Container* predecessor) override;
  StatusOr<Plan> Update(const Snapshot& snapshot, const Pod& pod,
                        const Container& container) override;
  bool KeepsPoolsApart() const override { return true; }
  bool MayReturn(ContainerKey key, const Placement& former) const override;
  StatusOr<Plan> Release(const Snapshot& snapshot, ContainerKey key) override;
  StatusOr<Plan> Rebalance(const Snapshot& snapshot) override;
  policy::SharedPools Shared(const Snapshot& snapshot) const override;
  std::vector<std::string> TargetsOf(const Snapshot& snapshot, ContainerKey key) const override;
  StatusOr<Plan> MoveShared(const Snapshot& snapshot,
                            std::span<const policy::PoolMove> moves) override;
  std::vector<std::string> Explain(ContainerKey key) const override;
  // The considered balloons as they were at the time of the placement.
  std::vector<ConsideredPlace> Considered(ContainerKey key) const override;
  std::vector<std::string> WaysIn(const Snapshot& snapshot, const Pod& pod,
                                  const Container& container) const override;
  std::vector<std::string> Unheeded(const Pod& pod, const Container& container) const override;
  ClassNames ClassesOf(ContainerKey key) const override;
  bool WantsHints() const override;
  bool WantsPodResources() const override;
  bool FollowsUse() const override { return setup_->follows_use(); }
  StatusOr<Plan> FollowUse(const Snapshot& snapshot, const policy::MeasuredUse& use) override;
  std::vector<Zone> Zones(const Snapshot& snapshot) const override;

 private:
  BalloonsPolicy(std::shared_ptr<const BalloonSetup> setup, PinningRule pinning);

  ClassNames ClassesOfType(int type) const;
  void AddParts(const BalloonPart& part, const std::string& above, std::vector<Zone>& zones) const;
  BalloonRules rules() const { return {*setup_, pinning_}; }
  BalloonPlan plan_of_book() const { return BalloonPlan(book_); }
  // Ends a decision: returns the changes for containers of balloons that differ from `before`.
  Plan MakePlan(const Snapshot& snapshot, const BalloonBook& before);
  Placement UnboundPlacement(const std::string& why, const Container& container) const;
  // Gives a new attempt of a container its former place; false if that does not fit.
  bool JoinFormer(const Container& predecessor, const std::shared_ptr<BalloonMember>& member);
  // Makes one move of MoveShared; after a failure the caller must restore the book.
  Status MoveOne(const policy::PoolMove& move);
  bool IsFormer(const Balloon& balloon, const CpuSet& own, const BalloonMember& member) const;

  const std::shared_ptr<const BalloonSetup> setup_;
  const PinningRule pinning_;
  BalloonBook book_;
};

PolicyFactory BalloonsPolicyFactory();

}  // namespace resmgr
