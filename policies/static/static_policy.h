// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "pkg/policy/registry.h"
#include "policies/exclusive/exclusive_policy.h"
#include "policies/static/static_options.h"

namespace resmgr {

// The kubelet's static CPU manager policy: a container of a Guaranteed pod that requests whole CPUs
// gets that many exclusive ones; all other containers run on the shared set, which is the rest
// (pkg/kubelet/cm/cpumanager in Kubernetes 1.33; KEP-3570). Rules, options and differences from the
// kubelet: README.md beside this file.
//
// The shared set is never empty: an allocation that would take its last CPU is refused.
class StaticPolicy : public ExclusivePolicy {
 public:
  // kInvalidArgument if the section is invalid or the CPUs leave none to share.
  static StatusOr<std::unique_ptr<Policy>> Create(const PolicyContext& context);

  std::string_view name() const override { return "static"; }
  std::unique_ptr<Policy> Clone() const override;

 private:
  StaticPolicy(const PolicyContext& context, const StaticOptions& options);
};

PolicyFactory StaticPolicyFactory();

}  // namespace resmgr
