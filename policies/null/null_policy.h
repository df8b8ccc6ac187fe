// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/policy/policy.h"
#include "pkg/policy/registry.h"

namespace resmgr {

// Places nothing: every container stays as its request said. The relay does not even look into
// calls while this is the active policy; the object is for the way there. What another policy
// placed is let go: back to the sets that the kubelet asked for or, where it asked for none, to all
// CPUs and memory nodes. Who was never placed stays where it was found.
class NullPolicy : public Policy {
 public:
  // The machine must outlive it.
  explicit NullPolicy(const Machine& machine) : machine_(machine) {}

  std::string_view name() const override { return "null"; }
  std::unique_ptr<Policy> Clone() const override;
  StatusOr<Plan> Reconcile(const Snapshot& snapshot) override;
  StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod, const Container& container,
                          const Container* predecessor) override;
  StatusOr<Plan> Update(const Snapshot& snapshot, const Pod& pod,
                        const Container& container) override;
  StatusOr<Plan> Release(const Snapshot& snapshot, ContainerKey key) override;
  std::vector<Zone> Zones(const Snapshot& snapshot) const override;

 private:
  Placement LetGo(const Container& container) const;

  const Machine& machine_;
};

PolicyFactory NullPolicyFactory();

}  // namespace resmgr
