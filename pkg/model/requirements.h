// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/model/resources.h"

namespace resmgr {

// By quota and period; 0 is no limit.
MilliCpu CpuLimitOf(const LinuxResources& resources);

// The needs of a container, reckoned from a CRI message by undoing the kubelet's
// arithmetic:
//   cpu_request     from the shares; from the quota where the shares are at their upper limit
//   cpu_limit       from quota and period; Guaranteed: at least the request, and only above it
//                   where the limit is not the container's own but its pod's (KEP-2837)
//   memory_limit    as it stands
//   memory_request  Guaranteed: the limit; Burstable: from oom_score_adj when `memory_capacity` (of
//                   the node, 0 when not known) is given, to a thousandth of the capacity, rounded
//                   down and never above the limit; else 0. It is marked as estimated: the score of
//                   a sidecar comes from other containers of its pod, and kubelets differ
// Also for a resize: an UpdateContainerResources merged into what was requested before is newer
// than the annotation.
Requirements EstimateRequirements(const LinuxResources& resources, QosClass qos,
                                  Bytes memory_capacity);

// The class that Kubernetes would give a pod with this one container: Guaranteed where it has
// limits of CPU and memory and its CPU request, where it states one, is the limit; BestEffort where
// it asks for nothing; else Burstable.
QosClass DerivedQos(const LinuxResources& resources);

struct ResolvedRequirements {
  Requirements requirements;
  // The reason why an existing annotation was not used and the estimate was taken; OK otherwise.
  Status annotation;
  // The part of the annotation that the request contradicts, as the end of a reason; empty without
  // a contradiction.
  std::string note{};
};

// The needs of a new container of `pod` by its request, refined by the webhook's annotation
// (resources_annotation.h) of the pod. Any user who may create pods may write an annotation, and
// one from before a resize is old, so it only adds facts that the CRI does not carry: requests of
// 1m and 2m, of 256 CPUs and more, limits below 10m, memory requests, and which containers have no
// request of their own but their pod's. CPU and memory are taken from the request alone where the
// annotation contradicts its shares, quota or memory limit, a memory request where it is far above
// what the OOM score tells, and everything in a BestEffort pod. A request without CPU shares is no
// kubelet's and contradicts nothing.
ResolvedRequirements ResolveRequirements(const LinuxResources& resources, const Pod& pod,
                                         Bytes memory_capacity, std::string_view container_name);

// The reason why a container of a Guaranteed pod gets no exclusive CPUs, whatever it asks for: the
// CPUs are its pod's, as for the kubelet (KEP-2837). A clause for a placement's reason; empty when
// it may get some.
std::string_view WhyCpuIsOfPod(const Requirements& requirements);

// Whether the container may have asked for more than its `cpu_request`: shares at their upper limit
// stand for all requests from 256 CPUs on, and neither its limit nor an annotation says which. It
// asks for `cpu_request` at least, and for its limit at most.
bool MayAskForMore(const Container& container);
// In this case this note follows the request in a placement's reason.
inline constexpr std::string_view kMayAskForMoreNote = ", the most that CPU shares tell";

}  // namespace resmgr
