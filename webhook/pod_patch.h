// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "pkg/base/status.h"

namespace resmgr::webhook {

struct PodPatch {
  std::string patch{};    // JSON patch (RFC 6902); empty: the pod stays unchanged
  std::string warning{};  // why the pod lacks an annotation; empty: it gets or needs none
};

// The patch that makes the pod's annotation show the resources of the containers of `stored`. Empty
// if the annotation has that value already, and for a mirror pod, whose annotations a kubelet never
// reads.
//
// `stored` is the pod whose spec counts: `pod` itself, or the stored pod if the API server does not
// take over the spec of the request (subresource "status").
//
// An annotation of that name with another value is replaced; all other annotations stay. If no
// value can be written (the spec cannot be read, or the annotations together would exceed
// Kubernetes' limit, so that the API server would refuse the pod), an annotation of that name is
// removed, since it may have been forged. kInvalidArgument when `pod` is not a pod.
StatusOr<PodPatch> PatchOfPod(const nlohmann::json& pod, const nlohmann::json& stored);

}  // namespace resmgr::webhook
