// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "pkg/base/ids.h"
#include "pkg/model/pod.h"
#include "pkg/model/resources.h"

namespace resmgr {

// How a kubelet makes CRI requests from a pod's manifest, the way back from which is
// requirements.h. In the Requirements here 0 stands for "not given"; a limit without a request is
// the request too, as the API server writes it.

// The class of a pod whose containers, init containers included, have these requirements:
// Guaranteed when each has limits for CPU and memory that equal its requests, BestEffort when none
// has anything (pkg/apis/core/v1/helper/qos in Kubernetes 1.33).
QosClass QosOf(std::span<const Requirements> containers);

// -997 for Guaranteed, 1000 for BestEffort; for Burstable 1000 - 1000 * request / capacity, within
// 3 and 999 (pkg/kubelet/qos/policy.go in Kubernetes 1.33). The capacity is the node's memory; 0
// counts as endless.
int64_t OomScoreAdj(QosClass qos, Bytes memory_request, Bytes memory_capacity);

// The resources of a CreateContainer or UpdateContainerResources request: shares from the request,
// quota and period from the limit, the memory limit, and the OOM score. Without a limit there is no
// quota. For a sidecar (KEP-753) `oom_request` is the larger one of its own memory request and the
// smallest of the pod's regular containers, for others their own.
LinuxResources KubeletResources(const Requirements& requirements, QosClass qos, Bytes oom_request,
                                Bytes memory_capacity);

// The cgroup parent of the pod's sandbox with the driver cgroupfs: "/kubepods/burstable/pod<UID>".
std::string CgroupParentOf(QosClass qos, const PodUid& uid);

}  // namespace resmgr
