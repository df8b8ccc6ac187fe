// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/string_map.h"

namespace resmgr {

// One annotation that applies to a container.
struct ScopedAnnotation {
  std::string_view key;  // as written on the pod, for messages
  std::string_view value;
  bool old_form = false;  // the value is for all containers, or a map from containers to values
};

// Finds the annotation of a pod with the value of `key` ("prefer-isolated-cpus") for one of its
// containers. The narrowest scope wins, whichever domain it is in; within a scope the first domain
// wins:
//   KEY.DOMAIN/container.NAME, then KEY.DOMAIN/pod, then KEY.DOMAIN
//   DOMAIN: cri-resource-manager.intel.com, then resource-policy.nri.io
// The last one is the old form of cri-resource-manager, cri-resource-manager.intel.com/KEY.
// ReadAnnotation (pkg/config/pod_annotation.h) interprets the value. Views refer to `annotations`.
std::optional<ScopedAnnotation> FindAnnotation(const StringMap& annotations, std::string_view key,
                                               std::string_view container_name);

// Whether the key, in any form, is in one of the domains that policies read.
bool IsForPolicies(std::string_view key);

}  // namespace resmgr
