// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/claims/claim.h"
#include "pkg/model/container.h"

namespace resmgr {

// A container that carries a claim.
struct SavedCarrier {
  std::string pod{};        // the sandbox's id
  std::string container{};  // its name at its creation
  uint32_t attempt = 0;

  friend bool operator==(const SavedCarrier&, const SavedCarrier&) = default;
};

// A claim that holds CPUs, and the containers that carry it, as saved for restarts: no other
// program on the node has this knowledge.
struct SavedClaim {
  Claim claim;
  std::vector<Placement> places{};  // one for each part, with all sets
  uint64_t number = 0;              // position in the order of the claims' arrival
  std::vector<SavedCarrier> carriers{};
};

// The saved form (pkg/api/state.proto, Claim), without the uid, which is the record's name.
std::string EncodeClaim(const SavedClaim& saved);
// InvalidArgument: the bytes are not a claim.
StatusOr<SavedClaim> DecodeClaim(std::string_view uid, std::string_view bytes);

}  // namespace resmgr
