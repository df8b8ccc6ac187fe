// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace resmgr::ttrpc {

// The longest Request or Response envelope: what containerd's ttrpc library takes. A Go server ends
// the connection over a longer one, so it is checked before anything is sent.
inline constexpr size_t kLongestMessage = size_t{4} << 20;
// A multiplexer's frame that is longer is no frame of a peer that is in its right mind. The Go
// library splits at kLongestMessage and 10 bytes; up to NRI 0.6.1 it sent 16 MiB in one.
inline constexpr size_t kLongestTrunkFrame = (size_t{16} << 20) + 1024;
// What waits for a peer that does not read, before the connection ends.
inline constexpr size_t kMostUnsent = size_t{12} << 20;
// Requests of one connection that are not answered yet. More are refused with RESOURCE_EXHAUSTED.
inline constexpr size_t kMostRequests = 64;
// Metadata of one request that is kept; the rest is left out.
inline constexpr size_t kMostMetadata = 64;
// Bytes that are read from one connection before others get their turn.
inline constexpr size_t kReadAtOnce = size_t{64} << 10;

// The same for a connection whose peer sends more than it should.
inline constexpr size_t kReadWhenSlow = size_t{4} << 10;

}  // namespace resmgr::ttrpc
