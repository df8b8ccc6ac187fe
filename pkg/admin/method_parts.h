// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/admin/node_json.h"
#include "pkg/base/json.h"
#include "pkg/base/status.h"
#include "pkg/node/node_view.h"

namespace resmgr {

// Parts that the methods of the admin socket have in common. Pure functions of request and node.

// InvalidArgument where the request has no text of this key.
StatusOr<std::string> TextOf(const nlohmann::json& request, const char* key);
// "" where the request does not say; InvalidArgument for anything but text.
StatusOr<std::string> TextOrNone(const nlohmann::json& request, const char* key);
// False for anything but true.
bool IsTrue(const nlohmann::json& request, const char* key);
// By "namespace" and "selector", which may both be left out. InvalidArgument: they cannot be read.
StatusOr<ContainerChoice> ChoiceOf(const nlohmann::json& request);

// Whether hook servers or plugins look at calls.
bool StagesAtWork(const NodeView& node);
// FailedPrecondition while the null policy is active. It is the node's.
StatusOr<ResourceManager*> Manager(const NodeView& node);
// The reason for which the daemon knows no containers: "the runtime is not connected (…)"; "" if it
// knows some, or has looked and there are none.
std::string WhyNoneIsKnown(const NodeView& node);

}  // namespace resmgr
