// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"
#include "pkg/config/yaml_reader.h"
#include "pkg/log/log.h"
#include "pkg/log/source_filter.h"

namespace resmgr {
namespace {

// An alias of a policy, from cri-resource-manager, that configurations may use.
struct PolicyAlias {
  std::string_view alias;
  std::string_view policy;
};

constexpr std::array kPolicyAliases = {
    PolicyAlias{"none", "null"},
    PolicyAlias{"memtier", "topology-aware"},
};

// The name that logs and outputs show: the policy's own name for an alias, else `name`.
constexpr std::string_view OwnPolicyName(std::string_view name) {
  for (const PolicyAlias& known : kPolicyAliases) {
    if (known.alias == name) return known.policy;
  }
  return name;
}

// Describes the CPUs of one key of the section `policy`; `help` describes them.
void DescribeCpus(ConfigSection& policy, std::string_view key, std::string_view flag,
                  std::optional<CpuConstraint>& target, std::string_view help,
                  std::string_view default_text) {
  const auto read = [&target](const ConfigNode& value, const std::string& origin) -> Status {
    // Null is refused and does not mean unset: in YAML an unquoted #LIST is a comment, and would
    // silently reserve nothing.
    if (value.kind == ConfigNode::Kind::kNull) {
      return InvalidArgument("has no value (a value that begins with # must be in quotes)");
    }
    RESMGR_ASSIGN_OR_RETURN(const std::vector<std::string> texts, TextsOf(value));
    // In a list like [0, 1, 4-7] the items are CPUs; a single number would be a quantity.
    const bool is_list = value.kind == ConfigNode::Kind::kList;
    const std::string text =
        is_list ? fmt::format("cpuset:{}", fmt::join(texts, ",")) : texts.front();
    RESMGR_ASSIGN_OR_RETURN(target, ParseCpuConstraint(text, origin));
    return OkStatus();
  };
  policy.Map(key, [&](ConfigSection& domains) {
    const auto shown = target ? std::optional(ScalarNode(ToString(*target))) : std::nullopt;
    domains.Value("CPU", shown, read, help)
        .Default(default_text)
        .Flag(flag, "CPU=CPUS", CpuOfResources);
  });
}

// kInvalidArgument, with the closest name, for an unknown policy.
Status CheckPolicyName(std::string_view name, const ConfigChecks& checks) {
  const std::vector<std::string>& known = checks.policies;
  if (known.empty() || std::ranges::find(known, OwnPolicyName(name)) != known.end()) {
    return OkStatus();
  }
  std::string hint = DidYouMean(name, {known.begin(), known.end()});
  if (hint.empty()) hint = fmt::format("; there are {}", fmt::join(known, ", "));
  return InvalidArgument("there is no policy \"{}\"{}", Printable(name, 64), hint);
}

void DescribeActive(ConfigSection& policy, const ConfigChecks& checks, PolicyConfig& config) {
  const auto read = [&](const ConfigNode& value, const std::string& origin) -> Status {
    config.active_origin = origin;
    // `Active: null` means the null policy and not an absent value.
    if (value.kind == ConfigNode::Kind::kNull) {
      config.active = kNullPolicy;
      return OkStatus();
    }
    if (value.kind != ConfigNode::Kind::kScalar) {
      return InvalidArgument("must be a policy's name, not {}", ToString(value.kind));
    }
    RESMGR_RETURN_IF_ERROR(CheckPolicyName(value.text, checks));
    config.active = OwnPolicyName(value.text);
    return OkStatus();
  };
  policy
      .Value("Active", ScalarNode(config.active), read,
             "the policy that places containers; `null` changes nothing: all calls are forwarded "
             "unchanged")
      .Flag("policy", "NAME");
}

// Keeps the section of a policy, which may have the policy's own name or an alias.
void ReadPolicySection(ConfigSection& policy, std::string_view key, PolicyConfig& config) {
  const ConfigNode* section = policy.Node(key);
  if (section == nullptr) return;
  if (section->kind != ConfigNode::Kind::kMap && section->kind != ConfigNode::Kind::kNull) {
    policy.Fail(*section, key, fmt::format("must be a map, not {}", ToString(section->kind)));
    return;
  }
  const std::string_view name = OwnPolicyName(key);
  if (!config.sections.emplace(name, *section).second) {
    policy.Fail(*section, key, fmt::format("is another name of {}, which is there, too", name));
  }
}

// Limit in characters, since each log line is compared with the list.
constexpr size_t kMaxSources = 4096;

ConfigSection& DescribeSources(ConfigSection& logger, std::string_view key, std::string& target,
                               std::string_view help) {
  const auto read = [&target](const ConfigNode& value, const std::string&) -> Status {
    if (value.kind == ConfigNode::Kind::kNull) return OkStatus();
    RESMGR_ASSIGN_OR_RETURN(const std::vector<std::string> sources, TextsOf(value));
    target = fmt::format("{}", fmt::join(sources, ","));
    if (target.size() > kMaxSources) {
      return InvalidArgument("has {} characters, more than {}", target.size(), kMaxSources);
    }
    return SourceFilter::Parse(target).status();
  };
  return logger.Value(key, ScalarNode(target), read, help);
}

// Reports a Kubernetes object in place of its configuration, a common mistake.
Status CheckNoKubeObject(const ConfigNode& document) {
  const ConfigNode* const kind = FindMember(document, "kind");
  if (FindMember(document, "apiVersion") == nullptr || kind == nullptr) return OkStatus();
  std::string_view advice;
  if (FindMember(document, "data") != nullptr) {
    advice =
        ": give the contents of its data, each key of it as a key of the file and its text as YAML "
        "below that";
  } else if (kind->text.ends_with("Policy")) {
    advice = ": convert it with cri-resmgr-ctl config convert -from nri-plugins FILE";
  } else if (kind->text.ends_with("List")) {
    advice = ": give one of its items";
  }
  return InvalidArgument("{}: this is a Kubernetes {}, not a configuration{}", Where(document),
                         Printable(kind->text, 64), advice);
}

}  // namespace

void DescribePolicy(ConfigSection& root, const ConfigChecks& checks, PolicyConfig& config) {
  const auto describe = [&](ConfigSection& policy) {
    DescribeActive(policy, checks, config);
    DescribeCpus(policy, "AvailableResources", "available-resources", config.available_cpus,
                 "the CPUs that policies may use: a list (`cpuset:0-15` or `0-7,16-23`), a number "
                 "of them (`8`) or those of a cgroup (`cgroup:DIR`)",
                 "all CPUs that pods may use");
    DescribeCpus(policy, "ReservedResources", "reserved-resources", config.reserved_cpus,
                 "the CPUs that are reserved for the system and never granted exclusively: in the "
                 "same forms, or as an amount (`750m`) that is rounded up to whole CPUs. They must "
                 "be among the available CPUs",
                 "none");
    policy
        .Choice("StartFailurePolicy", {FailurePolicy::kFail, FailurePolicy::kIgnore},
                config.start_failure,
                "what to do when a start has waited too long for another container to leave the "
                "CPUs: `fail` refuses the start, `ignore` starts the container and logs a warning")
        .Flag("start-failure-policy", "fail|ignore");
    policy.Choice("RefusedUpdates", {RefusedUpdates::kWait, RefusedUpdates::kWrite},
                  config.refused_updates,
                  "what to do when the runtime refuses an update that has only CPUs and memory "
                  "nodes: `wait` leaves the container on its CPUs, `write` writes into its cgroup");
    policy.Show(config.sections);
    for (const std::string& name : checks.policies) {
      ReadPolicySection(policy, name, config);
      for (const PolicyAlias& known : kPolicyAliases) {
        if (known.policy == name) ReadPolicySection(policy, known.alias, config);
      }
    }
  };
  root.Map("policy", describe, "Policy");
}

void DescribeDump(ConfigSection& root, const ConfigChecks& checks, DumpConfig& config) {
  const auto read = [&](const ConfigNode& value, const std::string&) -> Status {
    if (value.kind == ConfigNode::Kind::kNull) return OkStatus();
    RESMGR_ASSIGN_OR_RETURN(config.specs, TextsOf(value));
    Problems problems;
    for (const std::string& spec : config.specs) {
      if (checks.dump_spec) problems.Add(checks.dump_spec(spec));
    }
    return problems.ToStatus();
  };
  const auto describe = [&](ConfigSection& dump) {
    dump.Value(
            "Config", ListNode(config.specs), read,
            "which CRI calls to dump, and in which detail: rules of the form `DETAIL:METHOD`, "
            "separated by commas. DETAIL is `full`, `short`, `count` or `off`, METHOD is a name, "
            "`*` or a regular expression; `reset` drops the built-in rules. `reset,full:.*` "
            "shows everything, `record:FILE` records the calls in a file. The rules of several "
            "values add up")
        .Default("built-in rules")
        .Flag("dump", "SPEC");
    dump.Text("File", config.file, "a file to which the dump is written in addition to the log")
        .Default("none")
        .Flag("dump-file", "FILE");
  };
  root.Map("dump", describe, "Dump and log");
}

void DescribeLogger(ConfigSection& root, LoggerConfig& config) {
  const auto describe = [&config](ConfigSection& logger) {
    logger
        .Text("Level", config.level,
              "the lowest severity that is logged: `debug`, `info`, `warn` or `error`",
              [](std::string_view text) { return ParseLogLevel(text).status(); })
        .Flag("logger-level", "debug|info|warn|error");
    DescribeSources(logger, "Debug", config.debug,
                    "sources whose debug messages are logged, separated by commas; `*` is all of "
                    "them, `off:NAME` excludes one")
        .Flag("logger-debug", "LIST");
    DescribeSources(logger, "Source", config.source,
                    "sources whose messages are logged, in the same form; the others log warnings "
                    "and errors only. An empty list: all")
        .Flag("logger-source", "LIST");
    logger
        .Text("Format", config.format,
              "the format of log lines, `text` or `json`. For systemd's journal they carry a "
              "priority, and as text no time",
              [](std::string_view text) { return ParseLogFormat(text).status(); })
        .Flag("logger-format", "text|json");
  };
  root.Map("logger", describe, "Dump and log");
}

std::vector<ConfigKey> DescribeConfig(const Config& config) {
  std::vector<ConfigKey> keys;
  ConfigSection root(keys);
  Config copy = config;
  DescribeModules(root, {}, copy);
  return keys;
}

std::vector<ConfigKey> DescribeConfig() {
  return DescribeConfig(Config());
}

std::vector<ConfigKey> AllConfigKeys(const ConfigChecks& checks) {
  std::vector<ConfigKey> keys = DescribeConfig();
  if (!checks.policy_section) return keys;
  ConfigKey& modules = keys.front();
  std::vector<std::string>& names = modules.keys.front().choices = checks.policies;
  for (const PolicyAlias& known : kPolicyAliases)
    names.emplace_back(known.alias);
  for (const std::string& policy : checks.policies) {
    ConfigKey section{.name = policy, .kind = ConfigKey::Kind::kMap};
    if (checks.policy_section(policy, ConfigNode(), &section.keys).ok()) {
      modules.keys.push_back(std::move(section));
    }
  }
  return keys;
}

std::vector<std::string> ConfigModuleNames() {
  std::vector<std::string> names;
  for (const ConfigKey& key : DescribeConfig())
    names.push_back(key.name);
  return names;
}

Status CheckNamesOfPolicy(const Config& config, const ConfigChecks& checks) {
  const auto section = config.policy.sections.find(config.policy.active);
  if (section == config.policy.sections.end() || !checks.policy_classes) return OkStatus();
  const std::string path = PolicySectionPath(section->first);
  ClassesConfig classes = config.classes;
  AddPolicyClasses(section->second, path, classes);
  return CheckClassesOfSection(checks.policy_classes(section->first, section->second), classes,
                               section->second, path);
}

Status ReadInto(const ConfigNode& document, const ConfigChecks& checks, Config& config) {
  Problems problems;
  const ConfigNode root = ExpandDottedKeys(document, problems);
  ConfigSection reader(root, "");
  DescribeModules(reader, checks, config);
  problems.Add(reader.Finish());
  for (const auto& [name, section] : config.policy.sections) {
    if (checks.policy_section) problems.Add(checks.policy_section(name, section, nullptr));
  }
  RESMGR_RETURN_IF_ERROR(problems.ToStatus());
  return CheckNamesOfPolicy(config, checks);
}

StatusOr<Config> ParseConfig(const ConfigNode& document, const ConfigChecks& checks) {
  RESMGR_RETURN_IF_ERROR(CheckNoKubeObject(document));
  Config config;
  RESMGR_RETURN_IF_ERROR(ReadInto(document, checks, config));
  return config;
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
  ConfigNode document = MapNode({});
  document.source = std::make_shared<const std::string>(source);
  YamlBudget budget;
  Problems problems;
  for (const auto& [key, text] : data) {
    const std::string where = fmt::format("{} key {}", source, Printable(key, 64));
    StatusOr<ConfigNode> value = ParseYaml(text, where, budget);
    problems.Add(value.status());
    if (value.ok() && EqualsIgnoreCase(key, "policy") && value->entries.empty() &&
        (value->kind == ConfigNode::Kind::kNull || value->kind == ConfigNode::Kind::kMap)) {
      problems.Add(InvalidArgument(
          "{}: is empty, which would switch off the policy: name one by Active, or say null",
          where));
    }
    if (value.ok()) document.entries.push_back({.key = key, .line = 1, .value = *std::move(value)});
  }
  StatusOr<Config> config = ParseConfig(document, checks);
  problems.Add(config.status());
  RESMGR_RETURN_IF_ERROR(problems.ToStatus());
  return config;
}

}  // namespace resmgr
