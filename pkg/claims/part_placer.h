// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pkg/claims/claim_view.h"
#include "pkg/claims/held_claims.h"
#include "pkg/policy/policy.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Finds CPUs for the parts of one claim: asks a policy to place a container with as many exclusive
// CPUs as the part needs. If the policy places it outside the part's NUMA node or cache, the policy
// is asked again, and told that the container had CPUs and a pool inside before: policies place a
// new attempt of a container where the former one was.
class PartPlacer {
 public:
  // `policy` decides; to undo a try, it is replaced by a copy made before. `all`: the containers.
  // All references must outlive it.
  PartPlacer(std::unique_ptr<Policy>& policy, const Machine& machine, const ClaimCarriers& carriers,
             PlannedView& all, HeldClaims& held)
      : policy_(policy), machine_(machine), carriers_(carriers), all_(all), held_(held) {}

  // Places the next part of the claim. `before`: a copy of the policy as it is now, or nullptr to
  // let Place make one. After a refusal, the policy and the containers may still have the claim's
  // earlier parts and a failed attempt for this part: the caller restores both.
  Status Place(HeldClaim& claim, const Policy* before);

 private:
  // A placement by the policy; it counts only if it is inside the part's place.
  struct Tried {
    Placement placement{};
    bool inside = false;
  };

  std::string PoolInside(const Snapshot& view, const HeldClaim& claim) const;
  CpuSet Candidates(const Snapshot& view, const HeldClaim& claim) const;
  std::vector<CpuSet> PlacesToTry(const Snapshot& view, const HeldClaim& claim,
                                  const CpuSet& first) const;
  CpuSet Exactly(const CpuSet& candidates, int cpus) const;
  Status CheckExclusive(const HeldClaim& claim, const Placement& placement) const;
  Status CheckSeen(const HeldClaim& claim, const Placement& placement) const;
  Status Shortage(const Snapshot& view, const HeldClaim& claim) const;
  StatusOr<Tried> Try(const Snapshot& view, const HeldClaim& claim, const Container& part,
                      const CpuSet& near);

  std::unique_ptr<Policy>& policy_;
  const Machine& machine_;
  const ClaimCarriers& carriers_;
  PlannedView& all_;
  HeldClaims& held_;
};

}  // namespace resmgr
