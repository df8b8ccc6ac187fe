// SPDX-License-Identifier: Apache-2.0
#include "policies/static/static_options.h"

#include <string>

#include "pkg/config/map_reader.h"

namespace resmgr {

StatusOr<StaticOptions> ReadStaticOptions(const ConfigNode* section, ConfigNode* complete) {
  StaticOptions options;
  const ConfigNode nothing;
  MapReader reader(section == nullptr ? nothing : *section, "policy.static", complete);
  reader.Map("Options", [&options](MapReader& map) {
    map.Bool("strict-cpu-reservation", options.strict_cpu_reservation);
    std::string pod_level = options.pod_level_exclusive ? "always" : "kubelet";
    map.Choice("pod-level-exclusive", {"kubelet", "always"}, pod_level);
    options.pod_level_exclusive = pod_level == "always";
    ReadExclusiveOptions(map, options.exclusive);
  });
  ReadAlignment(reader, options.alignment);
  reader.Bool("RelaxedIsolation", options.exclusive.prefer_isolated);
  RESMGR_RETURN_IF_ERROR(reader.Finish());
  return options;
}

}  // namespace resmgr
