// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// Whether cgroup v2 alone is mounted at this directory (systemd calls that unified), so that
// containers' cgroups have its files. Looks for a file that only the root of cgroup v2 has: it is
// kernel memory and cannot hang, and tests use plain directories.
bool IsUnifiedMount(const std::string& mount_point);
// The same for the usual mount point.
bool HasUnifiedCgroups();

// Whether a cgroup's name or path ends with the name of a slice of systemd.
bool IsSlice(std::string_view cgroup);

// Whether a cgroup can have this path: it has no "..", and the kernel takes paths of this length.
// Clients of a runtime may name any text as the parent of a container.
bool CanBeCgroup(std::string_view path);

// The path of a slice below the mount point. A slice lies in the slices that its name begins with:
// "a-b.slice" is "a.slice/a-b.slice". A text that is not the name of a slice stays unchanged, and
// so do the root of all slices, "-.slice", and a slice whose path cannot be a cgroup's.
std::string SlicePath(std::string_view slice);

// Finds containers' cgroups, on cgroup v1 (a hierarchy for each controller) and on v2. It reads
// from the kernel's memory, which takes time: not for the event loop.

// InvalidArgument: the parent or the id cannot be a name of a cgroup.
Status CheckCgroupNames(std::string_view parent, std::string_view id);

// The directory of the container with this whole id in the hierarchy of the controller; "" is the
// hierarchy of cgroup v2. `cgroup_parent` is its pod's cgroup as the kubelet names it: a path, or a
// slice of systemd. If it is empty, the runtime's default parent is searched for. The names must
// have been checked.
std::optional<std::string> FindContainerCgroup(const std::string& mount_point,
                                               std::string_view controller,
                                               std::string_view cgroup_parent, std::string_view id);

// The NotFound error for a container without a cgroup.
Status NoContainerCgroup(const std::string& mount_point, std::string_view cgroup_parent,
                         std::string_view id);

}  // namespace resmgr
