// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace resmgr {

// Limits of what a node reports (pkg/api/node_reports.proto).

// The API server's limit of an Event's message in bytes.
inline constexpr size_t kLongestEventMessage = 1024;
// Limits of a NodeResourceTopology, which lacks whatever is beyond them.
inline constexpr int kMostViewZones = 64;   // schedulers read no more
inline constexpr int kMostViewPools = 256;  // so that the object stays small

}  // namespace resmgr
