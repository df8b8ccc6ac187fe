// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/policy/policy.h"
#include "pkg/policy/registry.h"
#include "policies/static/exclusive_picker.h"
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
  StatusOr<Plan> Reconcile(const Snapshot& snapshot) override;
  StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod, const Container& container,
                          const Container* predecessor) override;
  StatusOr<Plan> Update(const Snapshot& snapshot, const Pod& pod,
                        const Container& container) override;
  StatusOr<Plan> Release(const Snapshot& snapshot, ContainerKey key) override;
  std::vector<Zone> Zones(const Snapshot& snapshot) const override;

 private:
  struct Grant {
    CpuSet cpus;
    std::string reason;
  };

  StaticPolicy(const PolicyContext& context, const StaticOptions& options);

  CpuSet Shared() const { return shared_base_ - granted_; }
  void Adopt(const Snapshot& snapshot);
  std::map<ContainerKey, std::string> GrantTheRest(const Snapshot& snapshot);
  bool Legal(const CpuSet& cpus) const;

  StatusOr<Grant> Find(const Pod& pod, const Container& container, const CpuSet& former,
                       const CpuSet& granted) const;
  StatusOr<Grant> Resize(const Grant& grant, int count) const;
  Status CheckShared(const CpuSet& cpus, const CpuSet& granted) const;
  void Give(ContainerKey key, Grant grant);
  void Take(ContainerKey key);

  Placement PlacementOf(const Pod& pod, const Container& container) const;
  Placement SharedPlacement(std::string reason) const;
  // The others whose shared set changed.
  void AddShared(const Snapshot& snapshot, ContainerKey except, Plan& plan) const;

  const Machine& machine_;
  const StaticOptions options_;
  const ExclusivePicker picker_;
  const CpuSet reserved_;
  const CpuSet isolated_;     // may be granted, not part of the shared set
  const CpuSet shared_base_;  // the shared set while nothing is granted
  std::map<ContainerKey, Grant> grants_;
  CpuSet granted_;  // the union of them
};

PolicyFactory StaticPolicyFactory();

}  // namespace resmgr
