// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/policy/policy.h"
#include "pkg/policy/registry.h"

namespace resmgr {

// Binds nothing: every container keeps the values of its request. The relay does not even read
// calls while this policy is active; the object is only needed for the change to it. A container
// that another policy placed gets an empty placement, and then the resource manager undoes its
// binding (pkg/policy/pinning.h). A container that was never placed stays where it was found.
class NullPolicy : public Policy {
 public:
  std::string_view name() const override { return "null"; }
  std::unique_ptr<Policy> Clone() const override;
  StatusOr<Plan> Reconcile(const Snapshot& snapshot) override;
  StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod, const Container& container,
                          const Container* predecessor) override;
  StatusOr<Plan> Update(const Snapshot& snapshot, const Pod& pod,
                        const Container& container) override;
  StatusOr<Plan> Release(const Snapshot& snapshot, ContainerKey key) override;
  std::vector<Zone> Zones(const Snapshot& snapshot) const override;
};

PolicyFactory NullPolicyFactory();

}  // namespace resmgr
