// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_port.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace resmgr::hooks {
namespace {

// In the order of HookPoint.
constexpr std::array<std::string_view, kHookPoints> kNames = {
    "PreRunPodSandbox",   "PostStopPodSandbox", "PreCreateContainer",         "PreStartContainer",
    "PostStartContainer", "PostStopContainer",  "PreUpdateContainerResources"};

}  // namespace

std::string_view NameOf(HookPoint point) {
  return kNames.at(static_cast<size_t>(point));
}

std::optional<HookPoint> HookPointOf(std::string_view name) {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<HookPoint>(found - kNames.begin());
}

std::vector<std::string> NamesOf(HookPointSet points) {
  std::vector<std::string> names;
  for (size_t i = 0; i < kHookPoints; ++i) {
    if (points.test(i)) names.emplace_back(kNames.at(i));
  }
  return names;
}

std::string MethodOf(HookPoint point) {
  return fmt::format("/runtime.v1alpha1.RuntimeHookService/{}Hook", NameOf(point));
}

}  // namespace resmgr::hooks
