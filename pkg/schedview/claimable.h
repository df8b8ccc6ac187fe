// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "pkg/claims/claimed_policy.h"

namespace resmgr {

struct ClaimableOptions {
  int step = 1;  // claims ask for multiples of it
  // Claims that are tried at most in each order, for all places together. Each is one decision of a
  // copy of the policy. Places that are left when they are used up count as full.
  int most_tries = 200;
};

// For each place (`cpus` of the parts is not read), the largest number of CPUs that one more claim
// gets there, after claims with the results of the places before it got theirs. Where CPUs are
// isolated, also in descending order, since policies that leave these to the last grant less in one
// order than in the other; and after smaller claims that took all ordinary CPUs elsewhere. All
// results together can be granted. Found by asking copies of the policy, which stays as it is.
// Pure.
std::vector<int> ClaimableCpus(const ClaimedPolicy& policy, const Snapshot& snapshot,
                               std::span<const ClaimPart> places, const Machine& machine,
                               const ClaimableOptions& options);

}  // namespace resmgr
