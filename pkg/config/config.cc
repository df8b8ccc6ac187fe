// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"
#include "pkg/config/dotted_keys.h"
#include "pkg/config/map_reader.h"
#include "pkg/config/policy_names.h"
#include "pkg/config/problems.h"
#include "pkg/config/yaml_reader.h"
#include "pkg/log/log.h"
#include "pkg/log/source_filter.h"

namespace resmgr {

namespace {

void ReadCpuDomain(MapReader& policy, std::string_view key, std::optional<CpuConstraint>& target) {
  policy.Map(key, [&target](MapReader& domains) {
    // Treating null as unset would be wrong: an unquoted #LIST, which YAML takes for a comment,
    // would reserve nothing.
    const ConfigNode* value = domains.Node("CPU");
    if (value != nullptr && value->kind == ConfigNode::Kind::kNull) {
      domains.Fail(*value, "CPU", "has no value (a value that begins with # must be in quotes)");
      return;
    }
    // In a list like [0, 1, 4-7] the items are CPUs; a single number would be a quantity.
    const bool is_list = value != nullptr && value->kind == ConfigNode::Kind::kList;
    domains.List("CPU",
                 [&](const std::vector<std::string>& texts, const std::string& origin) -> Status {
                   const std::string text =
                       is_list ? fmt::format("cpuset:{}", fmt::join(texts, ",")) : texts.front();
                   RESMGR_ASSIGN_OR_RETURN(target, ParseCpuConstraint(text, origin));
                   return OkStatus();
                 });
  });
}

void ReadActive(MapReader& policy, const ConfigChecks& checks, PolicyConfig& config) {
  const ConfigNode* value = policy.Node("Active");
  if (value == nullptr) return;
  config.active_origin = fmt::format("{}: policy.Active", Where(*value));
  // `Active: null` means the policy of that name.
  if (value->kind == ConfigNode::Kind::kNull) {
    config.active = kNullPolicy;
    return;
  }
  if (value->kind != ConfigNode::Kind::kScalar) {
    policy.Fail(*value, "Active",
                fmt::format("must be a policy's name, not {}", ToString(value->kind)));
    return;
  }
  const Status known = CheckPolicyName(value->text, checks);
  if (!known.ok()) {
    policy.Fail(*value, "Active", Message(known));
    return;
  }
  config.active = OwnPolicyName(value->text);
}

// Reads the section of a policy, under its own name or an alias.
void ReadSection(MapReader& policy, std::string_view key, Config& config) {
  const ConfigNode* section = policy.Node(key);
  if (section == nullptr) return;
  if (section->kind != ConfigNode::Kind::kMap && section->kind != ConfigNode::Kind::kNull) {
    policy.Fail(*section, key, fmt::format("must be a map, not {}", ToString(section->kind)));
    return;
  }
  const std::string_view name = OwnPolicyName(key);
  if (!config.policy.sections.emplace(name, *section).second) {
    policy.Fail(*section, key, fmt::format("is another name of {}, which is there, too", name));
  }
}

void ReadPolicy(MapReader& policy, const ConfigChecks& checks, Config& config) {
  ReadActive(policy, checks, config.policy);
  ReadCpuDomain(policy, "AvailableResources", config.policy.available_cpus);
  ReadCpuDomain(policy, "ReservedResources", config.policy.reserved_cpus);
  policy.Parse("StartFailurePolicy",
               [&config](std::string_view text, const std::string&) -> Status {
                 RESMGR_ASSIGN_OR_RETURN(config.policy.start_failure, ParseFailurePolicy(text));
                 return OkStatus();
               });
  policy.Parse("RefusedUpdates", [&config](std::string_view text, const std::string&) -> Status {
    RESMGR_ASSIGN_OR_RETURN(config.policy.refused_updates, ParseRefusedUpdates(text));
    return OkStatus();
  });
  for (const std::string& name : checks.policies) {
    ReadSection(policy, name, config);
    for (const PolicyAlias& known : kPolicyAliases) {
      if (known.policy == name) ReadSection(policy, known.alias, config);
    }
  }
}

void ReadDump(MapReader& dump, const ConfigChecks& checks, Config& config) {
  dump.List("Config", [&](const std::vector<std::string>& specs, const std::string&) -> Status {
    config.dump.specs = specs;
    Problems problems;
    for (const std::string& spec : specs)
      problems.Add(CheckDumpSpec(spec, checks));
    return problems.ToStatus();
  });
  dump.Text("File", config.dump.file);
}

// Characters; each log line is compared with the list.
constexpr size_t kMaxSources = 4096;

void ReadSources(MapReader& logger, std::string_view key, std::string& target) {
  logger.List(key, [&target](const std::vector<std::string>& sources, const std::string&) {
    target = fmt::format("{}", fmt::join(sources, ","));
    if (target.size() > kMaxSources) {
      return InvalidArgument("has {} characters, more than {}", target.size(), kMaxSources);
    }
    return SourceFilter::Parse(target).status();
  });
}

void ReadLogger(MapReader& logger, const ConfigChecks& /*checks*/, Config& config) {
  logger.Parse("Level", [&config](std::string_view text, const std::string&) {
    config.logger.level = text;
    return ParseLogLevel(text).status();
  });
  ReadSources(logger, "Debug", config.logger.debug);
  ReadSources(logger, "Source", config.logger.source);
  logger.Parse("Format", [&config](std::string_view text, const std::string&) {
    config.logger.format = text;
    return ParseLogFormat(text).status();
  });
}

void ReadAuditModule(MapReader& audit, const ConfigChecks& /*checks*/, Config& config) {
  ReadAudit(audit, config.audit);
}

void ReadUsageModule(MapReader& usage, const ConfigChecks& /*checks*/, Config& config) {
  ReadUsage(usage, config.usage);
}

void ReadCpuFilesModule(MapReader& files, const ConfigChecks& /*checks*/, Config& config) {
  ReadCpuFiles(files, config.cpu_files);
}

void ReadNriModule(MapReader& nri, const ConfigChecks& /*checks*/, Config& config) {
  ReadNri(nri, config.nri);
}

void ReadHooksModule(MapReader& hooks, const ConfigChecks& /*checks*/, Config& config) {
  ReadHooks(hooks, config.hooks);
}

void ReadRuntimesModule(MapReader& runtimes, const ConfigChecks& /*checks*/, Config& config) {
  ReadRuntimes(runtimes, config.runtimes);
}

void ReadRuntimeClassesModule(MapReader& classes, const ConfigChecks& /*checks*/, Config& config) {
  ReadRuntimeClasses(classes, config.runtimes);
}

struct ConfigModule {
  std::string_view name;
  void (*read)(MapReader& section, const ConfigChecks& checks, Config& config);
};

// THE list of the modules at the top of a configuration, in the order in which they are read.
constexpr std::array kModules = {
    ConfigModule{"policy", &ReadPolicy},
    ConfigModule{"dump", &ReadDump},
    ConfigModule{"logger", &ReadLogger},
    ConfigModule{"audit", &ReadAuditModule},
    ConfigModule{"usage", &ReadUsageModule},
    ConfigModule{"cpuFiles", &ReadCpuFilesModule},
    ConfigModule{"nri", &ReadNriModule},
    ConfigModule{"hooks", &ReadHooksModule},
    ConfigModule{"runtimes", &ReadRuntimesModule},
    ConfigModule{"runtimeClasses", &ReadRuntimeClassesModule},
};

// Explains a Kubernetes object that has the configuration in it, which is a common mistake.
Status CheckNoKubeObject(const ConfigNode& document) {
  const auto find = [&document](std::string_view key) {
    const auto at = std::ranges::find(document.entries, key, &ConfigNode::Entry::key);
    return at == document.entries.end() ? nullptr : &at->value;
  };
  const ConfigNode* const kind = find("kind");
  if (find("apiVersion") == nullptr || kind == nullptr) return OkStatus();
  const std::string_view part =
      find("data") != nullptr
          ? "data, each key of it as a key of the file and its text as YAML below that"
          : "spec";
  return InvalidArgument(
      "{}: this is a Kubernetes {}, not a configuration: give the contents of its {}",
      Where(document), Printable(kind->text, 64), part);
}

}  // namespace

StatusOr<Config> ParseConfig(const ConfigNode& document, const ConfigChecks& checks) {
  RESMGR_RETURN_IF_ERROR(CheckNoKubeObject(document));
  Config config;
  Problems problems;
  const ConfigNode root = ExpandDottedKeys(document, problems);
  MapReader reader(root, "");
  for (const ConfigModule& module : kModules) {
    reader.Map(module.name, [&](MapReader& section) { module.read(section, checks, config); });
  }
  problems.Add(reader.Finish());
  for (const auto& [name, section] : config.policy.sections) {
    if (checks.policy_section) problems.Add(checks.policy_section(name, section));
  }
  RESMGR_RETURN_IF_ERROR(problems.ToStatus());
  return config;
}

std::vector<std::string_view> ConfigModuleNames() {
  std::vector<std::string_view> names;
  names.reserve(kModules.size());
  for (const ConfigModule& module : kModules)
    names.push_back(module.name);
  return names;
}

std::string PolicySectionPath(std::string_view policy) {
  return fmt::format("policy.{}", policy);
}

StatusOr<Config> ParseConfig(std::string_view text, std::string_view source,
                             const ConfigChecks& checks) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode document, ParseYaml(text, source));
  return ParseConfig(document, checks);
}

StatusOr<Config> ParseConfigMap(const std::map<std::string, std::string>& data,
                                std::string_view source, const ConfigChecks& checks) {
  ConfigNode document;
  document.kind = ConfigNode::Kind::kMap;
  document.source = std::make_shared<const std::string>(source);
  YamlBudget budget;
  Problems problems;
  for (const auto& [key, text] : data) {
    const std::string where = fmt::format("{} key {}", source, Printable(key, 64));
    StatusOr<ConfigNode> value = ParseYaml(text, where, budget);
    problems.Add(value.status());
    if (value.ok()) document.entries.push_back({.key = key, .line = 1, .value = *std::move(value)});
  }
  StatusOr<Config> config = ParseConfig(document, checks);
  problems.Add(config.status());
  RESMGR_RETURN_IF_ERROR(problems.ToStatus());
  return config;
}

Status CheckPolicyName(std::string_view name, const ConfigChecks& checks) {
  const std::vector<std::string>& known = checks.policies;
  const std::string_view own = OwnPolicyName(name);
  if (known.empty() || std::find(known.begin(), known.end(), own) != known.end()) {
    return OkStatus();
  }
  std::string hint = DidYouMean(name, {known.begin(), known.end()});
  if (hint.empty()) hint = fmt::format("; there are {}", fmt::join(known, ", "));
  return InvalidArgument("there is no policy \"{}\"{}", Printable(name, 64), hint);
}

Status CheckDumpSpec(std::string_view spec, const ConfigChecks& checks) {
  return checks.dump_spec ? checks.dump_spec(spec) : OkStatus();
}

}  // namespace resmgr
