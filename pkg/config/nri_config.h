// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/failure_policy.h"
#include "pkg/config/config_section.h"

namespace resmgr {

// Settings of one NRI plugin. A setting that is not given has the value that plugins without an
// entry have.
struct NriPluginConfig {
  FailurePolicy failure = FailurePolicy::kIgnore;
  std::optional<std::chrono::milliseconds> request_timeout{};
  // Containers are created only while it is connected.
  bool required = false;

  friend bool operator==(const NriPluginConfig&, const NriPluginConfig&) = default;
};

// Changes that no plugin may make (the default validator of NRI 0.10 and its names).
struct NriValidatorConfig {
  bool reject_oci_hooks = false;
  bool reject_runtime_default_seccomp = false;
  bool reject_unconfined_seccomp = false;
  bool reject_custom_seccomp = false;
  bool reject_namespaces = false;
  bool reject_sysctls = false;
  // A pod with this annotation set to "true" may be created without required plugins. "": none.
  std::string tolerate_missing_annotation{};

  friend bool operator==(const NriValidatorConfig&, const NriValidatorConfig&) = default;
};

// Configures the host of NRI plugins.
struct NriHostConfig {
  std::string socket{};                                // "": plugins are not served
  std::string plugin_path = "/opt/nri/plugins";        // "": plugins are not launched
  std::string plugin_config_path = "/etc/nri/conf.d";  // "": launched plugins have no configuration
  bool external_plugins = true;                        // whether plugins may connect to the socket
  std::chrono::milliseconds registration_timeout{5'000};  // since the connection
  std::chrono::milliseconds request_timeout{2'000};       // time limit of the answer to one event
  std::chrono::milliseconds sync_timeout{30'000};         // limit of sending all containers
  std::chrono::milliseconds call_timeout{20'000};  // for all plugins together, in one CRI call
  int64_t strikes = 3;  // late answers in a row that disconnect a plugin; 0: no limit
  NriValidatorConfig validator{};
  // The policies for changes that the CRI cannot express, by NRI's name of the field; other fields
  // have the defaults. The names are checked in pkg/nri/host/stage/host_config.h.
  std::map<std::string, FailurePolicy, std::less<>> unsupported{};
  std::map<std::string, NriPluginConfig, std::less<>> plugins{};  // by "10-logger"

  friend bool operator==(const NriHostConfig&, const NriHostConfig&) = default;
};

// Plugins are identified and ordered by "NN-name" (NRI 0.12): an index of two digits, a name of
// letters, digits and _.+-.
inline constexpr size_t kLongestNriPluginName = 64;
bool IsNriPluginIndex(std::string_view index);
bool IsNriPluginName(std::string_view name);

// The module `nri`.
void DescribeNri(ConfigSection& root, NriHostConfig& host);

}  // namespace resmgr
