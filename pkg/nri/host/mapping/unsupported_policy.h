// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "pkg/api/nri.pb.h"
#include "pkg/base/failure_policy.h"
#include "pkg/nri/host/mapping/resource_mapping.h"

namespace resmgr::nri {

// The policy for a plugin's changes that the CRI cannot express: the creation is refused (kFail),
// or goes on without them, with a warning (kIgnore). docs/nri-plugins.md has the defaults and their
// reasons. A value type.
class UnsupportedPolicy {
 public:
  UnsupportedPolicy();

  FailurePolicy Of(const Shortfall& shortfall) const;
  // Applies to a whole field; NONE stands for rules for devices.
  void Set(api::Field field, FailurePolicy policy);

 private:
  using Policies = std::array<FailurePolicy, api::Field_ARRAYSIZE>;

  Policies additions_;
  Policies removals_;
};

}  // namespace resmgr::nri
