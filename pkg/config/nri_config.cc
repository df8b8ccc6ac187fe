// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/nri_config.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/kube/duration.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kDisabled = "disabled";
constexpr milliseconds kShortest{1};
constexpr milliseconds kLongest = std::chrono::minutes(10);
// The kubelet gives up a CreateContainer after two minutes.
constexpr milliseconds kLongestCall = std::chrono::minutes(2);
constexpr int64_t kMostStrikes = 1'000'000;

void ReadPath(MapReader& reader, std::string_view key, std::string& path) {
  reader.Text(key, path);
  path = std::string(PathOrNone(path));
}

void ReadFailurePolicy(MapReader& plugin, FailurePolicy& failure) {
  plugin.Parse("FailurePolicy", [&failure](std::string_view text, const std::string&) -> Status {
    RESMGR_ASSIGN_OR_RETURN(failure, ParseFailurePolicy(text));
    return OkStatus();
  });
}

// "NN-name", by which plugins are known and ordered (NRI 0.12: names of letters, digits and _.+-).
bool IsPluginName(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_of_name = [is_digit](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("_.+-").find(c) != std::string_view::npos;
  };
  constexpr size_t kIndex = 3;
  return name.size() > kIndex && is_digit(name[0]) && is_digit(name[1]) && name[2] == '-' &&
         std::all_of(name.begin() + kIndex, name.end(), is_of_name);
}

void ReadPlugins(MapReader& host, NriHostConfig& config) {
  host.Each("Plugins", [&config](std::string_view name, MapReader& plugin) -> Status {
    if (!IsPluginName(name)) {
      return InvalidArgument("\"{}\" is not a plugin's index and name, such as 10-logger",
                             Printable(name, 64));
    }
    NriPluginConfig& settings = config.plugins[std::string(name)];
    ReadFailurePolicy(plugin, settings.failure);
    milliseconds timeout{0};
    plugin.Duration("RequestTimeout", kShortest, kLongestCall, timeout);
    if (timeout > milliseconds(0)) settings.request_timeout = timeout;
    plugin.Bool("Required", settings.required);
    return OkStatus();
  });
}

void ReadValidator(MapReader& validator, NriValidatorConfig& config) {
  validator.Bool("RejectOCIHooks", config.reject_oci_hooks);
  validator.Bool("RejectRuntimeDefaultSeccomp", config.reject_runtime_default_seccomp);
  validator.Bool("RejectUnconfinedSeccomp", config.reject_unconfined_seccomp);
  validator.Bool("RejectCustomSeccomp", config.reject_custom_seccomp);
  validator.Bool("RejectNamespaces", config.reject_namespaces);
  validator.Bool("RejectSysctls", config.reject_sysctls);
  validator.Text("TolerateMissingPluginsAnnotation", config.tolerate_missing_annotation);
}

void ReadUnsupported(MapReader& host, NriHostConfig& config) {
  host.EachText("Unsupported", [&config](std::string_view field, std::string_view text) -> Status {
    RESMGR_ASSIGN_OR_RETURN(config.unsupported[std::string(field)], ParseFailurePolicy(text));
    return OkStatus();
  });
}

void ReadHost(MapReader& host, NriHostConfig& config) {
  ReadPath(host, "Socket", config.socket);
  ReadPath(host, "PluginPath", config.plugin_path);
  ReadPath(host, "PluginConfigPath", config.plugin_config_path);
  host.Bool("ExternalPlugins", config.external_plugins);
  host.Duration("RegistrationTimeout", kShortest, kLongest, config.registration_timeout);
  host.Duration("RequestTimeout", kShortest, kLongestCall, config.request_timeout);
  host.Duration("SyncTimeout", kShortest, kLongest, config.sync_timeout);
  host.Duration("CallTimeout", kShortest, kLongestCall, config.call_timeout);
  host.Int("Strikes", 0, kMostStrikes, config.strikes);
  host.Map("Validator",
           [&config](MapReader& validator) { ReadValidator(validator, config.validator); });
  ReadUnsupported(host, config);
  ReadPlugins(host, config);
}

ConfigNode::Entry PathEntry(std::string_view key, std::string_view path) {
  return {std::string(key), 1, ScalarNode(path.empty() ? kDisabled : path)};
}

ConfigNode::Entry BoolEntry(std::string_view key, bool value) {
  return {std::string(key), 1, ScalarNode(value ? "true" : "false")};
}

ConfigNode::Entry DurationEntry(std::string_view key, milliseconds value) {
  return {std::string(key), 1, ScalarNode(DurationText(value))};
}

ConfigNode ValidatorNode(const NriValidatorConfig& validator) {
  return MapNode(
      {BoolEntry("RejectOCIHooks", validator.reject_oci_hooks),
       BoolEntry("RejectRuntimeDefaultSeccomp", validator.reject_runtime_default_seccomp),
       BoolEntry("RejectUnconfinedSeccomp", validator.reject_unconfined_seccomp),
       BoolEntry("RejectCustomSeccomp", validator.reject_custom_seccomp),
       BoolEntry("RejectNamespaces", validator.reject_namespaces),
       BoolEntry("RejectSysctls", validator.reject_sysctls),
       {"TolerateMissingPluginsAnnotation", 1, ScalarNode(validator.tolerate_missing_annotation)}});
}

ConfigNode PluginNode(const NriPluginConfig& plugin) {
  ConfigNode node = MapNode({{"FailurePolicy", 1, ScalarNode(ToString(plugin.failure))}});
  if (plugin.request_timeout) {
    node.entries.push_back(DurationEntry("RequestTimeout", *plugin.request_timeout));
  }
  node.entries.push_back(BoolEntry("Required", plugin.required));
  return node;
}

}  // namespace

std::string_view PathOrNone(std::string_view text) {
  return text == kDisabled ? std::string_view() : StripUnixPrefix(text);
}

void ReadNri(MapReader& nri, NriHostConfig& host) {
  nri.Map("Host", [&host](MapReader& section) { ReadHost(section, host); });
}

ConfigNode NriNode(const NriHostConfig& host) {
  ConfigNode unsupported = MapNode({});
  for (const auto& [field, policy] : host.unsupported)
    unsupported.entries.push_back({field, 1, ScalarNode(ToString(policy))});
  ConfigNode plugins = MapNode({});
  for (const auto& [name, plugin] : host.plugins)
    plugins.entries.push_back({name, 1, PluginNode(plugin)});
  return MapNode({{"Host", 1,
                   MapNode({PathEntry("Socket", host.socket),
                            PathEntry("PluginPath", host.plugin_path),
                            PathEntry("PluginConfigPath", host.plugin_config_path),
                            BoolEntry("ExternalPlugins", host.external_plugins),
                            DurationEntry("RegistrationTimeout", host.registration_timeout),
                            DurationEntry("RequestTimeout", host.request_timeout),
                            DurationEntry("SyncTimeout", host.sync_timeout),
                            DurationEntry("CallTimeout", host.call_timeout),
                            {"Strikes", 1, ScalarNode(fmt::format("{}", host.strikes))},
                            {"Validator", 1, ValidatorNode(host.validator)},
                            {"Unsupported", 1, std::move(unsupported)},
                            {"Plugins", 1, std::move(plugins)}})}});
}

}  // namespace resmgr
