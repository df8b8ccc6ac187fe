// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/model/resources.h"

namespace resmgr {

// Pod-level resources (KEP-2837). A kubelet gives a container that has no CPU (memory) limit of its
// own the limit of its pod, and where it has no request either, CPU shares as if that limit were
// its request. Each such container so asks for all that the pod has. The pod's resources as a whole
// are in the requests about its sandbox (Pod::resources).

// Whether the shares and the quota are those that a kubelet derives from the pod's limit alone.
bool HasAllCpuOf(const Pod& pod, const LinuxResources& resources);

struct PodMember {
  const Container* container = nullptr;
  Requirements needs;  // needs of the container; replaced where the division changes them
  // Its requests are known to be its own, so that they stay and only the rest for others changes.
  bool fixed = false;
};

// Bounds the requests of a pod's containers together by the pod's own. `members` are the containers
// that live or are about to, in the order of their creation, one for each name. If their requests
// exceed the pod's, or one is known to have none, then containers that request all of the pod's
// resources have no request of their own, unless an annotation says that it is theirs
// (Requirements::cpu_of_pod, memory_of_pod). The first of these gets the remainder that the others
// leave, and the rest get nothing, so that together they request no more than the pod. If the pod's
// resources are not known, nothing is changed.
void DivideAmong(const Pod& pod, std::span<PodMember> members);

}  // namespace resmgr
