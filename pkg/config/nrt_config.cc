// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/nrt_config.h"

namespace resmgr {

void DescribeNrt(ConfigSection& root, NrtConfig& config) {
  root.Map("nrt", [&config](ConfigSection& nrt) {
    nrt.Bool("Publish", config.publish,
             "`true`: the agent keeps the node's NodeResourceTopology equal to what the active "
             "policy would grant; `false`: it removes its own");
    nrt.Choice(
        "Alignment", {{"prefer", NrtAlignment::kPrefer}, {"refuse", NrtAlignment::kRefuse}},
        config.alignment,
        "`prefer`: schedulers score nodes by their NUMA nodes; `refuse`: they also leave out a "
        "node where a pod fits no single NUMA node, if the policy refuses containers that do not");
    nrt.Bool("Pools", config.pools,
             "`true`: the policy's pools or balloons are zones of the object, too, for people; "
             "schedulers do not read them");
  });
}

}  // namespace resmgr
