// SPDX-License-Identifier: Apache-2.0
#include "policies/exclusive/exclusive_policy.h"

#include <string_view>
#include <utility>

namespace resmgr {
namespace {

ExclusivePools::ClaimRule WithPinning(ExclusivePools::ClaimRule rule, PinningRule pinning) {
  return [rule = std::move(rule), pinning = std::move(pinning)](const Pod& pod,
                                                                const Container& container) {
    const std::string_view why = pinning.WhyUnbound(pod);
    if (why.empty()) return rule(pod, container);
    CpuClaim claim;
    claim.shared = false;
    claim.unbound = true;
    claim.why = why;
    return claim;
  };
}

}  // namespace

ExclusivePolicy::ExclusivePolicy(const Machine& machine, const ExclusiveOptions& options,
                                 const ExclusivePools::Cpus& cpus, ExclusivePools::ClaimRule rule,
                                 PinningRule pinning)
    : pools_(machine, options, cpus, WithPinning(std::move(rule), std::move(pinning))) {}

StatusOr<Plan> ExclusivePolicy::Reconcile(const Snapshot& snapshot) {
  return pools_.Reconcile(snapshot);
}

StatusOr<Plan> ExclusivePolicy::Allocate(const Snapshot& snapshot, const Pod& pod,
                                         const Container& container, const Container* predecessor) {
  return pools_.Allocate(snapshot, pod, container, predecessor);
}

StatusOr<Plan> ExclusivePolicy::Update(const Snapshot& snapshot, const Pod& pod,
                                       const Container& container) {
  return pools_.Update(snapshot, pod, container);
}

StatusOr<Plan> ExclusivePolicy::Release(const Snapshot& snapshot, ContainerKey key) {
  return pools_.Release(snapshot, key);
}

StatusOr<Plan> ExclusivePolicy::Rebalance(const Snapshot& snapshot) {
  return pools_.Rebalance(snapshot);
}

std::vector<std::string> ExclusivePolicy::Explain(ContainerKey key) const {
  return pools_.Explain(key);
}

std::vector<ConsideredPlace> ExclusivePolicy::Considered(ContainerKey key) const {
  return pools_.Considered(key);
}

std::vector<std::string> ExclusivePolicy::WaysIn(const Snapshot& snapshot, const Pod& pod,
                                                 const Container& container) const {
  return pools_.WaysIn(snapshot, pod, container, name());
}

std::vector<Zone> ExclusivePolicy::Zones(const Snapshot& snapshot) const {
  return pools_.Zones(snapshot);
}

}  // namespace resmgr
