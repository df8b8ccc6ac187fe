// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/nri_config.h"

#include <algorithm>
#include <string_view>

#include "pkg/base/characters.h"
#include "pkg/base/parse.h"
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

ConfigSection& Path(ConfigSection& section, std::string_view key, std::string& path,
                    std::string_view help) {
  return section.Parse(
      key, path.empty() ? std::string(kDisabled) : path,
      [&path](std::string_view text) -> Status {
        path = text == kDisabled ? "" : StripUnixPrefix(text);
        if (path.empty() || path.front() == '/') return OkStatus();
        return InvalidArgument("\"{}\" is neither an absolute path nor \"{}\"", Printable(text),
                               kDisabled);
      },
      help);
}

// "10-logger".
Status CheckFullPluginName(std::string_view name) {
  const size_t dash = std::min(name.find('-'), name.size());
  if (IsNriPluginIndex(name.substr(0, dash)) &&
      IsNriPluginName(name.substr(std::min(dash + 1, name.size())))) {
    return OkStatus();
  }
  return InvalidArgument("\"{}\" is not a plugin's index and name, such as 10-logger",
                         Printable(name, 64));
}

Status DescribePlugin(std::string_view /*name*/, ConfigSection& plugin, NriPluginConfig& config) {
  plugin.Choice("FailurePolicy", {FailurePolicy::kFail, FailurePolicy::kIgnore}, config.failure,
                "what happens to a call if the plugin does not answer in time or its connection is "
                "lost: `ignore` skips the plugin, `fail` refuses the call");
  plugin
      .Duration("RequestTimeout", kShortest, kLongestCall, config.request_timeout,
                "the time limit for an answer of this plugin")
      .Default("that of all plugins");
  plugin.Bool("Required", config.required,
              "`true`: containers are created only while the plugin is connected");
  return OkStatus();
}

void DescribeValidator(ConfigSection& validator, NriValidatorConfig& config) {
  validator.Bool("RejectOCIHooks", config.reject_oci_hooks, "no plugin may add OCI hooks");
  validator.Bool("RejectRuntimeDefaultSeccomp", config.reject_runtime_default_seccomp,
                 "no plugin may change the runtime's default seccomp profile");
  validator.Bool("RejectUnconfinedSeccomp", config.reject_unconfined_seccomp,
                 "no plugin may change an unconfined seccomp profile");
  validator.Bool("RejectCustomSeccomp", config.reject_custom_seccomp,
                 "no plugin may change a custom seccomp profile");
  validator.Bool("RejectNamespaces", config.reject_namespaces, "no plugin may change namespaces");
  validator.Bool("RejectSysctls", config.reject_sysctls, "no plugin may change sysctls");
  validator
      .Text("TolerateMissingPluginsAnnotation", config.tolerate_missing_annotation,
            "the annotation by which a pod may run without the required plugins")
      .Default("none");
}

void DescribeUnsupported(ConfigSection& host, NriHostConfig& config) {
  ConfigNode shown = MapNode({});
  for (const auto& [field, policy] : config.unsupported)
    shown.entries.push_back({field, 1, ScalarNode(ToString(policy))});
  const auto read = [&](const ConfigNode& value, const std::string&) -> Status {
    if (value.kind != ConfigNode::Kind::kMap && value.kind != ConfigNode::Kind::kNull) {
      return InvalidArgument("must be a map, not {}", ToString(value.kind));
    }
    for (const ConfigNode::Entry& entry : value.entries) {
      const auto policy = ParseFailurePolicy(entry.value.text);
      const std::string name = fmt::format("Unsupported.{}", Printable(entry.key, 64));
      if (entry.value.kind != ConfigNode::Kind::kScalar) {
        host.Fail(entry.value, name,
                  fmt::format("must be a single value, not {}", ToString(entry.value.kind)));
      } else if (!policy.ok()) {
        host.Fail(entry.value, name, Message(policy.status()));
      } else {
        config.unsupported[entry.key] = *policy;
      }
    }
    return OkStatus();
  };
  host.Value("Unsupported", std::move(shown), read,
             "for each NRI field name, and for `DeviceRules`: the reaction if a plugin requests a "
             "change that the CRI cannot express, `fail` or `ignore`")
      .Default("by field");
}

void DescribeHost(ConfigSection& host, NriHostConfig& config) {
  Path(host, "Socket", config.socket,
       "the socket on which NRI plugins are served, for runtimes without NRI, in the modes `relay` "
       "and `docker`; `disabled`: none are served")
      .Flag("nri-host", "SOCKET");
  Path(host, "PluginPath", config.plugin_path,
       "the programs `NN-name` in this directory are started as plugins; `disabled`: none");
  Path(host, "PluginConfigPath", config.plugin_config_path,
       "the directory with the configuration of these plugins: `NN-name.conf` or `name.conf`");
  host.Bool("ExternalPlugins", config.external_plugins, "plugins may connect to the socket");
  host.Duration("RegistrationTimeout", kShortest, kLongest, config.registration_timeout,
                "the time limit for a plugin to register after it has connected");
  host.Duration("RequestTimeout", kShortest, kLongestCall, config.request_timeout,
                "the time limit for an answer of a plugin");
  host.Duration("SyncTimeout", kShortest, kLongest, config.sync_timeout,
                "the time limit for a plugin to process the list of all running pods and "
                "containers");
  host.Duration("CallTimeout", kShortest, kLongestCall, config.call_timeout,
                "the time limit for all plugins together in one CRI call, in all its phases");
  host.Int("Strikes", 0, kMostStrikes, config.strikes,
           "the number of consecutive late answers after which a plugin is ended; `0`: never");
  host.Map("Validator",
           [&config](ConfigSection& section) { DescribeValidator(section, config.validator); });
  DescribeUnsupported(host, config);
  host.Each<NriPluginConfig>("Plugins", "PLUGIN", config.plugins, CheckFullPluginName,
                             DescribePlugin, "the settings of single plugins, by `NN-name`");
}

}  // namespace

bool IsNriPluginIndex(std::string_view index) {
  return index.size() == 2 && std::ranges::all_of(index, IsDigit);
}

bool IsNriPluginName(std::string_view name) {
  const auto is_of_name = [](char c) {
    return IsLetterOrDigit(c) || std::string_view("_.+-").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= kLongestNriPluginName &&
         std::ranges::all_of(name, is_of_name);
}

void DescribeNri(ConfigSection& root, NriHostConfig& host) {
  const auto describe = [&host](ConfigSection& section) { DescribeHost(section, host); };
  root.Map(
      "nri", [&](ConfigSection& nri) { nri.Map("Host", describe); }, "NRI plugins");
}

}  // namespace resmgr
