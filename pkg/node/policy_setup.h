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

// `offline` always means CPUs of the machine that went offline since it was read.

// The CPUs that the configuration leaves to policies on this machine. kInvalidArgument if it does
// not fit.
StatusOr<PolicyCpus> CpusFor(const PolicyConfig& config, const Machine& machine,
                             const CpuSet& offline = {});

// Creates the configured policy, nullptr for the null policy. The machine must outlive it.
// `runtimes` decides which pods' containers it binds. kInvalidArgument if options or CPU sets do
// not fit the machine.
StatusOr<std::unique_ptr<Policy>> MakePolicy(const PolicyConfig& config,
                                             const RuntimesConfig& runtimes, const Machine& machine,
                                             const PolicyRegistry& policies,
                                             const CpuSet& offline = {});

// Checks for a configuration's text that depend on the registry's policies and the dump's rules.
ConfigChecks ChecksWith(const PolicyRegistry& policies);

// The classes of containers: from the configuration, and from the section of its active policy.
// None under the null policy.
ClassesConfig ClassesInForce(const Config& config, const PolicyRegistry& policies);

// The configuration with every option of its active policy, set or default.
Config WithDefaults(Config config, const PolicyRegistry& policies);

// The options of the inactive policies with their defaults, as YAML in comments; "" if there are
// none.
std::string OtherDefaults(const Config& config, const PolicyRegistry& policies);

// Warnings about a valid configuration that is probably a mistake: no policy is chosen, no
// container can get exclusive CPUs, or pods may choose a class that does not exist. Each is a
// sentence. May read the files of cgroups.
std::vector<std::string> ConfigWarnings(const Config& config, const Machine& machine,
                                        const PolicyRegistry& policies, const CpuSet& offline = {});

}  // namespace resmgr
