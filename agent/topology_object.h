// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "agent/json_path.h"
#include "pkg/base/status.h"
#include "pkg/schedview/scheduler_view.h"

namespace resmgr::agent {

// The manager of fields under which this agent applies its objects.
inline constexpr std::string_view kTopologyManager = "cri-resmgr-agent";

// The path of the node's NodeResourceTopology (topology.node.k8s.io/v1alpha2), which has its name.
std::string TopologyPath(std::string_view node);

// Whether the view makes an object that schedulers read as it is meant: names of resources and
// pods, numbers that are not negative, not more available than there is, a distance to each zone.
// kInvalidArgument names the bad value.
Status CheckTopology(const SchedulerView& view);

// The object, for server-side apply. It is owned by the node of this UID, with which it vanishes.
// Zones are "node-0", "node-1", ... without gaps, since the plugin of the scheduler indexes lists
// with these numbers; an attribute has the number of the NUMA node. The fingerprint is of the pods
// with exclusive resources, so of all in the view.
Json TopologyObject(std::string_view node, std::string_view uid, const SchedulerView& view);

}  // namespace resmgr::agent
