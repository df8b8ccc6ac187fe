// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "pkg/base/status.h"

namespace resmgr::webhook {

// The value of the annotation `intel.com/resources` (pkg/model/resources_annotation.h) for a pod:
//   {"initContainers":{NAME:REQS},"containers":{NAME:REQS}}
// REQS has "limits" and "requests" where they are not empty, every resource name included, with
// quantities in Kubernetes' canonical text. Both maps are always there; names are sorted, so equal
// pods give equal text.
//
// Sidecars are init containers, as in Kubernetes. Ephemeral containers may not have resources and
// are left out. Requirements of the pod as a whole (spec.resources) belong to no container and are
// left out too: the kubelet puts their effect on a container into its CRI requests.
//
// kInvalidArgument, naming the field, when the value is not a pod or a quantity is malformed.
StatusOr<std::string> ResourcesOfPod(const nlohmann::json& pod);

}  // namespace resmgr::webhook
