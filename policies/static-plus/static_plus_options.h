// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/allocator/alignment.h"
#include "pkg/allocator/exclusive_options.h"
#include "pkg/base/status.h"
#include "pkg/config/classes_config.h"
#include "pkg/config/config_key.h"
#include "pkg/config/config_node.h"
#include "pkg/policy/privileged_namespaces.h"

namespace resmgr {

// The section policy.static-plus; README.md beside this file explains each option.
struct StaticPlusOptions {
  // Containers that get the whole CPUs of their request exclusively, without an annotation.
  enum class Grant { kAlways, kGuaranteed, kAnnotated };
  Grant grant = Grant::kAlways;
  // Patterns with * and ?, beside "kube-system".
  std::vector<std::string> reserved_pool_namespaces{};
  PrivilegedNamespaces privileged{};
  ExclusiveOptions exclusive = {.prefer_isolated = true};
  Alignment alignment = Alignment::kPrefer;
  IsolationConfig undisturbed{};  // applied by pkg/classes
};

// `section` may be nullptr; `keys` gets the description of every option (ReadSection).
// kInvalidArgument "FILE:LINE: path: ..." for unknown keys, invalid values and options that exclude
// each other.
StatusOr<StaticPlusOptions> ReadStaticPlusOptions(const ConfigNode* section,
                                                  std::vector<ConfigKey>* keys = nullptr);

}  // namespace resmgr
