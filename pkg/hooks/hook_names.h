// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/hooks/hook_point.h"

namespace resmgr::hooks {

// As hook files name it: "PreCreateContainer".
std::string_view NameOf(HookPoint point);
// Nothing for an unknown name, and for kInertPoint. Case counts.
std::optional<HookPoint> HookPointOf(std::string_view name);

// A name that koordlet may list, and for which RuntimeHookService has no method: nothing is ever
// asked there.
inline constexpr std::string_view kInertPoint = "PreRemoveRunPodSandbox";

// The names of those in the set, in the order of HookPoint.
std::vector<std::string> NamesOf(HookPointSet points);

// The path of its gRPC method: "/runtime.v1alpha1.RuntimeHookService/PreCreateContainerHook".
std::string MethodOf(HookPoint point);

}  // namespace resmgr::hooks
