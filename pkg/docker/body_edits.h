// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/request.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr::docker {

// Whether the operation's request has a place for the field.
bool DockerHas(Operation operation, Field field);

// Whether this change, for which Docker has no field, may be left out with a warning because the
// container works without it. Any other change without a field makes its stage fail.
bool DockerLeavesOut(Operation operation, const FieldChange& change);

// The body of a request with the adjustment's changes; all other bytes stay. `body` was read before
// (container_body.h) and belongs to CreateContainer, RunPodSandbox or UpdateContainerResources.
// kInvalidArgument: a value that Docker cannot express. Pure function.
StatusOr<std::string> EditBody(Operation operation, std::string_view body,
                               const Adjustment& adjustment);

// The field that limits a container's CPU time. dockerd refuses an update that uses the other
// field.
enum class LimitedBy : uint8_t { kQuota, kNanoCpus };

// The body of an update that the daemon sends itself.
std::string MakeUpdateBody(const ResourceValues& values, LimitedBy limited_by = LimitedBy::kQuota);
StatusOr<std::string> MakeUpdateBody(const ResourceChange& change,
                                     LimitedBy limited_by = LimitedBy::kQuota);
// Whether dockerd refused an update because the container is LimitedBy::kNanoCpus.
bool WantsNanoCpus(const Status& refusal);

}  // namespace resmgr::docker
