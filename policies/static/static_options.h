// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"

namespace resmgr {

// The section policy.static. Names and meaning of the options are the kubelet's (CPU Manager policy
// options), those of the last three are ours; README.md beside this file explains each.
struct StaticOptions {
  bool full_pcpus_only = false;
  bool distribute_cpus_across_numa = false;
  bool distribute_cpus_across_cores = false;
  bool strict_cpu_reservation = false;
  bool prefer_align_cpus_by_uncorecache = false;
  bool lift_quota = true;          // exclusive containers run without CFS quota
  bool relaxed_isolation = false;  // kernel-isolated CPUs before ordinary ones, for everybody
};

// `section` may be nullptr. InvalidArgument "FILE:LINE: path: ..." for unknown keys, wrong values
// and options that exclude each other.
StatusOr<StaticOptions> ReadStaticOptions(const ConfigNode* section);

}  // namespace resmgr
