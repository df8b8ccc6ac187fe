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
  Requirements needs;  // of the container; changed where it is to have others
  // Its requests are known to be its own: only what others leave may change.
  bool fixed = false;
};

// Bounds what the containers of a pod have together by what the pod has. `members`: those that live
// or are about to, in the order of their creation, one for each name. Where their own requests
// exceed the pod's, or one is known to have none, those that ask for all of the pod's, and for
// which no annotation says that this is theirs, have none of their own (Requirements::cpu_of_pod,
// memory_of_pod). The first of these has what the others leave of the pod's, and the rest nothing:
// together they ask for no more than the pod. Where the pod's resources are not known, nothing is
// changed.
void DivideAmong(const Pod& pod, std::span<PodMember> members);

}  // namespace resmgr
