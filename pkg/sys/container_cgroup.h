// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// Finds containers' cgroups, on cgroup v1 (a hierarchy for each controller) and on v2. It reads
// from the kernel's memory, which takes time: not for the event loop.

// Whether cgroup v2 alone is mounted there, by its files: tests have directories in its place.
bool IsUnifiedMount(const std::string& mount_point);

// InvalidArgument: the parent or the id cannot be a name of a cgroup.
Status CheckCgroupNames(std::string_view parent, std::string_view id);

// The directory of the container with this whole id in the hierarchy of the controller; "" is the
// one of all. `cgroup_parent` is its pod's as the kubelet names it: a path, or a slice of systemd;
// empty: the runtime's default, which is looked for. The names have been checked.
std::optional<std::string> FindContainerCgroup(const std::string& mount_point,
                                               std::string_view controller,
                                               std::string_view cgroup_parent, std::string_view id);

// The NotFound error for a container without a cgroup.
Status NoContainerCgroup(const std::string& mount_point, std::string_view cgroup_parent,
                         std::string_view id);

}  // namespace resmgr
