// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_options.h"

#include <map>

#include "pkg/config/policy_names.h"
#include "pkg/config/problems.h"
#include "pkg/log/log.h"
#include "pkg/log/source_filter.h"

namespace resmgr {

namespace {

// The only option that may be repeated: its values add up.
constexpr std::string_view kDump = "dump";

CommandLine::Setter SourceSetter(std::optional<std::string>& target) {
  return [&target](std::string_view value) -> Status {
    target = value;
    return SourceFilter::Parse(value).status();
  };
}

template <typename Value>
void Override(const std::optional<Value>& value, Value& target) {
  if (value) target = *value;
}

}  // namespace

void ConfigOptions::DeclareFlags(CommandLine& line, const ConfigChecks& checks) {
  DeclarePolicyFlags(line, checks);
  DeclareDumpAndLogFlags(line, checks);
  DeclareNriFlags(line);
  DeclareHookFlags(line);
}

void ConfigOptions::DeclarePolicyFlags(CommandLine& line, const ConfigChecks& checks) {
  const Config defaults;
  const auto cpu_setter = [this](std::string_view name, std::optional<CpuConstraint>& target) {
    return [this, name, &target](std::string_view value) -> Status {
      RESMGR_ASSIGN_OR_RETURN(target,
                              ParseResourcesFlag(value, fmt::format("{}{}", origin_prefix, name)));
      return OkStatus();
    };
  };
  line.Group("Policy");
  line.Flag("policy", "NAME",
            "The policy that places containers. \"null\" changes nothing: all calls are forwarded "
            "unchanged.",
            defaults.policy.active, [this, checks](std::string_view value) -> Status {
              policy = OwnPolicyName(value);
              policy_origin = fmt::format("{}policy", origin_prefix);
              return CheckPolicyName(value, checks);
            });
  line.Flag("available-resources", "CPU=CPUS",
            "CPUs that policies may use: a list (CPU=cpuset:0-15 or CPU=0-7,16-23), a number of "
            "them (CPU=8) or those of a cgroup (CPU=cgroup:DIR).",
            "all CPUs that pods may use", cpu_setter("available-resources", available_cpus));
  line.Flag("reserved-resources", "CPU=CPUS",
            "CPUs that are reserved for the system and never granted exclusively: in the same "
            "forms, or as an amount (CPU=750m) that is rounded up to whole CPUs. They must be "
            "among the available CPUs.",
            "none", cpu_setter("reserved-resources", reserved_cpus));
  line.Flag("start-failure-policy", "fail|ignore",
            "What to do when a start has waited too long for another container to leave the CPUs: "
            "\"fail\" refuses the start, \"ignore\" starts the container and logs a warning.",
            std::string(ToString(defaults.policy.start_failure)),
            [this](std::string_view value) -> Status {
              RESMGR_ASSIGN_OR_RETURN(start_failure, ParseFailurePolicy(value));
              return OkStatus();
            });
}

void ConfigOptions::DeclareDumpAndLogFlags(CommandLine& line, const ConfigChecks& checks) {
  const Config defaults;
  line.Group("Dump and log");
  line.Flag(
      kDump, "SPEC",
      "Which CRI calls to dump, and in which detail: rules of the form "
      "[full|short|count|off:]METHOD, separated by commas. METHOD is a name, * or a regular "
      "expression; \"reset\" drops the built-in rules. -dump reset,full:.* shows everything. "
      "record:FILE records the calls in a file. May be given several times: the rules add up.",
      "", [this, checks](std::string_view value) -> Status {
        dump.emplace_back(value);
        return CheckDumpSpec(value, checks);
      });
  line.Flag("dump-file", "FILE", "A file to which the dump is written in addition to the log.",
            &dump_file);
  line.Flag("logger-level", "debug|info|warn|error", "The lowest severity that is logged.",
            defaults.logger.level, [this](std::string_view value) -> Status {
              logger_level = value;
              return ParseLogLevel(value).status();
            });
  line.Flag("logger-debug", "LIST",
            "Sources whose debug messages are logged, separated by commas; * is all of them, "
            "off:NAME excludes one.",
            defaults.logger.debug, SourceSetter(logger_debug));
  line.Flag("logger-source", "LIST",
            "Sources whose messages are logged, in the same form; the others log warnings and "
            "errors only. An empty list: all.",
            defaults.logger.source, SourceSetter(logger_source));
  line.Flag(
      "logger-format", "text|json",
      "The format of log lines. For systemd's journal they carry a priority, and as text no time.",
      defaults.logger.format, [this](std::string_view value) -> Status {
        logger_format = value;
        return ParseLogFormat(value).status();
      });
}

void ConfigOptions::DeclareNriFlags(CommandLine& line) {
  line.Group("NRI plugins");
  line.Flag("nri-host", "SOCKET",
            "Serve NRI plugins on this socket, for runtimes without NRI; with -mode relay or "
            "docker. \"disabled\": serve none.",
            "disabled", [this](std::string_view value) -> Status {
              nri_host = PathOrNone(value);
              return OkStatus();
            });
}

void ConfigOptions::DeclareHookFlags(CommandLine& line) {
  line.Group("Hook servers");
  line.Flag("hook-dir", "DIR",
            "Call the Koordinator hook servers that are described by the files in this directory. "
            "\"disabled\": call none.",
            "disabled", [this](std::string_view value) -> Status {
              RESMGR_ASSIGN_OR_RETURN(hook_directory, HookDirectoryOf(value));
              return OkStatus();
            });
  const HooksConfig defaults;
  line.Flag("hook-skip-key", "KEY",
            "Hook servers are not called for pods that have this label or annotation with the "
            "value of -hook-skip-value. \"\": they are called for every pod.",
            defaults.skip_key, [this](std::string_view value) -> Status {
              RESMGR_ASSIGN_OR_RETURN(hook_skip_key, HookSkipKeyOf(value));
              return OkStatus();
            });
  line.Flag("hook-skip-value", "VALUE", "The value that -hook-skip-key must have.",
            defaults.skip_value, [this](std::string_view value) -> Status {
              hook_skip_value = value;
              return OkStatus();
            });
}

void ConfigOptions::ApplyTo(Config& config) const {
  Override(policy, config.policy.active);
  if (policy) config.policy.active_origin = policy_origin;
  if (available_cpus) config.policy.available_cpus = available_cpus;
  if (reserved_cpus) config.policy.reserved_cpus = reserved_cpus;
  Override(start_failure, config.policy.start_failure);
  if (!dump.empty()) config.dump.specs = dump;
  Override(dump_file, config.dump.file);
  Override(logger_level, config.logger.level);
  Override(logger_debug, config.logger.debug);
  Override(logger_source, config.logger.source);
  Override(logger_format, config.logger.format);
  Override(nri_host, config.nri.socket);
  Override(hook_directory, config.hooks.directory);
  Override(hook_skip_key, config.hooks.skip_key);
  Override(hook_skip_value, config.hooks.skip_value);
}

std::vector<std::string> ConfigOptions::Overridden(const Config& config) const {
  const Config defaults;
  std::vector<std::string> keys;
  const auto look = [&keys](const auto& flag, const auto& given, const auto& usual,
                            const char* key) {
    if (flag && given != usual && given != *flag) keys.emplace_back(key);
  };
  const auto look_cpus = [&keys](const std::optional<CpuConstraint>& flag,
                                 const std::optional<CpuConstraint>& given, const char* key) {
    if (flag && given && ToString(*flag) != ToString(*given)) keys.emplace_back(key);
  };
  look_cpus(available_cpus, config.policy.available_cpus, "policy.AvailableResources");
  look_cpus(reserved_cpus, config.policy.reserved_cpus, "policy.ReservedResources");
  look(start_failure, config.policy.start_failure, defaults.policy.start_failure,
       "policy.StartFailurePolicy");
  if (!dump.empty() && !config.dump.specs.empty() && dump != config.dump.specs) {
    keys.emplace_back("dump.Config");
  }
  look(dump_file, config.dump.file, defaults.dump.file, "dump.File");
  look(logger_level, config.logger.level, defaults.logger.level, "logger.Level");
  look(logger_debug, config.logger.debug, defaults.logger.debug, "logger.Debug");
  look(logger_source, config.logger.source, defaults.logger.source, "logger.Source");
  look(logger_format, config.logger.format, defaults.logger.format, "logger.Format");
  look(hook_directory, config.hooks.directory, defaults.hooks.directory, "hooks.Directory");
  look(hook_skip_key, config.hooks.skip_key, defaults.hooks.skip_key, "hooks.SkipKey");
  look(hook_skip_value, config.hooks.skip_value, defaults.hooks.skip_value, "hooks.SkipValue");
  return keys;
}

Status ApplyOptionLines(const std::vector<OptionLine>& lines, CommandLine& line,
                        ConfigOptions& options) {
  std::map<std::string_view, std::string_view> seen;
  Problems problems;
  for (const OptionLine& option : lines) {
    const auto [first, is_first] = seen.emplace(option.name, option.where);
    if (!is_first && option.name != kDump) {
      problems.Add(InvalidArgument("{}: {}: given twice, first at {}", option.where, option.name,
                                   first->second));
      continue;
    }
    options.origin_prefix = fmt::format("{}: ", option.where);
    const std::optional<std::string_view> value = option.value;
    const bool told = problems.open();
    problems.Add(line.SetOption(option.name, value), option.where);
    if (!told) break;
  }
  return problems.ToStatus();
}

}  // namespace resmgr
