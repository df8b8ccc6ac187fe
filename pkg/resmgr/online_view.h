// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/claims/claim_view.h"
#include "pkg/model/plan.h"

namespace resmgr {

// Pods and containers as a policy is to take them over when CPUs went offline: no placement has a
// CPU that cannot be used. A container that lost all of its exclusive CPUs has no place at all.
class OnlineView final : public ChangedView {
 public:
  // `usable`: CPUs that containers can run on; `withheld`: those of them that no container may have
  // for itself any more. `all` must outlive this.
  OnlineView(const Snapshot& all, const CpuSet& usable, const CpuSet& withheld);

  // Adds the placements of this view to the plan of a policy that saw it, for containers that the
  // plan leaves in place.
  void Complete(Plan& plan) const;
};

}  // namespace resmgr
