// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nghttp2/nghttp2.h>

namespace resmgr::h2 {

// Memory for nghttp2, which takes and returns some dozens of small pieces per call. Free pieces are
// kept in lists by size, each thread's own and of bounded length, so that taking one is a few
// instructions. What is taken on a thread must be returned on it, as a session does that lives on
// one loop.
nghttp2_mem* PooledMemory();

}  // namespace resmgr::h2
