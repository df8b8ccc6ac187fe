// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_options.h"

#include <map>

#include "pkg/config/policy_names.h"
#include "pkg/config/problems.h"
#include "pkg/log/log.h"
#include "pkg/log/source_filter.h"

namespace resmgr {

namespace {

// The one list: what it says several times adds up.
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
            "The policy that places containers. \"null\" changes nothing: all calls pass as they "
            "are.",
            defaults.policy.active, [this, checks](std::string_view value) -> Status {
              policy = OwnPolicyName(value);
              policy_origin = fmt::format("{}policy", origin_prefix);
              return CheckPolicyName(value, checks);
            });
  line.Flag("available-resources", "CPU=CPUS",
            "CPUs that policies may use: a list (CPU=cpuset:0-15 or CPU=0-7,16-23), a number of "
            "them (CPU=8) or those of a cgroup (CPU=cgroup:DIR).",
            "all CPUs that this process may use",
            cpu_setter("available-resources", available_cpus));
  line.Flag("reserved-resources", "CPU=CPUS",
            "CPUs that are kept for the system and never granted to a container alone: in the same "
            "forms, and as an amount (CPU=750m) that is rounded up to whole CPUs. They must be "
            "among the available ones.",
            "none", cpu_setter("reserved-resources", reserved_cpus));
  line.Flag("start-failure-policy", "fail|ignore",
            "What happens to a container whose start waits too long for another one to leave its "
            "CPUs: \"fail\" refuses the start, \"ignore\" lets it go and warns.",
            std::string(ToString(defaults.policy.start_failure)),
            [this](std::string_view value) -> Status {
              RESMGR_ASSIGN_OR_RETURN(start_failure, ParseFailurePolicy(value));
              return OkStatus();
            });
}

void ConfigOptions::DeclareDumpAndLogFlags(CommandLine& line, const ConfigChecks& checks) {
  const Config defaults;
  line.Group("Dump and log");
  line.Flag(kDump, "SPEC",
            "Which CRI calls to show, and how much of them: rules [full|short|count|off:]METHOD, "
            "divided by commas, METHOD being a name, * or a regular expression; \"reset\" forgets "
            "the built-in rules. -dump reset,full:.* shows everything. record:FILE keeps a "
            "recording of the calls. May be repeated: the rules add up.",
            "", [this, checks](std::string_view value) -> Status {
              dump.emplace_back(value);
              return CheckDumpSpec(value, checks);
            });
  line.Flag("dump-file", "FILE", "Where to write the dump, besides the log.", &dump_file);
  line.Flag("logger-level", "debug|info|warn|error", "The lowest severity that is logged.",
            defaults.logger.level, [this](std::string_view value) -> Status {
              logger_level = value;
              return ParseLogLevel(value).status();
            });
  line.Flag(
      "logger-debug", "LIST",
      "Sources whose debug messages are logged, divided by commas; * is all of them, off:NAME "
      "leaves one out.",
      defaults.logger.debug, SourceSetter(logger_debug));
  line.Flag(
      "logger-source", "LIST",
      "Sources that are logged at all, in the same form; the others still report warnings and "
      "errors. An empty list is all.",
      defaults.logger.source, SourceSetter(logger_source));
  line.Flag(
      "logger-format", "text|json",
      "How log lines are written. Lines for systemd's journal carry their priority, and as text "
      "no time.",
      defaults.logger.format, [this](std::string_view value) -> Status {
        logger_format = value;
        return ParseLogFormat(value).status();
      });
}

void ConfigOptions::DeclareNriFlags(CommandLine& line) {
  line.Group("NRI plugins");
  line.Flag("nri-host", "SOCKET",
            "Serve NRI plugins on this socket, for runtimes that have no NRI of their own; with "
            "-mode relay. \"disabled\" serves none.",
            "disabled", [this](std::string_view value) -> Status {
              nri_host = PathOrNone(value);
              return OkStatus();
            });
}

void ConfigOptions::DeclareHookFlags(CommandLine& line) {
  line.Group("Hook servers");
  line.Flag("hook-dir", "DIR",
            "Ask the Koordinator hook servers that the files of this directory describe about pods "
            "and containers. \"disabled\" asks none.",
            "disabled", [this](std::string_view value) -> Status {
              RESMGR_ASSIGN_OR_RETURN(hook_directory, HookDirectoryOf(value));
              return OkStatus();
            });
  const HooksConfig defaults;
  line.Flag("hook-skip-key", "KEY",
            "They are not asked about pods that have this label or annotation with the value of "
            "-hook-skip-value. \"\": they are asked about every pod.",
            defaults.skip_key, [this](std::string_view value) -> Status {
              RESMGR_ASSIGN_OR_RETURN(hook_skip_key, HookSkipKeyOf(value));
              return OkStatus();
            });
  line.Flag("hook-skip-value", "VALUE", "See -hook-skip-key.", defaults.skip_value,
            [this](std::string_view value) -> Status {
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
      problems.Add(InvalidArgument("{}: {}: stands here twice, first at {}", option.where,
                                   option.name, first->second));
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
