// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/cgroups.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>

namespace resmgr {
namespace {

constexpr std::string_view kSlice = ".slice";

}  // namespace

bool HasUnifiedCgroups() {
  return HasUnifiedCgroups("/sys/fs/cgroup");
}

bool HasUnifiedCgroups(const char* mount_point) {
  struct statfs status {};
  return statfs(mount_point, &status) == 0 && status.f_type == CGROUP2_SUPER_MAGIC;
}

bool IsSlice(std::string_view cgroup) {
  return cgroup.ends_with(kSlice);
}

std::string SlicePath(std::string_view slice) {
  if (!IsSlice(slice) || slice.find('/') != std::string_view::npos) return std::string(slice);
  const std::string_view name = slice.substr(0, slice.size() - kSlice.size());
  std::string path;
  for (size_t dash = name.find('-'); dash != std::string_view::npos;
       dash = name.find('-', dash + 1)) {
    path += fmt::format("{}{}/", name.substr(0, dash), kSlice);
  }
  return path.append(slice);
}

}  // namespace resmgr
