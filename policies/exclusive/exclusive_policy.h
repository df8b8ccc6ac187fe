// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/policy/pinning.h"
#include "pkg/policy/policy.h"
#include "policies/exclusive/exclusive_pools.h"

namespace resmgr {

// The base of policies that give some containers whole CPUs exclusively and let all others share
// the rest. A derived policy reads its options, chooses the shared, isolated and reserved CPUs, and
// has a rule for each container's entitlement; a copy is a full clone.
class ExclusivePolicy : public Policy {
 public:
  StatusOr<Plan> Reconcile(const Snapshot& snapshot) final;
  StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod, const Container& container,
                          const Container* predecessor) final;
  StatusOr<Plan> Update(const Snapshot& snapshot, const Pod& pod, const Container& container) final;
  StatusOr<Plan> Release(const Snapshot& snapshot, ContainerKey key) final;
  StatusOr<Plan> Rebalance(const Snapshot& snapshot) final;
  std::vector<std::string> Explain(ContainerKey key) const final;
  std::vector<ConsideredPlace> Considered(ContainerKey key) const final;
  std::vector<std::string> WaysIn(const Snapshot& snapshot, const Pod& pod,
                                  const Container& container) const final;
  std::vector<Zone> Zones(const Snapshot& snapshot) const final;

 protected:
  // See ExclusivePools. The rule is not called for containers that are not bound.
  ExclusivePolicy(const Machine& machine, const ExclusiveOptions& options,
                  const ExclusivePools::Cpus& cpus, ExclusivePools::ClaimRule rule,
                  PinningRule pinning);

 private:
  ExclusivePools pools_;
};

}  // namespace resmgr
