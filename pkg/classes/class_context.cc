// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_context.h"

#include <fmt/format.h>

#include "pkg/sys/cgroups.h"

namespace resmgr {

std::string FindSubjectCgroup(std::string_view host_root, std::string_view controller,
                              const std::string& cgroup_parent, const std::string& id) {
  constexpr std::string_view kMount = "/sys/fs/cgroup";
  while (host_root.ends_with('/'))
    host_root.remove_suffix(1);
  const std::string mount = fmt::format("{}{}", host_root, kMount);
  if (!CheckCgroupNames(cgroup_parent, id).ok() || IsUnifiedMount(mount) != controller.empty())
    return "";
  const auto found = FindContainerCgroup(mount, controller, cgroup_parent, id);
  if (!found) return "";
  // A parent may begin or end with slashes.
  std::string path = found->substr(host_root.size() + 1);
  for (size_t twice = path.find("//"); twice != std::string::npos; twice = path.find("//", twice))
    path.erase(twice, 1);
  return path;
}

}  // namespace resmgr
