// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/cgroups.h"

#include <climits>

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

bool CanBeCgroup(std::string_view path) {
  if (path.size() >= PATH_MAX || path.find('\0') != std::string_view::npos) return false;
  return fmt::format("/{}/", path).find("/../") == std::string::npos;
}

std::string SlicePath(std::string_view slice) {
  const bool root = slice.starts_with('-');
  if (root || !IsSlice(slice) || slice.find('/') != std::string_view::npos)
    return std::string(slice);
  const std::string_view name = slice.substr(0, slice.size() - kSlice.size());
  std::string path;
  for (size_t dash = name.find('-'); dash != std::string_view::npos;
       dash = name.find('-', dash + 1)) {
    path += fmt::format("{}{}/", name.substr(0, dash), kSlice);
    // Longer with each dash.
    if (!CanBeCgroup(path)) return std::string(slice);
  }
  return path.append(slice);
}

}  // namespace resmgr
