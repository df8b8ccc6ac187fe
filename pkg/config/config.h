// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/failure_policy.h"
#include "pkg/base/status.h"
#include "pkg/config/classes_config.h"
#include "pkg/config/config_node.h"
#include "pkg/config/config_section.h"
#include "pkg/config/cpu_constraint.h"
#include "pkg/config/module_configs.h"
#include "pkg/config/nri_config.h"
#include "pkg/config/policy_classes.h"
#include "pkg/config/runtimes_config.h"

namespace resmgr {

inline constexpr std::string_view kNullPolicy = "null";

struct PolicyConfig {
  std::string active{kNullPolicy};
  std::string active_origin;  // "FILE:LINE: policy.Active" or a flag; empty: unset
  std::optional<CpuConstraint> available_cpus;  // unset: all CPUs that the process may use
  std::optional<CpuConstraint> reserved_cpus;
  // The treatment of a container that may start only after another one has left its CPUs, if that
  // one does not leave them.
  FailurePolicy start_failure = FailurePolicy::kFail;
  // The treatment of a container that must leave CPUs while the runtime refuses its updates.
  RefusedUpdates refused_updates = RefusedUpdates::kWait;
  // The unparsed sections of single policies, by the policy's name; each policy reads its own
  // (ReadSection) with the path PolicySectionPath(name).
  std::map<std::string, ConfigNode, std::less<>> sections;
};

struct DumpConfig {
  std::vector<std::string> specs;  // in their order, in pkg/dump's syntax
  std::string file;
};

struct LoggerConfig {
  std::string level = "info";   // see ParseLogLevel
  std::string debug = "none";   // sources with debug messages (SourceFilter::Parse)
  std::string source = "all";   // sources that are on (SourceFilter::Parse)
  std::string format = "text";  // see ParseLogFormat
};

// The whole configuration (DESIGN 7.2), checked as far as possible without the machine.
struct Config {
  PolicyConfig policy;
  DumpConfig dump;
  LoggerConfig logger;
  AuditConfig audit;
  UsageConfig usage;
  ClassesConfig classes;
  CpuFilesConfig cpu_files;
  NrtConfig nrt;
  DraConfig dra;
  NriHostConfig nri;
  HooksConfig hooks;
  RuntimesConfig runtimes;  // also the module runtimeClasses
};

// "policy.NAME".
std::string PolicySectionPath(std::string_view policy);

// Checks that need higher modules. An unset check accepts everything.
struct ConfigChecks {
  // Names that Active and the sections below `policy` may have, the null policy included. If empty,
  // every Active is accepted, and there are no sections.
  std::vector<std::string> policies;
  // Checks one rule list of the dump.
  std::function<Status(std::string_view spec)> dump_spec;
  // Checks the section of one policy, active or not, so that the message has its place. `keys`,
  // unless nullptr, gets the description of its options.
  std::function<Status(std::string_view policy, const ConfigNode& section,
                       std::vector<ConfigKey>* keys)>
      policy_section;
  // Returns the classes that a policy's checked section names. May be nullptr: none.
  std::function<std::vector<NamedClass>(std::string_view policy, const ConfigNode& section)>
      policy_classes{};
};

void DescribePolicy(ConfigSection& root, const ConfigChecks& checks, PolicyConfig& config);
void DescribeDump(ConfigSection& root, const ConfigChecks& checks, DumpConfig& config);
void DescribeLogger(ConfigSection& root, LoggerConfig& config);

// THE list of the modules at the top of a configuration. They are read and printed in this order.
inline void DescribeModules(ConfigSection& root, const ConfigChecks& checks, Config& config) {
  DescribePolicy(root, checks, config.policy);
  DescribeDump(root, checks, config.dump);
  DescribeLogger(root, config.logger);
  DescribeAudit(root, config.audit);
  DescribeUsage(root, config.usage);
  DescribeClasses(root, config.classes);
  DescribeCpuFiles(root, config.cpu_files);
  DescribeNrt(root, config.nrt);
  DescribeDra(root, config.dra);
  DescribeNri(root, config.nri);
  DescribeHooks(root, config.hooks);
  DescribeRuntimes(root, config.runtimes);
}

// All keys with their values in `config`.
std::vector<ConfigKey> DescribeConfig(const Config& config);
// All keys with their defaults.
std::vector<ConfigKey> DescribeConfig();
// All keys with their defaults, and the keys of the policies of `checks`.
std::vector<ConfigKey> AllConfigKeys(const ConfigChecks& checks);
// The keys at the top of a configuration.
std::vector<std::string> ConfigModuleNames();

// Sets the values of a document in `config`; others stay. Errors as from ParseConfig.
Status ReadInto(const ConfigNode& document, const ConfigChecks& checks, Config& config);

// Checks that the classes that the active policy names exist, in `classes` or in its own section.
Status CheckNamesOfPolicy(const Config& config, const ConfigChecks& checks);

// Reads the YAML form. Keys match without regard to case; unknown keys, wrong types and invalid
// values are kInvalidArgument "SOURCE:LINE: path: ...", all of them, one per line; a key at the top
// may name its place with dots ("policy.Active: static"). An empty text yields the defaults.
StatusOr<Config> ParseConfig(std::string_view text, std::string_view source,
                             const ConfigChecks& checks);
// The same for a configuration that is a part of another document.
StatusOr<Config> ParseConfig(const ConfigNode& document, const ConfigChecks& checks);

// Reads a ConfigMap's data: each key is a module's name and its value the YAML below it; messages
// begin with "SOURCE key NAME:LINE: ...". An empty map yields the defaults.
StatusOr<Config> ParseConfigMap(const std::map<std::string, std::string>& data,
                                std::string_view source, const ConfigChecks& checks);

}  // namespace resmgr
