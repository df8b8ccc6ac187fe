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

// Reads a runtime's replies to List and verbose Status calls. kInvalidArgument for malformed bytes.
// Used while synchronizing, so it uses the full protobuf library.

// The listed pods, including those that are not ready.
struct PodList {
  std::vector<Pod> pods;
  std::set<PodSandboxId> stopped;  // those that are not ready
};
// Reads ListPodSandboxResponse. If the runtime's handlers have aliases, a pod gets its alias.
StatusOr<PodList> ReadPodList(std::string_view reply, const HandlerAliases* aliases = nullptr);
// Reads ListContainersResponse, which has no resources.
StatusOr<std::vector<RuntimeContainer>> ReadContainerList(std::string_view reply);

std::string EncodeVerbosePodStatusRequest(const PodSandboxId& id);
std::string EncodeVerboseContainerStatusRequest(const ContainerId& id);

}  // namespace resmgr
