// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

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

// The member of `object`, nullptr when it is absent or null. InvalidArgument when `object` is not
// an object, or the member is not one.
StatusOr<const nlohmann::json*> ObjectAt(const nlohmann::json& object, std::string_view name);

// The text of the member, empty when it is absent or null. InvalidArgument when `object` is not an
// object, or the member is not a string.
StatusOr<std::string> StringAt(const nlohmann::json& object, std::string_view name);

}  // namespace resmgr::webhook
