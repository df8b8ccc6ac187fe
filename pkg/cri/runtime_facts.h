// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr {

// Reads what stages want to know from the replies of verbose Status calls. InvalidArgument when the
// bytes are not what they should be; what a runtime leaves out stays empty.
//
// Most of it is JSON text in the reply's info, which no standard describes. containerd 1.6 to 2.1
// and CRI-O 1.2x have in common: `pid`, `sandboxID` (of containers) and `runtimeSpec`, the OCI
// specification as it was given to the OCI runtime; of images `imageSpec`, the OCI configuration.
// containerd tells the CRI request, too, as `config`.

// PodSandboxStatusResponse.
StatusOr<SandboxFacts> ReadSandboxFacts(std::string_view reply);

// ContainerStatusResponse. `details` is of the OCI specification: `command` is the whole argument
// vector, mounts are those of paths of the host. Devices come from the request where the runtime
// tells it: the specification has only their numbers. `requested_environment` is told by containerd
// alone.
StatusOr<ContainerFacts> ReadContainerFacts(std::string_view reply);

// ImageStatusResponse of the image with this reference. NotFound: the runtime does not have it.
StatusOr<ImageFacts> ReadImageFacts(std::string_view reply, std::string_view reference);

// Requests (CRI runtime.v1; the numbers of v1alpha2 are the same).
std::string EncodeVerboseImageStatusRequest(std::string_view reference);
std::string EncodeUpdateRequest(const ContainerId& id, const ResourceChange& change);

}  // namespace resmgr
