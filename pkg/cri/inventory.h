// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr {

class HandlerAliases;

// Reads a runtime's replies to List and verbose Status calls. kInvalidArgument for malformed bytes.
// Used while synchronizing, so it uses the full protobuf library.

// Reads ListPodSandboxResponse. If the runtime's handlers have aliases, a pod gets its alias.
StatusOr<std::vector<SandboxFacts>> ReadPodList(std::string_view reply,
                                                const HandlerAliases* aliases = nullptr);
// Reads ListContainersResponse, which has no resources.
StatusOr<std::vector<ContainerFacts>> ReadContainerList(std::string_view reply);

std::string EncodeVerbosePodStatusRequest(const PodSandboxId& id);
std::string EncodeVerboseContainerStatusRequest(const ContainerId& id);

}  // namespace resmgr
