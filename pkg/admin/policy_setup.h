// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/base/status.h"
#include "pkg/config/config.h"
#include "pkg/policy/constraints.h"
#include "pkg/policy/policy.h"
#include "pkg/policy/registry.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The CPUs that the configuration leaves to policies on this machine. InvalidArgument when it does
// not fit.
StatusOr<PolicyCpus> CpusFor(const PolicyConfig& config, const Machine& machine);

// The active policy of the configuration, nullptr for the null policy. The machine must outlive it.
// InvalidArgument when options or CPU sets do not fit the machine.
StatusOr<std::unique_ptr<Policy>> MakePolicy(const PolicyConfig& config, const Machine& machine,
                                             const PolicyRegistry& policies);

// What the registry's policies add to the checks of a configuration's text, and the dump's rules.
ConfigChecks ChecksWith(const PolicyRegistry& policies);

}  // namespace resmgr
