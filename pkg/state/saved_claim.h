// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/claims/claim.h"
#include "pkg/model/placement.h"

namespace resmgr {

// A claim that holds CPUs, as it is kept over restarts: nothing else on the node knows it until a
// container carries it.
struct SavedClaim {
  Claim claim;
  std::vector<Placement> places{};  // one for each part, with all sets
  uint64_t number = 0;              // in the order in which claims came
};

// The kept form (pkg/api/state.proto, Claim), without the uid, which names it.
std::string EncodeClaim(const SavedClaim& saved);
// InvalidArgument: the bytes are no claim.
StatusOr<SavedClaim> DecodeClaim(std::string_view uid, std::string_view bytes);

}  // namespace resmgr
