// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/resmgr/runtime_client.h"

namespace resmgr {

class HandlerAliases;

// Reads what a runtime says about itself: replies of List and verbose Status calls. InvalidArgument
// when the bytes are not what they should be. Used while synchronizing, so plainly with the full
// protobuf library.

// Pods as they are listed, those that are not ready included.
struct PodList {
  std::vector<Pod> pods;
  std::set<PodSandboxId> stopped;  // which of them are not ready
};
// ListPodSandboxResponse. Where the runtime's handlers have aliases, a pod has the one that was
// named for it.
StatusOr<PodList> ReadPodList(std::string_view reply, const HandlerAliases* aliases = nullptr);
// ListContainersResponse, without resources.
StatusOr<std::vector<RuntimeContainer>> ReadContainerList(std::string_view reply);

// PodSandboxStatusResponse: adds the cgroup parent (and so the QoS class) to the pod, and what it
// has as a whole. containerd tells them in info.config.linux (cgroup_parent, overhead, resources),
// CRI-O in annotations of info.runtimeSpec (io.kubernetes.cri-o.CgroupParent, .PodLinuxOverhead,
// .PodLinuxResources).
Status AddPodStatus(std::string_view reply, Pod& pod);
// ContainerStatusResponse: adds when it was started and the resources in force, from
// ContainerStatus.resources where the runtime fills it and else from the OCI specification in info.
Status AddContainerStatus(std::string_view reply, RuntimeContainer& container);

std::string EncodeVerbosePodStatusRequest(const PodSandboxId& id);
std::string EncodeVerboseContainerStatusRequest(const ContainerId& id);

}  // namespace resmgr
