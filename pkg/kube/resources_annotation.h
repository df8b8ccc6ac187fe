// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/model/resources.h"

namespace resmgr {

// The pod annotation that the webhook writes, because CRI requests do not carry all of a
// container's resource requirements. Its value is JSON:
//   {"initContainers": {NAME: REQS}, "containers": {NAME: REQS}}
// with REQS as Kubernetes' ResourceRequirements: {"limits": {...}, "requests": {...}}, resource
// names to quantities.
inline constexpr std::string_view kResourcesAnnotation = "intel.com/resources";

// What the annotation's value says about one container, init containers included. A limit without a
// request is the request too, as in Kubernetes. Other resources than cpu and memory are not read.
// nullopt when it does not name the container, or with nothing in both limits and requests.
// InvalidArgument, naming container and resource, when the text is not as above: anybody who may
// create pods may write it.
StatusOr<std::optional<Requirements>> ParseResourcesAnnotation(std::string_view json,
                                                               std::string_view container_name);

}  // namespace resmgr
