// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "pkg/base/status.h"

namespace resmgr::webhook {

struct PodPatch {
  std::string patch{};    // JSON patch (RFC 6902); empty: the pod stays as it is
  std::string warning{};  // why the pod gets no annotation; empty: it gets one, or needs none
};

// The patch that makes the pod's annotation say what the containers of `stored` ask for. Empty when
// it says so already, and for a mirror pod: a kubelet never reads the annotations of those.
//
// `stored` is the pod whose spec counts: `pod` itself, or the stored pod where the API server does
// not take over the spec of the request (subresource "status").
//
// An annotation of that name with another value is replaced; all other annotations stay. Where no
// value can be written (the spec cannot be read, or the annotations would together become larger
// than Kubernetes allows, so that the API server would refuse the pod), an annotation of that name
// is removed: whoever wrote the pod may have written it.
// InvalidArgument when `pod` is not a pod.
StatusOr<PodPatch> PatchOfPod(const nlohmann::json& pod, const nlohmann::json& stored);

}  // namespace resmgr::webhook
