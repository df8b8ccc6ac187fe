// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr {

class HandlerAliases;

// Reads facts for stages from the replies of verbose Status calls. kInvalidArgument for malformed
// bytes; missing fields stay empty.
//
// Most of them are JSON text in the reply's info, which no standard describes. containerd 1.6 to
// 2.1 and CRI-O 1.2x have in common: `pid`, `sandboxID` (of containers) and `runtimeSpec`, the OCI
// specification as given to the OCI runtime; for images `imageSpec`, the OCI configuration.
// containerd also has the CRI request, as `config`.

// Reads PodSandboxStatusResponse.
StatusOr<SandboxFacts> ReadSandboxFacts(std::string_view reply);

// Reads ContainerStatusResponse. `details` come from the OCI specification: `command` is the whole
// argument vector, mounts are those with host paths. Devices come from the request if the runtime
// reports it: the specification has only their numbers. Only containerd has
// `requested_environment`.
StatusOr<ContainerFacts> ReadContainerFacts(std::string_view reply);

// Adds the facts of a verbose reply to a listed object, which keeps its listed id and names.
Status AddFacts(std::string_view reply, SandboxFacts& listed);
Status AddFacts(std::string_view reply, ContainerFacts& listed);

// Reads ImageStatusResponse for the image with this reference. kNotFound: the runtime does not have
// it.
StatusOr<ImageFacts> ReadImageFacts(std::string_view reply, std::string_view reference);

// Reads the replies to List calls. Used while synchronizing, so it uses the full protobuf library.

// Reads ListPodSandboxResponse. If the runtime's handlers have aliases, a pod gets its alias.
StatusOr<std::vector<SandboxFacts>> ReadPodList(std::string_view reply,
                                                const HandlerAliases* aliases = nullptr);
// Reads ListContainersResponse, which has no resources.
StatusOr<std::vector<ContainerFacts>> ReadContainerList(std::string_view reply);

// Encodes requests (CRI runtime.v1; v1alpha2 has the same numbers).
std::string EncodeVerboseImageStatusRequest(std::string_view reference);
std::string EncodeUpdateRequest(const ContainerId& id, const ResourceChange& change);
std::string EncodeVerbosePodStatusRequest(const PodSandboxId& id);
std::string EncodeVerboseContainerStatusRequest(const ContainerId& id);

}  // namespace resmgr
