// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/policy/pinning.h"
#include "pkg/policy/policy.h"
#include "pkg/policy/registry.h"
#include "policies/balloons/balloon_book.h"
#include "policies/balloons/balloon_rules.h"

namespace resmgr {

// Places containers in balloons: sets of CPUs, each made by the rules of its type, that grow and
// shrink with the requests of their containers. Rules, options, annotations and differences from
// nri-plugins: README.md beside this file.
//
// Placements carry all that it must know again after a restart: the balloon's name is the pool, and
// the reason ends with the balloon's own CPUs, since containers may run on idle ones, too.
class BalloonsPolicy : public Policy {
 public:
  // InvalidArgument when the section is wrong, or the machine has too few CPUs for the balloons
  // that always exist.
  static StatusOr<std::unique_ptr<Policy>> Create(const PolicyContext& context);

  std::string_view name() const override { return "balloons"; }
  std::unique_ptr<Policy> Clone() const override;
  StatusOr<Plan> Reconcile(const Snapshot& snapshot) override;
  StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod, const Container& container,
                          const Container* predecessor) override;
  StatusOr<Plan> Update(const Snapshot& snapshot, const Pod& pod,
                        const Container& container) override;
  StatusOr<Plan> Release(const Snapshot& snapshot, ContainerKey key) override;
  StatusOr<Plan> Rebalance(const Snapshot& snapshot) override;
  std::vector<std::string> Explain(ContainerKey key) const override;
  // With what the balloons had when it was placed.
  std::vector<ConsideredPlace> Considered(ContainerKey key) const override;
  std::vector<std::string> WaysIn(const Snapshot& snapshot, const Pod& pod,
                                  const Container& container) const override;
  std::vector<std::string> Unheeded(const Pod& pod, const Container& container) const override;
  bool WantsHints() const override;
  bool WantsPodResources() const override;
  std::vector<Zone> Zones(const Snapshot& snapshot) const override;

 private:
  BalloonsPolicy(std::shared_ptr<const BalloonSetup> setup, PinningRule pinning);

  BalloonRules rules() const { return {*setup_, pinning_}; }
  Placement UnboundPlacement(const std::string& why, const Container& container) const;
  Placement PlacementOf(const Balloon& balloon, const BalloonMember& member, const Pod& pod,
                        const Container& container) const;
  NodeSet MemoryNodes(const CpuSet& cpus, unsigned types) const;
  // A new attempt of a container takes its former place, if it has one that fits.
  bool JoinFormer(const Container& predecessor, const std::shared_ptr<BalloonMember>& member);
  bool IsFormer(const Balloon& balloon, const CpuSet& own, const BalloonMember& member) const;
  // What changes for containers of balloons that differ from `before`.
  Plan MakePlan(const Snapshot& snapshot, const BalloonBook& before) const;
  void AddChanges(const Snapshot& snapshot, const Balloon& balloon, Plan& plan) const;

  const std::shared_ptr<const BalloonSetup> setup_;
  const PinningRule pinning_;
  BalloonBook book_;
};

PolicyFactory BalloonsPolicyFactory();

// The end of a placement's reason, by which the balloon's own CPUs are found again.
std::string WithOwnCpus(const std::string& text, const CpuSet& own);
// The text before that, and the CPUs; empty if the reason has none.
std::string TextOfReason(const std::string& reason);
CpuSet OwnCpusOfReason(const std::string& reason);

// The lowest CPU of each core in `cpus`.
CpuSet OneThreadPerCore(const Machine& machine, const CpuSet& cpus);

}  // namespace resmgr
