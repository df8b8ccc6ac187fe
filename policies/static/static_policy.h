// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/allocator/exclusive_pools.h"
#include "pkg/policy/policy.h"
#include "pkg/policy/registry.h"
#include "policies/static/static_options.h"

namespace resmgr {

// The kubelet's static CPU manager policy: a container of a Guaranteed pod that requests whole CPUs
// gets so many for itself alone, everybody else runs on the shared set, which is what is left.
// Rules, options and differences from the kubelet: README.md beside this file.
//
// The shared set is never empty: an allocation that would take its last CPU is refused.
class StaticPolicy : public Policy {
 public:
  // InvalidArgument when the section is wrong or the CPUs leave none to share.
  static StatusOr<std::unique_ptr<Policy>> Create(const PolicyContext& context);

  std::string_view name() const override { return "static"; }
  std::unique_ptr<Policy> Clone() const override;
  StatusOr<Plan> Reconcile(const Snapshot& snapshot) override;
  StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod, const Container& container,
                          const Container* predecessor) override;
  StatusOr<Plan> Update(const Snapshot& snapshot, const Pod& pod,
                        const Container& container) override;
  StatusOr<Plan> Release(const Snapshot& snapshot, ContainerKey key) override;
  StatusOr<Plan> Rebalance(const Snapshot& snapshot) override;
  std::vector<std::string> Explain(ContainerKey key) const override;
  std::vector<Zone> Zones(const Snapshot& snapshot) const override;

 private:
  StaticPolicy(const PolicyContext& context, const StaticOptions& options);

  const Machine& machine_;
  const bool reserved_are_shared_;
  ExclusivePools pools_;
};

PolicyFactory StaticPolicyFactory();

}  // namespace resmgr
