// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/policy/registry.h"
#include "policies/exclusive/exclusive_policy.h"
#include "policies/static-plus/static_plus_options.h"

namespace resmgr {

// The whole CPUs of every container's request are exclusive, whatever the class of its pod; the
// fraction comes from the shared CPUs. System containers run on the reserved CPUs. Rules, options,
// annotations and differences from the policy of that name in CRI Resource Manager: README.md
// beside this file.
//
// The shared set is never empty: when all CPUs are granted it is the reserved ones, and without
// those an allocation that would take its last CPU is refused.
class StaticPlusPolicy : public ExclusivePolicy {
 public:
  // kInvalidArgument if the section is invalid or the CPUs leave none to share.
  static StatusOr<std::unique_ptr<Policy>> Create(const PolicyContext& context);

  std::string_view name() const override { return "static-plus"; }
  std::unique_ptr<Policy> Clone() const override;
  std::vector<std::string> Unheeded(const Pod& pod, const Container& container) const override;

 private:
  StaticPlusPolicy(const PolicyContext& context, const StaticPlusOptions& options);

  StaticPlusOptions options_;
  PinningRule pinning_;
};

PolicyFactory StaticPlusPolicyFactory();

}  // namespace resmgr
