// SPDX-License-Identifier: Apache-2.0
#include "policies/static/static_options.h"

#include "pkg/config/config_section.h"

namespace resmgr {
namespace {

void Describe(ConfigSection& section, StaticOptions& options) {
  section.Map("Options", [&options](ConfigSection& map) {
    map.Bool("strict-cpu-reservation", options.strict_cpu_reservation,
             "shared containers do not run on the reserved CPUs either");
    map.Choice<bool>("pod-level-exclusive", {{"kubelet", false}, {"always", true}},
                     options.pod_level_exclusive,
                     "`always`: a container of a pod with pod-level resources gets exclusive CPUs "
                     "for its own request; `kubelet`: it shares, as in the kubelet");
    DescribeExclusiveOptions(map, options.exclusive);
  });
  DescribeAlignment(section, options.alignment);
  DescribeUndisturbed(section, options.undisturbed);
  section.Bool("RelaxedIsolation", options.exclusive.prefer_isolated,
               "kernel-isolated CPUs (`isolcpus`) are preferred for every exclusive container");
}

}  // namespace

StatusOr<StaticOptions> ReadStaticOptions(const ConfigNode* section, std::vector<ConfigKey>* keys) {
  return ReadSection<StaticOptions>(section, "policy.static", &Describe, keys);
}

}  // namespace resmgr
