// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/base/status.h"

namespace resmgr {

// Whether a call that ended so may have taken effect, or may do so later: only the peer knows.
// Codes are those of gRPC.
constexpr bool IsUnclear(StatusCode code) {
  return code == StatusCode::kCancelled || code == StatusCode::kDeadlineExceeded ||
         code == StatusCode::kUnavailable;
}

}  // namespace resmgr
