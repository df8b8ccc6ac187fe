// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "pkg/base/status.h"

namespace resmgr::webhook {

// The JSON patch (RFC 6902) that gives the pod its annotation; empty when the pod already says the
// same, or is a mirror pod: a kubelet never looks at the annotations of those.
//
// An annotation of that name with another value is overwritten, all others are left alone.
// InvalidArgument when the pod is not one, and when the annotations would together become larger
// than Kubernetes allows, since such a patch would make the API server refuse the pod.
StatusOr<std::string> PatchOfPod(const nlohmann::json& pod);

}  // namespace resmgr::webhook
