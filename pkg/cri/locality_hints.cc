// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/locality_hints.h"

#include <optional>

#include "pkg/cri/messages.h"

namespace resmgr {

std::vector<HintPath> HintPaths(std::string_view config) {
  std::vector<HintPath> hints;
  const auto paths = DecodePaths(config);
  if (!paths.ok()) return hints;
  for (size_t i = 0; i < paths->devices.size() && i < kMaxHints; ++i) {
    const std::string_view path = paths->devices[i];
    hints.push_back(
        {.device = true, .source = fmt::format("device {}", path), .path = std::string(path)});
  }
  for (size_t i = 0; i < paths->mounts.size() && i < kMaxHints; ++i) {
    const ContainerPaths::Mount& mount = paths->mounts[i];
    if (!MountTellsLocality(mount.container_path, mount.host_path, mount.read_only)) continue;
    hints.push_back({.device = false,
                     .source = fmt::format("mount {}", mount.container_path),
                     .path = std::string(mount.host_path)});
  }
  return hints;
}

std::vector<LocalityHint> FindHints(const DeviceLocality& locality,
                                    const std::vector<HintPath>& paths) {
  std::vector<LocalityHint> hints;
  for (const HintPath& path : paths) {
    const std::optional<Locality> place =
        path.device ? locality.OfDevice(path.path) : locality.OfHostPath(path.path);
    if (!place) continue;
    hints.push_back({.source = path.source, .cpus = place->cpus, .nodes = place->nodes});
    if (hints.size() == kMaxHints) break;
  }
  return hints;
}

}  // namespace resmgr
