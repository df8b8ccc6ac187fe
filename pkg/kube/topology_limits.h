// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace resmgr {

// Limits of a NodeResourceTopology (pkg/api/node_reports.proto); what is beyond them is left out.
inline constexpr int kMostViewZones = 64;   // schedulers read no more
inline constexpr int kMostViewPools = 256;  // so that the object stays small

}  // namespace resmgr
