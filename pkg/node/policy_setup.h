// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

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
// `runtimes` says which pods' containers it binds.
// InvalidArgument when options or CPU sets do not fit the machine.
StatusOr<std::unique_ptr<Policy>> MakePolicy(const PolicyConfig& config,
                                             const RuntimesConfig& runtimes, const Machine& machine,
                                             const PolicyRegistry& policies);

// What the registry's policies add to the checks of a configuration's text, and the dump's rules.
ConfigChecks ChecksWith(const PolicyRegistry& policies);

// The configuration with every option of its active policy, at its value or default.
Config WithDefaults(Config config, const PolicyRegistry& policies);

// As YAML in comments: the options of the policies that are not active, with their defaults; ""
// where there are none.
std::string OtherDefaults(const Config& config, const PolicyRegistry& policies);

// What is valid and probably not intended: no policy is chosen, or no container can get exclusive
// CPUs. One sentence each. May read the files of cgroups.
std::vector<std::string> ConfigWarnings(const Config& config, const Machine& machine,
                                        const PolicyRegistry& policies);

}  // namespace resmgr
