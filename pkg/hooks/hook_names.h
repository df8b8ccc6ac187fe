// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/hooks/hook_point.h"

namespace resmgr::hooks {

// The name in hook files: "PreCreateContainer".
std::string_view NameOf(HookPoint point);
// nullopt for an unknown name, and for kInertPoint. Case-sensitive.
std::optional<HookPoint> HookPointOf(std::string_view name);

// A name that koordlet may list although RuntimeHookService has no method for it: no server is ever
// asked there.
inline constexpr std::string_view kInertPoint = "PreRemoveRunPodSandbox";

// The names of the set's hook points, in the order of HookPoint.
std::vector<std::string> NamesOf(HookPointSet points);

// The path of its gRPC method: "/runtime.v1alpha1.RuntimeHookService/PreCreateContainerHook".
std::string MethodOf(HookPoint point);

}  // namespace resmgr::hooks
