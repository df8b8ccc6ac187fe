// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/operation.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr::docker {

// Whether the request of this operation has a place for the field.
bool DockerHas(Operation operation, Field field);

// Whether a container does as well without this change, for which Docker has no field: it is left
// out with a warning. Everything else that Docker has no field for fails the stage that wants it.
bool DockerLeavesOut(Operation operation, const FieldChange& change);

// The body of a request with what the adjustment changes; every byte that it does not change stays.
// `body` was read (container_body.h): CreateContainer, RunPodSandbox or UpdateContainerResources.
// kInvalidArgument: a value that cannot be written so. Pure function.
StatusOr<std::string> EditBody(Operation operation, std::string_view body,
                               const Adjustment& adjustment);

// The field that limits a container's CPU time. dockerd refuses an update that limits it by the
// other field.
enum class LimitedBy : uint8_t { kQuota, kNanoCpus };

// The bodies of updates of our own.
std::string MakeUpdateBody(const ResourceValues& values, LimitedBy limited_by = LimitedBy::kQuota);
StatusOr<std::string> MakeUpdateBody(const ResourceChange& change,
                                     LimitedBy limited_by = LimitedBy::kQuota);
// dockerd refused an update because the container is LimitedBy::kNanoCpus.
bool WantsNanoCpus(const Status& refusal);

}  // namespace resmgr::docker
