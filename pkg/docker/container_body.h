// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/base/string_map.h"
#include "pkg/model/container_details.h"
#include "pkg/model/resources.h"

namespace resmgr::docker {

// In microseconds: dockerd turns NanoCpus into a quota for this period.
inline constexpr int64_t kNanoCpusPeriod = 100'000;

// What the body of a request says that creates a container, read as dockerd reads it: names of
// fields without regard to case, of equal ones the last one, objects that come twice merged. As
// before version 1.18 of the API, the fields of HostConfig may stand beside it. dockerd 20.10 takes
// all of them where there is no HostConfig, else CpuShares, Memory, MemorySwap and CpusetCpus (or
// Cpuset) where HostConfig has 0 or "".
struct CreateBody {
  StringMap labels;
  bool has_host_config = false;
  LinuxResources resources;  // of HostConfig; what is 0 or "" there is not set
  std::string cgroup_parent;
  std::string runtime;  // of containerd or runc; "": dockerd's default
  // Environment, command, mounts, devices, image, limits, security.
  ContainerDetails details;
};

// kInvalidArgument: no JSON object, or a field of another type than dockerd takes.
StatusOr<CreateBody> ReadCreateBody(std::string_view body);
// The same of what an inspection tells: its Config and HostConfig, or "".
StatusOr<CreateBody> ReadInspectedBody(std::string_view config, std::string_view host_config);

// What the body of an update sets. Restart policies are no resources.
struct UpdateBody {
  bool has_resources = false;
  LinuxResources resources;
  std::optional<int64_t> memory_swap_limit{};  // bytes, of memory and swap together
};
StatusOr<UpdateBody> ReadUpdateBody(std::string_view body);

// One object with the fields of HostConfig.Resources: a part of an update's body, or what an
// inspection tells. Each field is read into what was there before.
Status ReadResources(std::string_view object, LinuxResources& resources);

}  // namespace resmgr::docker
