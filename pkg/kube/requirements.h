// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/model/resources.h"

namespace resmgr {

// By quota and period; 0 is no limit.
MilliCpu CpuLimitOf(const LinuxResources& resources);

// What a container needs, reckoned from what a CRI message says, by undoing the kubelet's
// arithmetic:
//   cpu_request     from the shares; from the quota where the shares are at their upper limit
//   cpu_limit       Guaranteed: the request; else from quota and period
//   memory_limit    as it stands
//   memory_request  Guaranteed: the limit; Burstable: from oom_score_adj when `memory_capacity` (of
//                   the node, 0 when not known) is given, to a thousandth of the capacity, rounded
//                   down and never above the limit; else 0. It is marked as estimated: the score of
//                   a sidecar comes from other containers of its pod, and kubelets differ
// Also for a resize: an UpdateContainerResources merged into what was requested before is newer
// than the annotation.
Requirements EstimateRequirements(const LinuxResources& resources, QosClass qos,
                                  Bytes memory_capacity);

struct ResolvedRequirements {
  Requirements requirements;
  // Why an annotation that is there could not be used, and the estimate was taken; OK otherwise.
  Status annotation;
};

// For a new container: what the webhook's annotation (resources_annotation.h) of its pod says about
// it, else the estimate.
ResolvedRequirements ResolveRequirements(const LinuxResources& resources, QosClass qos,
                                         Bytes memory_capacity, const StringMap& pod_annotations,
                                         std::string_view container_name);

// Whether the container may have asked for more than its `cpu_request`: shares at their upper limit
// stand for all requests from 256 CPUs on, and neither its limit nor an annotation says which. It
// asks for `cpu_request` at least, and for its limit at most.
bool MayAskForMore(const Container& container);
// What then follows the request in a placement's reason.
inline constexpr std::string_view kMayAskForMoreNote = ", the most that CPU shares tell";

}  // namespace resmgr
