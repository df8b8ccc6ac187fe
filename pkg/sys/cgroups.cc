// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/cgroups.h"

#include <linux/magic.h>
#include <sys/vfs.h>

namespace resmgr {

bool HasUnifiedCgroups() {
  return HasUnifiedCgroups("/sys/fs/cgroup");
}

bool HasUnifiedCgroups(const char* mount_point) {
  struct statfs status {};
  return statfs(mount_point, &status) == 0 && status.f_type == CGROUP2_SUPER_MAGIC;
}

}  // namespace resmgr
