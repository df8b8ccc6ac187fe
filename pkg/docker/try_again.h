// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>

namespace resmgr::docker {

// Whether a read or write failed only because there were no bytes or no room, so that it may
// succeed later.
inline bool TryAgain() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace resmgr::docker
