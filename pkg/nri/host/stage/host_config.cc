// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/stage/host_config.h"

#include <string_view>

#include <fmt/ranges.h>

#include "pkg/base/parse.h"
#include "pkg/nri/host/merge/field_ledger.h"

namespace resmgr::nri {
namespace {

constexpr std::string_view kDeviceRules = "DeviceRules";

// NONE stands for the rules for devices.
std::optional<api::Field> FieldNamed(std::string_view name) {
  if (EqualsIgnoreCase(name, kDeviceRules)) return api::FIELD_NONE;
  for (int number = 1; number < api::Field_ARRAYSIZE; ++number) {
    const auto field = static_cast<api::Field>(number);
    if (EqualsIgnoreCase(name, FieldName(field))) return field;
  }
  return std::nullopt;
}

std::vector<std::string_view> KnownFields() {
  std::vector<std::string_view> names{kDeviceRules};
  for (int number = 1; number < api::Field_ARRAYSIZE; ++number)
    names.push_back(FieldName(static_cast<api::Field>(number)));
  return names;
}

}  // namespace

HostOptions HostOptionsOf(const NriHostConfig& config) {
  HostOptions options;
  options.socket = config.socket;
  options.external_plugins = config.external_plugins;
  options.plugin_path = config.plugin_path;
  options.plugin_config_path = config.plugin_config_path;
  options.registration_timeout = config.registration_timeout;
  options.sync_timeout = config.sync_timeout;
  options.strikes = static_cast<uint32_t>(config.strikes);
  options.settings.request_timeout = config.request_timeout;
  for (const auto& [name, plugin] : config.plugins) {
    options.plugins.emplace(
        name,
        PluginSettings{.failure = plugin.failure,
                       .request_timeout = plugin.request_timeout.value_or(config.request_timeout),
                       .required = plugin.required});
  }
  return options;
}

StatusOr<UnsupportedPolicy> UnsupportedPolicyOf(const NriHostConfig& config) {
  UnsupportedPolicy policy;
  for (const auto& [name, failure] : config.unsupported) {
    const auto field = FieldNamed(name);
    if (!field) {
      return InvalidArgument("nri.Host.Unsupported: NRI has no field \"{}\"; known here: {}",
                             Printable(name, 64), fmt::join(KnownFields(), ", "));
    }
    policy.Set(*field, failure);
  }
  return policy;
}

std::vector<std::string> RequiredPluginsOf(const NriHostConfig& config) {
  std::vector<std::string> required;
  for (const auto& [name, plugin] : config.plugins) {
    if (plugin.required) required.push_back(name);
  }
  return required;
}

NriStageOptions StageOptionsOf(const NriHostConfig& config) {
  NriStageOptions options;
  options.budget = config.call_timeout;
  options.required = RequiredPluginsOf(config);
  options.validator = config.validator;
  options.unsupported = UnsupportedPolicyOf(config).value_or(UnsupportedPolicy());
  return options;
}

}  // namespace resmgr::nri
