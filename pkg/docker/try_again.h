// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>

namespace resmgr::docker {

// The read or write that has just failed has found no bytes or no room: later it may.
inline bool TryAgain() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace resmgr::docker
