// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/allocator/alignment.h"
#include "pkg/allocator/exclusive_options.h"
#include "pkg/base/status.h"
#include "pkg/config/classes_config.h"
#include "pkg/config/config_key.h"
#include "pkg/config/config_node.h"

namespace resmgr {

// The section policy.static; README.md beside this file explains each option.
struct StaticOptions {
  // Keeps shared containers off the reserved CPUs, too (the kubelet's option of that name,
  // KEP-4540).
  bool strict_cpu_reservation = false;
  // Containers of pods with pod-level resources (KEP-2837) may get exclusive CPUs. The kubelet
  // gives them none.
  bool pod_level_exclusive = true;
  ExclusiveOptions exclusive;
  Alignment alignment = Alignment::kPrefer;
  IsolationConfig undisturbed{};  // applied by pkg/classes
};

// `section` may be nullptr; `keys` gets the description of every option (ReadSection).
// kInvalidArgument "FILE:LINE: path: ..." for unknown keys, invalid values and options that exclude
// each other.
StatusOr<StaticOptions> ReadStaticOptions(const ConfigNode* section,
                                          std::vector<ConfigKey>* keys = nullptr);

}  // namespace resmgr
