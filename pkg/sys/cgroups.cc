// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/cgroups.h"

#include <algorithm>
#include <climits>
#include <memory>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr std::string_view kSlice = ".slice";

constexpr std::string_view kScope = ".scope";
// Conmon, which watches a container of CRI-O, has its own cgroup beside the container's.
constexpr std::string_view kMonitor = "crio-conmon-";
// Limit of entries: a pod's cgroup has a directory for each container, but others may add more.
constexpr int kMostEntries = 4096;

bool Exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

// Whether the name is that of the container's cgroup: "ID", "PREFIX-ID.scope", "PREFIX:ID".
bool NamesContainer(std::string_view entry, std::string_view id) {
  if (entry.starts_with(kMonitor)) return false;
  if (entry.ends_with(kScope)) entry.remove_suffix(kScope.size());
  if (!entry.ends_with(id)) return false;
  entry.remove_suffix(id.size());
  return entry.empty() || entry.back() == '-' || entry.back() == ':';
}

// The path without redundant slashes, so that each path has one form for comparisons.
std::string PlainPath(std::string_view root, std::string_view below) {
  std::string path(root);
  for (const std::string_view part : Split(below, '/'))
    if (!part.empty()) path.append("/").append(part);
  return path;
}

std::optional<std::string> FindBelow(const std::string& parent, std::string_view id) {
  const std::string plain = fmt::format("{}/{}", parent, id);
  if (Exists(plain)) return plain;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(parent.c_str()), &closedir);
  if (directory == nullptr) return std::nullopt;
  for (int i = 0; i < kMostEntries; ++i) {
    const dirent* const entry = readdir(directory.get());
    if (entry == nullptr) break;
    if (NamesContainer(entry->d_name, id)) return fmt::format("{}/{}", parent, entry->d_name);
  }
  return std::nullopt;
}

// Whether the name is that of some container's own cgroup: a search does not look below it, since
// the container's processes may make cgroups there, under any names.
bool IsContainers(std::string_view entry) {
  constexpr size_t kIdSize = 64;
  if (entry.ends_with(kScope)) entry.remove_suffix(kScope.size());
  if (entry.size() < kIdSize) return false;
  return entry.substr(entry.size() - kIdSize).find_first_not_of("0123456789abcdef") ==
         std::string_view::npos;
}

// Searches the upper levels of the hierarchy: a runtime puts containers that are created without a
// parent into a default one, which may be configured: "/docker", "/system.slice", "/k8s.io". The
// match nearest to the root counts.
std::optional<std::string> FindAnywhere(const std::string& root, std::string_view id) {
  constexpr int kDepth = 4;
  constexpr size_t kMostDirectories = 4096;
  std::vector<std::string> level = {root};
  for (int depth = 0; depth < kDepth && !level.empty(); ++depth) {
    std::vector<std::string> next;
    for (const std::string& parent : level) {
      const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(parent.c_str()), &closedir);
      if (directory == nullptr) continue;
      for (int i = 0; i < kMostEntries; ++i) {
        const dirent* const entry = readdir(directory.get());
        if (entry == nullptr) break;
        const std::string_view name = entry->d_name;
        if (entry->d_type != DT_DIR || name.starts_with('.')) continue;
        std::string path = fmt::format("{}/{}", parent, name);
        if (NamesContainer(name, id)) return path;
        if (!IsContainers(name) && next.size() < kMostDirectories) next.push_back(std::move(path));
      }
    }
    std::ranges::sort(next);
    level = std::move(next);
  }
  return std::nullopt;
}

}  // namespace

bool IsUnifiedMount(const std::string& mount_point) {
  return Exists(mount_point + "/cgroup.controllers");
}

bool HasUnifiedCgroups() {
  return IsUnifiedMount("/sys/fs/cgroup");
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
    // Checked each time, since each dash of the name makes the path longer.
    if (!CanBeCgroup(path)) return std::string(slice);
  }
  return path.append(slice);
}

Status CheckCgroupNames(std::string_view parent, std::string_view id) {
  if (id.empty() || id.find('/') != std::string_view::npos || id.starts_with('.')) {
    return InvalidArgument("\"{}\" can be no cgroup", Printable(id, 128));
  }
  if (!CanBeCgroup(parent)) {
    return InvalidArgument("\"{}\" can be no cgroup", Printable(parent, 256));
  }
  return OkStatus();
}

std::optional<std::string> FindContainerCgroup(const std::string& mount_point,
                                               std::string_view controller,
                                               std::string_view cgroup_parent,
                                               std::string_view id) {
  const std::string root =
      controller.empty() ? mount_point : fmt::format("{}/{}", mount_point, controller);
  if (cgroup_parent.empty()) return FindAnywhere(root, id);
  auto found = FindBelow(PlainPath(root, SlicePath(cgroup_parent)), id);
  // If the kubelet names slices and the runtime does not use systemd, the directory is
  // "SLICE:PREFIX:ID".
  return found || !IsSlice(cgroup_parent) ? found : FindBelow(root, id);
}

Status NoContainerCgroup(const std::string& mount_point, std::string_view cgroup_parent,
                         std::string_view id) {
  if (cgroup_parent.empty()) {
    return NotFound(
        "its cgroup is not found: the runtime tells no cgroup parent of its pod, and there is no "
        "cgroup of {} in {} where runtimes put it by default",
        id, mount_point);
  }
  return NotFound("there is no cgroup of {} below {} in {}", id, cgroup_parent, mount_point);
}

}  // namespace resmgr
