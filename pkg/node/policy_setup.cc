// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/policy_setup.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/allocator/cpu_allocator.h"
#include "pkg/base/parse.h"
#include "pkg/config/print_config.h"
#include "pkg/dump/rules.h"
#include "pkg/node/machine_watch.h"

namespace resmgr {
namespace {

// Keys of policies that count in place of keys of `classes` (OverrideIsolation, AddPolicyClasses):
// the default of one that is not stated would read as an override.
constexpr std::array<std::string_view, 2> kOverrides = {"Undisturbed", "controllableInterrupts"};

// nullptr: the section does not state the key, or states null.
const ConfigNode* FindStated(const ConfigNode& section, std::string_view key) {
  const ConfigNode* const value = FindKey(section, key);
  return value == nullptr || value->kind == ConfigNode::Kind::kNull ? nullptr : value;
}

// Takes the defaults of these keys out of a complete section.
void KeepStated(const ConfigNode& section, ConfigNode& complete) {
  std::erase_if(complete.entries, [&section](ConfigNode::Entry& entry) {
    if (std::ranges::find(kOverrides, entry.key) == kOverrides.end()) return false;
    const ConfigNode* const stated = FindStated(section, entry.key);
    if (stated == nullptr) return true;
    std::erase_if(entry.value.entries, [stated](const ConfigNode::Entry& each) {
      return FindStated(*stated, each.key) == nullptr;
    });
    return false;
  });
}

// The section of the active policy; nullptr: there is none.
const ConfigNode* ActiveSection(const PolicyConfig& config) {
  const auto section = config.sections.find(config.active);
  return section == config.sections.end() ? nullptr : &section->second;
}

// Empty if the policy has no options.
ConfigNode CompleteSection(const PolicyFactory& factory, const ConfigNode& section) {
  std::vector<ConfigKey> keys;
  if (factory.read_section != nullptr && !factory.read_section(section, &keys).ok()) {
    return section;
  }
  ConfigNode complete = ValuesOf(keys);
  KeepStated(section, complete);
  return complete;
}

}  // namespace

StatusOr<PolicyCpus> CpusFor(const PolicyConfig& config, const Machine& machine,
                             const CpuSet& offline) {
  ConstraintOptions options;
  options.offline = offline;
  options.pick = [&machine](const CpuSet& from, int count) {
    return AllocateCpus(machine, from, {}, count, {});
  };
  return ResolveCpuConstraints(machine, config.available_cpus, config.reserved_cpus, options);
}

StatusOr<std::unique_ptr<Policy>> MakePolicy(const PolicyConfig& config,
                                             const RuntimesConfig& runtimes, const Machine& machine,
                                             const PolicyRegistry& policies,
                                             const CpuSet& offline) {
  RESMGR_ASSIGN_OR_RETURN(const PolicyCpus cpus, CpusFor(config, machine, offline));
  if (config.active == kNullPolicy) return nullptr;
  return policies.Create(config.active, {.machine = machine,
                                         .available = cpus.available,
                                         .reserved = cpus.reserved,
                                         .section = ActiveSection(config),
                                         .runtimes = &runtimes,
                                         .unreserved = cpus.unreserved,
                                         .offline = offline | OfflineCpus(machine)});
}

ConfigChecks ChecksWith(const PolicyRegistry& policies) {
  ConfigChecks checks;
  checks.policies = policies.Names();
  checks.dump_spec = [](std::string_view spec) {
    return dump::Rules::Parse({std::string(spec)}).status();
  };
  checks.policy_section = [&policies](std::string_view policy, const ConfigNode& section,
                                      std::vector<ConfigKey>* keys) {
    const PolicyFactory* const factory = policies.Find(policy);
    if (factory == nullptr || factory->read_section == nullptr) return OkStatus();
    return factory->read_section(section, keys);
  };
  checks.policy_classes = [&policies](std::string_view policy, const ConfigNode& section) {
    const PolicyFactory* const factory = policies.Find(policy);
    return factory == nullptr || factory->named_classes == nullptr
               ? std::vector<NamedClass>()
               : factory->named_classes(section);
  };
  return checks;
}

ClassesConfig ClassesInForce(const Config& config, const PolicyRegistry& policies) {
  // The null policy gives no container CPUs of its own.
  if (config.policy.active == kNullPolicy) return {};
  ClassesConfig classes = config.classes;
  if (const ConfigNode* const section = ActiveSection(config.policy)) {
    const std::string path = PolicySectionPath(config.policy.active);
    OverrideIsolation(*section, path, classes);
    AddPolicyClasses(*section, path, classes);
    const PolicyFactory* const factory = policies.Find(config.policy.active);
    classes.of_pools = factory != nullptr && factory->named_classes != nullptr &&
                       !factory->named_classes(*section).empty();
  }
  return classes;
}

Config WithDefaults(Config config, const PolicyRegistry& policies) {
  const PolicyFactory* const factory = policies.Find(config.policy.active);
  if (factory == nullptr) return config;
  const ConfigNode* const written = ActiveSection(config.policy);
  ConfigNode complete = CompleteSection(*factory, written == nullptr ? ConfigNode() : *written);
  if (!complete.entries.empty())
    config.policy.sections.insert_or_assign(config.policy.active, std::move(complete));
  return config;
}

std::string OtherDefaults(const Config& config, const PolicyRegistry& policies) {
  std::vector<ConfigNode::Entry> sections;
  for (const PolicyFactory& factory : policies.factories()) {
    if (factory.name == config.policy.active) continue;
    ConfigNode complete = CompleteSection(factory, ConfigNode());
    if (!complete.entries.empty())
      sections.push_back({std::string(factory.name), 1, std::move(complete)});
  }
  if (sections.empty()) return "";
  std::string text = "# What the other policies would do without a section of theirs:\n";
  const std::string yaml = PrintNode(MapNode({{"policy", 1, MapNode(std::move(sections))}}));
  for (const std::string_view line : Split(yaml, '\n')) {
    if (!line.empty()) text += fmt::format("# {}\n", line);
  }
  return text;
}

std::vector<std::string> ConfigWarnings(const Config& config, const Machine& machine,
                                        const PolicyRegistry& policies, const CpuSet& offline) {
  std::vector<std::string> warnings;
  if (config.policy.active == kNullPolicy) {
    if (!config.policy.active_origin.empty()) return warnings;
    std::vector<std::string> names = policies.Names();
    std::erase(names, kNullPolicy);
    warnings.push_back(
        fmt::format("no policy is chosen, so nothing is placed: choose one ({}) with policy.Active "
                    "or -policy, or say null",
                    fmt::join(names, ", ")));
    return warnings;
  }
  const StatusOr<PolicyCpus> cpus = CpusFor(config.policy, machine, offline);
  const CpuSet forbidden = cpus.ok() ? cpus->available - machine.allowed() : CpuSet();
  if (!forbidden.empty()) {
    warnings.push_back(
        fmt::format("policy.AvailableResources has CPUs {}, which the cgroup of pods may not use: "
                    "the runtime refuses containers there",
                    forbidden.ToString()));
  }
  for (const auto* const constraint :
       {&config.policy.available_cpus, &config.policy.reserved_cpus}) {
    const bool set = *constraint && (*constraint)->kind == CpuConstraint::Kind::kSet;
    const CpuSet off = set ? (*constraint)->cpus & OfflineCpus(machine) : CpuSet();
    if (off.empty()) continue;
    warnings.push_back(fmt::format("{}: {} offline, and the daemon does without",
                                   (*constraint)->origin, CpusAre(off)));
  }
  if (cpus.ok() && (cpus->available - cpus->reserved).empty()) {
    warnings.push_back(
        fmt::format("no container can get exclusive CPUs: all of the available ones ({}) are "
                    "reserved",
                    cpus->available.ToString()));
  }
  std::ranges::move(UnknownAllowedClasses(ClassesInForce(config, policies)),
                    std::back_inserter(warnings));
  const PolicyFactory* const factory = policies.Find(config.policy.active);
  const ConfigNode* const section = ActiveSection(config.policy);
  if (factory == nullptr || factory->without_effect == nullptr || section == nullptr)
    return warnings;
  std::ranges::move(factory->without_effect(*section), std::back_inserter(warnings));
  return warnings;
}

}  // namespace resmgr
