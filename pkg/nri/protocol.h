// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace resmgr::nri {

// The two connections of the trunk between a plugin and its host (containerd/nri, pkg/net/multiplex
// and pkg/api).
inline constexpr uint32_t kPluginConnection = 1;   // the plugin serves
inline constexpr uint32_t kRuntimeConnection = 2;  // the host serves
inline constexpr const char* kPluginService = "nri.pkg.api.v1alpha1.Plugin";
inline constexpr const char* kRuntimeService = "nri.pkg.api.v1alpha1.Runtime";
// The NRI version of this plugin and host; sent since 0.12.
inline constexpr const char* kOurVersion = "v0.12.2";

}  // namespace resmgr::nri
