// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/policy/policy.h"
#include "pkg/policy/registry.h"

namespace resmgr {

// Places nothing: every container keeps its request's values. The relay does not even read calls
// while this is the active policy; the object serves the change to this policy. A container that
// another policy placed gets an empty placement, upon which the resource manager lets it go
// (pkg/policy/pinning.h). A container that was never placed stays where it was found.
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
