// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace resmgr::ttrpc {

// Bytes of the longest Request or Response envelope, as in containerd's ttrpc library. A Go server
// closes the connection over a longer one, so it is checked before anything is sent.
inline constexpr size_t kLongestMessage = size_t{4} << 20;
// Bytes of the longest frame of a multiplexer; a longer one is an error. The Go library splits at
// kLongestMessage and 10 bytes; up to NRI 0.6.1 it sent 16 MiB in one.
inline constexpr size_t kLongestTrunkFrame = (size_t{16} << 20) + 1024;
// Bytes that may wait for a peer that does not read, before the connection ends.
inline constexpr size_t kMostUnsent = size_t{12} << 20;
// Unanswered requests of one connection. More are refused with RESOURCE_EXHAUSTED.
inline constexpr size_t kMostRequests = 64;
// Kept metadata entries of a request; the rest is left out.
inline constexpr size_t kMostMetadata = 64;
// Bytes that are read from one connection before others get their turn.
inline constexpr size_t kReadAtOnce = size_t{64} << 10;

// The same for a connection that was slowed down (Multiplexer::Slow).
inline constexpr size_t kReadWhenSlow = size_t{4} << 10;

}  // namespace resmgr::ttrpc
