// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/base/string_map.h"
#include "pkg/model/container_details.h"
#include "pkg/model/resources.h"

namespace resmgr::docker {

// Microseconds: dockerd turns NanoCpus into a quota for this period.
inline constexpr int64_t kNanoCpusPeriod = 100'000;

// The body of a request that creates a container, read as dockerd reads it: field names are
// compared without case, the last of equal ones counts, repeated objects are merged. As before
// version 1.18 of the API, the fields of HostConfig may be beside it. dockerd 20.10 takes all of
// them if there is no HostConfig, else CpuShares, Memory, MemorySwap and CpusetCpus (or Cpuset) if
// HostConfig has 0 or "" for them.
struct CreateBody {
  StringMap labels;
  bool has_host_config = false;
  LinuxResources resources;  // from HostConfig; 0 and "" mean unset
  std::string cgroup_parent;
  std::string runtime;  // a runtime of containerd or runc; "": dockerd's default
  // Environment, command, mounts, devices, image, limits, security.
  ContainerDetails details;
};

// Limit of the fields of a request and its HostConfig together, of which dockerd has about a
// hundred. Each is compared with all that are read.
inline constexpr size_t kMostBodyFields = 1024;

// kInvalidArgument: not a JSON object, too many fields, or a field has a type that dockerd refuses.
StatusOr<CreateBody> ReadCreateBody(std::string_view body);
// Reads the Config and HostConfig of an inspection, which may both be "", in the same way.
StatusOr<CreateBody> ReadInspectedBody(std::string_view config, std::string_view host_config);

// The fields that the body of an update sets. Restart policies do not count as resources.
struct UpdateBody {
  bool has_resources = false;
  LinuxResources resources;
  std::optional<int64_t> memory_swap_limit{};  // bytes, memory and swap together
};
StatusOr<UpdateBody> ReadUpdateBody(std::string_view body);

// Reads an object with the fields of HostConfig.Resources: a part of an update's body, or of an
// inspection. Fields that the object does not name keep their former values.
Status ReadResources(std::string_view object, LinuxResources& resources);

}  // namespace resmgr::docker
