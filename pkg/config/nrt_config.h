// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/config/config_section.h"

namespace resmgr {

// The policy that schedulers are told for a pod that fits no single NUMA node.
enum class NrtAlignment {
  kPrefer,  // such a pod counts as worse: best-effort
  kRefuse,  // this node is not for it: single-numa-node
};

// Configures what the node's NodeResourceTopology tells schedulers (docs/scheduler.md).
struct NrtConfig {
  bool publish = true;
  NrtAlignment alignment = NrtAlignment::kPrefer;
  bool pools = false;  // pools of the policy are told, too, for people

  friend bool operator==(const NrtConfig&, const NrtConfig&) = default;
};

// The module `nrt`.
void DescribeNrt(ConfigSection& root, NrtConfig& config);

}  // namespace resmgr
