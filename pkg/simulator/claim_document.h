// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"
#include "pkg/dra/claim_object.h"

namespace resmgr {

// A ResourceClaim of a scenario. Its allocation is read as the driver reads it
// (dra::ParseClaimObject), when it is prepared.
struct ClaimDocument {
  dra::ClaimName name{};  // one without UID gets one that follows from its name
  std::string object{};   // JSON, with this name
};

// Limit of all claims of a scenario's file.
inline constexpr size_t kMaxClaims = 10'000;

// Reads a ResourceClaim (resource.k8s.io) as users write it and as kubectl prints it; without a
// namespace it is in "default". kInvalidArgument "SOURCE:LINE: path: ..." for a missing or invalid
// name or UID, and for a misspelt key.
StatusOr<ClaimDocument> ReadClaim(const ConfigNode& object);

// Whether its allocation has a device of this node, whose name is that of the pool.
StatusOr<bool> IsAllocatedOn(const ConfigNode& object, std::string_view node);

}  // namespace resmgr
