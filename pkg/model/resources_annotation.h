// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/kube/annotations.h"
#include "pkg/model/pod.h"
#include "pkg/model/resources.h"

namespace resmgr {

// kResourcesAnnotation of pods is written by the webhook, since CRI requests lack a part of a
// container's resource requirements. Its value is JSON:
//   {"initContainers": {NAME: REQS}, "containers": {NAME: REQS}}
// with REQS as Kubernetes' ResourceRequirements: {"limits": {...}, "requests": {...}}, resource
// names to quantities.

// The annotation's value for one container, init containers included. A limit without a request is
// the request too, as in Kubernetes. Other resources than cpu and memory are not read. nullopt when
// the annotation does not name the container. A container without limits and requests has
// requirements that are all 0. InvalidArgument, with container and resource, if the text has
// another form: any user who may create pods may write it.
StatusOr<std::optional<Requirements>> ParseResourcesAnnotation(std::string_view json,
                                                               std::string_view container_name);

// The container's resources other than cpu and memory, by their names: huge pages ("hugepages-2Mi")
// in bytes, extended resources ("example.com/device") in pieces. Limits count, and requests where
// there is no limit. Empty when the container is not named.
StatusOr<std::map<std::string, int64_t>> ParseOtherResources(std::string_view json,
                                                             std::string_view container_name);

// The section in which the annotation names a container; kNone if it does not.
enum class AnnotationSection { kNone, kInitContainers, kContainers };
StatusOr<AnnotationSection> FindSection(std::string_view json, std::string_view container_name);

// The class that Kubernetes gives a pod with these containers: Guaranteed if each has limits of cpu
// and memory that equal its requests, BestEffort if none has any, else Burstable. nullopt if no
// container is named.
StatusOr<std::optional<QosClass>> QosFromResourcesAnnotation(std::string_view json);

// Sets the pod's class: by its cgroup parent (qos.h), else by the annotation. If neither tells,
// the class is BestEffort until it is derived from the containers' requests (DerivedQos).
void SetQos(std::string_view cgroup_parent, Pod& pod);

}  // namespace resmgr
