// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/locality_hints.h"

#include <optional>
#include <string>

#include "pkg/cri/messages.h"

namespace resmgr {

std::vector<LocalityHint> FindHints(const DeviceLocality& locality, std::string_view config) {
  std::vector<LocalityHint> hints;
  const auto paths = DecodePaths(config);
  if (!paths.ok()) return hints;
  const auto add = [&hints](std::string_view kind, std::string_view path,
                            const std::optional<Locality>& place) {
    if (!place || hints.size() >= kMaxHints) return;
    hints.push_back(
        {.source = fmt::format("{} {}", kind, path), .cpus = place->cpus, .nodes = place->nodes});
  };
  for (size_t i = 0; i < paths->devices.size() && i < kMaxHints; ++i)
    add("device", paths->devices[i], locality.OfDevice(std::string(paths->devices[i])));
  for (size_t i = 0; i < paths->mounts.size() && i < kMaxHints; ++i) {
    const ContainerPaths::Mount& mount = paths->mounts[i];
    if (!MountTellsLocality(mount.container_path, mount.host_path, mount.read_only)) continue;
    add("mount", mount.container_path, locality.OfHostPath(std::string(mount.host_path)));
  }
  return hints;
}

}  // namespace resmgr
