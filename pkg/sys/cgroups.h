// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace resmgr {

// Whether the node has cgroup v2 alone (systemd calls that unified), so that containers' cgroups
// have its files. Looks at the type of the file system at /sys/fs/cgroup, which is the kernel's own
// memory and cannot hang. False where it is not mounted.
bool HasUnifiedCgroups();
// The same for another mount point; for tests.
bool HasUnifiedCgroups(const char* mount_point);

}  // namespace resmgr
