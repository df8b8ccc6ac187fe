// SPDX-License-Identifier: Apache-2.0
#include "pkg/pipeline/locality_hints.h"

#include <optional>

#include <fmt/format.h>

namespace resmgr {

std::vector<HintPath> HintPaths(const ContainerDetails& details) {
  std::vector<HintPath> hints;
  for (size_t i = 0; i < details.devices.size() && i < kMaxHints; ++i) {
    const std::string& path = details.devices[i].host_path;
    hints.push_back({.device = true, .source = fmt::format("device {}", path), .path = path});
  }
  for (size_t i = 0; i < details.mounts.size() && i < kMaxHints; ++i) {
    const Mount& mount = details.mounts[i];
    if (!MountTellsLocality(mount.container_path, mount.host_path, mount.read_only)) continue;
    hints.push_back({.device = false,
                     .source = fmt::format("mount {}", mount.container_path),
                     .path = mount.host_path});
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
