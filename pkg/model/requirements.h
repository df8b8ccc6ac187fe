// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/model/resources.h"

namespace resmgr {

// The limit by quota and period; 0: unlimited.
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
  // Why an existing annotation was not used; OK if it was used, or there is none.
  Status annotation;
  // The part of the annotation that the request contradicts, as the end of a reason; empty if none.
  std::string note{};
};

// The needs of a new container of `pod` by its request, refined by the webhook's annotation
// (resources_annotation.h) of the pod. Any user who may create pods may write an annotation, and
// one from before a resize is old, so only facts that the CRI lacks are taken from it: requests of
// 1m and 2m, of 256 CPUs and more, limits below 10m, memory requests, and which containers have no
// request of their own but their pod's. The request alone counts for CPU and memory if the
// annotation contradicts its shares, quota or memory limit, for the memory request if the
// annotation's is far above the one that the OOM score allows, and for everything in a BestEffort
// pod. A request without CPU shares is not from a kubelet and contradicts nothing.
ResolvedRequirements ResolveRequirements(const LinuxResources& resources, const Pod& pod,
                                         Bytes memory_capacity, std::string_view container_name);

// Why a container of a Guaranteed pod gets no exclusive CPUs, whatever it asks for: its CPUs are
// its pod's, as for the kubelet (KEP-2837). A clause for a placement's reason; empty if the
// container may get some.
std::string_view WhyCpuIsOfPod(const Requirements& requirements);

// Whether the container may have asked for more than its `cpu_request`: the highest shares stand
// for all requests from 256 CPUs on, and neither the limit nor an annotation states the exact one.
// The container asks at least for `cpu_request`, and at most for its limit.
bool MayAskForMore(const Container& container);
// Follows the request in a placement's reason if MayAskForMore.
inline constexpr std::string_view kMayAskForMoreNote = ", the most that CPU shares tell";

// The reverse: how a kubelet makes CRI requests from a pod's manifest. In these Requirements 0
// stands for "not given"; a limit without a request is also the request, as the API server writes
// it.

// The class of a pod whose containers and init containers have these requirements: Guaranteed if
// each has limits of CPU and memory that equal its requests, BestEffort if none has any, else
// Burstable (pkg/apis/core/v1/helper/qos in Kubernetes 1.33).
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

// Pod-level resources (KEP-2837). A kubelet gives a container that has no CPU (memory) limit of its
// own the limit of its pod, and where it has no request either, CPU shares as if that limit were
// its request. So each such container seems to ask for all that the pod has. The pod's resources as
// a whole are in the requests about its sandbox (Pod::resources).

struct PodMember {
  const Container* container = nullptr;
  Requirements needs;  // needs of the container; replaced where the division changes them
  // The requests are known to be the container's own, so they stay, and only other containers'
  // requests are changed.
  bool fixed = false;
  // For a new attempt of a container: what the attempt before it needs or needed.
  const Requirements* former = nullptr;
};

// Bounds the requests of a pod's containers together by the pod's own. `members` are the containers
// that live or are about to, in the order of their creation, one for each name. If their requests
// together exceed the pod's, or one is known to have no request, then each container that seems to
// request all of the pod's resources has no request of its own, unless an annotation states one
// (Requirements::cpu_of_pod, memory_of_pod). One of these containers gets what the others leave of
// the pod's resources, and the rest of them get nothing: a new attempt of the one that had it
// before, the one that has it, or else the first. If the pod's resources are not known, nothing is
// changed.
void DivideAmong(const Pod& pod, std::span<PodMember> members);

}  // namespace resmgr
