// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/config_reader.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "pkg/base/json.h"
#include "pkg/config/config_file.h"
#include "pkg/config/print_config.h"
#include "pkg/config/yaml_reader.h"
#include "pkg/node/policy_setup.h"
#include "pkg/nri/host/stage/host_config.h"
#include "pkg/state/file_system.h"
#include "pkg/sys/files.h"

namespace resmgr {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxConfigKeys = 256;  // limit for a ConfigMap
constexpr size_t kMaxMessage = 2 * kMaxConfigSize + (size_t{64} << 10);
// JSON may need six bytes for one byte of the configuration.
constexpr size_t kMaxFile = 6 * kMaxMessage + (size_t{64} << 10);

// Refuses a delivered configuration with another policy than the flag on the command line, which
// would override it.
Status CheckActive(const PolicyConfig& policy, const ConfigOptions& overrides) {
  const std::optional<std::string> flag = overrides.policy();
  if (!flag || policy.active_origin.empty() || policy.active == *flag) return OkStatus();
  return InvalidArgument(
      "{}: \"{}\" would have no effect, since cri-resmgr was started with -policy {}; remove that "
      "flag, or Active here",
      policy.active_origin, policy.active, *flag);
}

std::string PathIn(const std::string& directory) {
  return directory + "/config";
}

// Limits the size of all keys and values together, and the number of keys.
Status CheckSize(const DeliveredConfig& source) {
  size_t bytes = 0;
  for (const auto& [key, text] : source.data)
    bytes += key.size() + text.size();
  if (bytes > kMaxConfigSize)
    return InvalidArgument("{}: it has {} bytes, more than {}", source.name, bytes, kMaxConfigSize);
  if (source.data.size() > kMaxConfigKeys) {
    return InvalidArgument("{}: it has {} keys, more than {}", source.name, source.data.size(),
                           kMaxConfigKeys);
  }
  return OkStatus();
}

// kInvalidArgument for malformed values.
StatusOr<LogSettings> ReadLogging(const LoggerConfig& config) {
  LogSettings settings;
  RESMGR_ASSIGN_OR_RETURN(settings.level, ParseLogLevel(config.level));
  RESMGR_ASSIGN_OR_RETURN(settings.format, ParseLogFormat(config.format));
  if (!config.debug.empty()) {
    RESMGR_ASSIGN_OR_RETURN(settings.debug, SourceFilter::Parse(config.debug));
  }
  if (!config.source.empty()) {
    RESMGR_ASSIGN_OR_RETURN(settings.enabled, SourceFilter::Parse(config.source));
  }
  return settings;
}

}  // namespace

Status CheckMessageSize(std::string_view message) {
  if (message.size() <= kMaxMessage) return OkStatus();
  return ResourceExhausted("the configuration is too long: a message of {} bytes, at most {}",
                           message.size(), kMaxMessage);
}

StatusOr<Config> Parse(const DeliveredConfig& source, const ConfigChecks& checks) {
  RESMGR_RETURN_IF_ERROR(CheckSize(source));
  if (source.text) return ParseConfigFile(*source.text, source.name, checks);
  return ParseConfigMap(source.data, source.name, checks);
}

Status SaveDeliveredConfig(const std::string& directory, const DeliveredConfig& source) {
  RESMGR_RETURN_IF_ERROR(RealFileSystem().MakeDirectory(directory));
  Json object = {{"version", 1}, {"name", source.name}};
  if (source.text) {
    object["text"] = *source.text;
  } else {
    object["data"] = source.data;
  }
  return AtomicWriteFile(PathIn(directory), JsonText(object, 1) + "\n", 0600);
}

StatusOr<std::optional<DeliveredConfig>> LoadDeliveredConfig(const std::string& directory) {
  const StatusOr<std::string> text = ReadFile(PathIn(directory), kMaxFile);
  if (text.status().code() == StatusCode::kNotFound) return std::nullopt;
  if (!text.ok()) return text.status();
  const std::optional<Json> parsed = ParseJson(*text);
  if (!parsed) return InvalidArgument("{} cannot be read: it is not JSON", PathIn(directory));
  try {
    const Json& object = *parsed;
    if (object.at("version").get<int>() != 1)
      return InvalidArgument("{} is of another version", PathIn(directory));
    DeliveredConfig source;
    source.name = object.at("name").get<std::string>();
    if (object.contains("text")) {
      source.text = object.at("text").get<std::string>();
    } else {
      source.data = object.at("data").get<std::map<std::string, std::string>>();
    }
    return source;
  } catch (const Json::exception& error) {
    return InvalidArgument("{} cannot be read: {}", PathIn(directory), error.what());
  }
}

Status ForgetDeliveredConfig(const std::string& directory) {
  const Status removed = RealFileSystem().Remove(PathIn(directory));
  return removed.code() == StatusCode::kNotFound ? OkStatus() : removed;
}

dump::Dumper::Options DumpOptions(const DumpConfig& config, const ConfigOptions& overrides,
                                  bool show_secrets, bool delivered, const std::string& directory) {
  dump::Dumper::Options options{
      .specs = config.specs, .file = config.file, .show_secrets = show_secrets};
  if (delivered && !overrides.Has("dump-file")) options.file_directory = directory;
  if (delivered && !overrides.Has("dump")) options.recording_directory = directory;
  return options;
}

Status ApplyLogging(const LoggerConfig& config) {
  RESMGR_ASSIGN_OR_RETURN(LogSettings settings, ReadLogging(config));
  ConfigureLogging(std::move(settings));
  return OkStatus();
}

std::string PolicyPart(const Config& config, const CpuSet& offline) {
  Config policy_only;
  policy_only.policy = config.policy;
  // These options move no container, and take effect without the policy.
  policy_only.policy.start_failure = {};
  policy_only.policy.refused_updates = {};
  // Sections of inactive policies have no effect, so they are not compared.
  std::erase_if(policy_only.policy.sections,
                [&](const auto& section) { return section.first != config.policy.active; });
  return fmt::format("{}\noffline: {}\n", PrintConfig(policy_only), offline.ToString());
}

ConfigReader::ConfigReader(Options options)
    : options_(std::move(options)), checks_(ChecksWith(options_.policies)) {}

StatusOr<ConfigCandidate> ConfigReader::Read(DeliveredConfig source) const {
  RESMGR_ASSIGN_OR_RETURN(Config config, Parse(source, checks_));
  RESMGR_RETURN_IF_ERROR(CheckActive(config.policy, options_.overrides));
  const std::vector<std::string> overridden = options_.overrides.Overridden(config);
  options_.overrides.ApplyTo(config);
  RESMGR_ASSIGN_OR_RETURN(ConfigCandidate candidate, Prepare(std::move(config), source.name, true));
  for (const std::string& key : overridden) {
    candidate.warnings.push_back(
        fmt::format("{} has no effect: the flag that cri-resmgr was started with wins", key));
  }
  candidate.keep = std::move(source);
  return candidate;
}

Status ConfigReader::PreparePolicy(const Config& config, ConfigCandidate& candidate) const {
  const Machine& machine = *options_.machine;
  RESMGR_ASSIGN_OR_RETURN(const PolicyCpus cpus, CpusFor(config.policy, machine, offline()));
  candidate.reserved = cpus.reserved;
  RESMGR_ASSIGN_OR_RETURN(candidate.policy, MakePolicy(config.policy, options_.runtimes, machine,
                                                       options_.policies, offline()));
  candidate.policy_part = PolicyPart(config, offline());
  candidate.warnings = ConfigWarnings(config, machine, options_.policies, offline());
  return OkStatus();
}

StatusOr<ConfigCandidate> ConfigReader::MakePolicyAnew(Config config) const {
  ConfigCandidate candidate;
  RESMGR_RETURN_IF_ERROR(PreparePolicy(config, candidate));
  candidate.config = std::move(config);
  return candidate;
}

std::shared_ptr<const ConfigReader> ConfigReader::WithOffline(const CpuSet& offline) const {
  Options options = options_;
  options.offline = offline;
  return std::make_shared<const ConfigReader>(std::move(options));
}

std::shared_ptr<const ConfigReader> ConfigReader::WithHooks(HooksConfig hooks) const {
  Options options = options_;
  options.hooks = std::move(hooks);
  return std::make_shared<const ConfigReader>(std::move(options));
}

StatusOr<ConfigCandidate> ConfigReader::Prepare(Config config, std::string name) const {
  return Prepare(std::move(config), std::move(name), false);
}

void ConfigReader::KeepStarted(Config& config, bool delivered,
                               std::vector<std::string>& warnings) const {
  Config silent;
  options_.overrides.ApplyTo(silent);
  const auto keep = [&](std::string_view modules, auto& part, const auto& started,
                        const auto& unsaid) {
    const auto wanted = std::exchange(part, started);
    if (wanted == started) return;
    if (!delivered) {
      warnings.push_back(fmt::format("{}: changes there take effect with a restart", modules));
    } else if (wanted != unsaid) {
      warnings.push_back(fmt::format(
          "{} has no effect in a configuration that is delivered: it belongs in the daemon's own "
          "file, and takes effect with {}",
          modules, modules == "nri" ? "SIGHUP" : "a restart"));
    }
  };
  if (delivered) {
    keep("nri", config.nri, options_.nri, silent.nri);
  } else {
    keep("nri.Host.Socket", config.nri.socket, options_.nri.socket, silent.nri.socket);
    keep("nri.Host.ExternalPlugins", config.nri.external_plugins, options_.nri.external_plugins,
         silent.nri.external_plugins);
  }
  keep("runtimes, runtimeClasses", config.runtimes, options_.runtimes, silent.runtimes);
}

StatusOr<ConfigCandidate> ConfigReader::Prepare(Config config, std::string name,
                                                bool delivered) const {
  ConfigCandidate candidate;
  if (delivered && !config.hooks.stated) config.hooks = options_.hooks;
  if (!options_.asks_hook_servers && !config.hooks.directory.empty())
    return InvalidArgument("hooks.Directory: hook servers are not asked in this mode");
  RESMGR_RETURN_IF_ERROR(PreparePolicy(config, candidate));
  RESMGR_ASSIGN_OR_RETURN(candidate.logging, ReadLogging(config.logger));
  auto dump = dump::Dumper::Read(DumpOptions(config.dump, options_.overrides, options_.dump_secrets,
                                             delivered, options_.dump_directory));
  if (!dump.ok()) return Annotate(dump.status(), "dump");
  candidate.dump = *std::move(dump);
  RESMGR_RETURN_IF_ERROR(Annotate(dump::Dumper::Probe(candidate.dump), "dump"));
  if (!delivered) RESMGR_RETURN_IF_ERROR(nri::UnsupportedPolicyOf(config.nri).status());
  std::vector<std::string> kept_warnings;
  KeepStarted(config, delivered, kept_warnings);
  std::ranges::move(kept_warnings, std::back_inserter(candidate.warnings));
  candidate.config = std::move(config);
  candidate.name = std::move(name);
  return candidate;
}

}  // namespace resmgr
