// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "pkg/api/nri.pb.h"
#include "pkg/base/failure_policy.h"
#include "pkg/nri/host/resource_mapping.h"

namespace resmgr::nri {

// What happens where a plugin wants of a container what the CRI cannot express: the creation is
// refused (kFail), or goes on without it, with a warning (kIgnore). docs/nri-plugins.md has the
// defaults and their reasons. A value type.
class UnsupportedPolicy {
 public:
  UnsupportedPolicy();

  FailurePolicy Of(const Shortfall& shortfall) const;
  // For all of a field; NONE stands for rules for devices.
  void Set(api::Field field, FailurePolicy policy);

 private:
  using Policies = std::array<FailurePolicy, api::Field_ARRAYSIZE>;

  Policies additions_;
  Policies removals_;
};

}  // namespace resmgr::nri
