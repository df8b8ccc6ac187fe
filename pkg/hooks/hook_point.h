// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>

namespace resmgr::hooks {

// The points at which hook servers are asked (Koordinator's RuntimeHookService v1alpha1). Pre...:
// before the runtime gets the call, and the answer may change it; Post...: after it.
enum class HookPoint : uint8_t {
  kPreRunPodSandbox,
  kPostStopPodSandbox,
  kPreCreateContainer,
  kPreStartContainer,
  kPostStartContainer,
  kPostStopContainer,
  kPreUpdateContainerResources,
};
inline constexpr size_t kHookPoints = 7;
using HookPointSet = std::bitset<kHookPoints>;

}  // namespace resmgr::hooks
