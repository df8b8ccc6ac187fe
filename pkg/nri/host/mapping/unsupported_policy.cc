// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/unsupported_policy.h"

namespace resmgr::nri {
namespace {

// Without these a container may not work, or may be less secure than intended.
constexpr std::array kRefused{
    api::FIELD_MOUNTS,
    api::FIELD_OCI_HOOKS,
    api::FIELD_DEVICES,
    api::FIELD_CDI_DEVICES,
    api::FIELD_ARGS,
    api::FIELD_CGROUPS_PATH,
    api::FIELD_RLIMITS,
    api::FIELD_SECCOMP_POLICY,
    api::FIELD_NAMESPACE,
    api::FIELD_SYSCTL,
    api::FIELD_LINUX_NET_DEVICES,
};

}  // namespace

// Entries that cannot be removed are in every container anyway, or come from its image.
UnsupportedPolicy::UnsupportedPolicy() {
  additions_.fill(FailurePolicy::kIgnore);
  removals_.fill(FailurePolicy::kIgnore);
  for (const api::Field field : kRefused)
    additions_.at(static_cast<size_t>(field)) = FailurePolicy::kFail;
}

FailurePolicy UnsupportedPolicy::Of(const Shortfall& shortfall) const {
  return (shortfall.removal ? removals_ : additions_).at(static_cast<size_t>(shortfall.field));
}

void UnsupportedPolicy::Set(api::Field field, FailurePolicy policy) {
  additions_.at(static_cast<size_t>(field)) = policy;
  removals_.at(static_cast<size_t>(field)) = policy;
}

}  // namespace resmgr::nri
