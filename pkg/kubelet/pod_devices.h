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
// far as they tell near to which NUMA nodes the devices of a container are.

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

// One hint for each kind of device that the container has and whose nodes are told, in the order of
// the answer, at most kMaxHints (locality_hints.h): "pod-resources podresourceapi:vendor.com/gpu",
// with the nodes of all its devices as far as they are among `nodes`. `answer` is that of Get or of
// List. InvalidArgument: it is no protobuf.
StatusOr<std::vector<LocalityHint>> ReadPodDevices(std::string_view answer,
                                                   const PodContainer& container,
                                                   const NodeSet& nodes);

}  // namespace resmgr
