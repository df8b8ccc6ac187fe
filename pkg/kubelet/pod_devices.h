// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// The messages of the kubelet's v1.PodResourcesLister (Kubernetes' podresources/v1/api.proto), as
// far as they have the NUMA nodes of a container's devices.

inline constexpr std::string_view kGetPodResources = "/v1.PodResourcesLister/Get";
inline constexpr std::string_view kListPodResources = "/v1.PodResourcesLister/List";

// The names by which the kubelet knows a container.
struct PodContainer {
  std::string namespace_name{};
  std::string pod{};
  std::string container{};
};

// GetPodResourcesRequest; ListPodResourcesRequest has no fields.
std::string GetPodResourcesRequest(const PodContainer& container);

// One hint for each kind of the container's devices with known nodes, in the order of the answer,
// at most kMaxHints (locality_hints.h): "pod-resources podresourceapi:vendor.com/gpu", with those
// nodes of all its devices that are among `nodes`. `answer` is the answer of Get or of List.
// InvalidArgument: it is not protobuf.
StatusOr<std::vector<LocalityHint>> ReadPodDevices(std::string_view answer,
                                                   const PodContainer& container,
                                                   const NodeSet& nodes);

}  // namespace resmgr
