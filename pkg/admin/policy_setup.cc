// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/policy_setup.h"

#include <string>
#include <string_view>

#include "pkg/allocator/cpu_allocator.h"
#include "pkg/dump/rules.h"

namespace resmgr {

StatusOr<PolicyCpus> CpusFor(const PolicyConfig& config, const Machine& machine) {
  ConstraintOptions options;
  options.pick = [&machine](const CpuSet& from, int count) {
    return AllocateCpus(machine, from, {}, count, {});
  };
  return ResolveCpuConstraints(machine, config.available_cpus, config.reserved_cpus, options);
}

StatusOr<std::unique_ptr<Policy>> MakePolicy(const PolicyConfig& config, const Machine& machine,
                                             const PolicyRegistry& policies) {
  RESMGR_ASSIGN_OR_RETURN(const PolicyCpus cpus, CpusFor(config, machine));
  if (config.active == kNullPolicy) return nullptr;
  const auto section = config.sections.find(config.active);
  return policies.Create(
      config.active, {.machine = machine,
                      .available = cpus.available,
                      .reserved = cpus.reserved,
                      .section = section == config.sections.end() ? nullptr : &section->second});
}

ConfigChecks ChecksWith(const PolicyRegistry& policies) {
  ConfigChecks checks;
  checks.policies = policies.Names();
  checks.dump_spec = [](std::string_view spec) {
    return dump::Rules::Parse({std::string(spec)}).status();
  };
  checks.policy_section = [&policies](std::string_view policy, const ConfigNode& section) {
    const PolicyFactory* const factory = policies.Find(policy);
    if (factory == nullptr || factory->check_section == nullptr) return OkStatus();
    return factory->check_section(section);
  };
  return checks;
}

}  // namespace resmgr
