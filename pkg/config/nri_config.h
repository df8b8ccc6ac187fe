// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/failure_policy.h"
#include "pkg/config/config_node.h"
#include "pkg/config/map_reader.h"

namespace resmgr {

// How one NRI plugin is treated. What is not set is as for plugins without an entry of their own.
struct NriPluginConfig {
  FailurePolicy failure = FailurePolicy::kIgnore;
  std::optional<std::chrono::milliseconds> request_timeout{};
  // Containers are created only while it is connected.
  bool required = false;

  friend bool operator==(const NriPluginConfig&, const NriPluginConfig&) = default;
};

// What no plugin may change (the default validator of NRI 0.10 and its names).
struct NriValidatorConfig {
  bool reject_oci_hooks = false;
  bool reject_runtime_default_seccomp = false;
  bool reject_unconfined_seccomp = false;
  bool reject_custom_seccomp = false;
  bool reject_namespaces = false;
  bool reject_sysctls = false;
  // A pod whose annotation of this name is "true" may go without required plugins. "": none.
  std::string tolerate_missing_annotation{};

  friend bool operator==(const NriValidatorConfig&, const NriValidatorConfig&) = default;
};

// How NRI plugins are served.
struct NriHostConfig {
  std::string socket{};                                   // ""; no plugins are served
  std::string plugin_path = "/opt/nri/plugins";           // "": none are launched
  std::string plugin_config_path = "/etc/nri/conf.d";     // "": they are configured with nothing
  bool external_plugins = true;                           // plugins may connect to the socket
  std::chrono::milliseconds registration_timeout{5'000};  // from the connection on
  std::chrono::milliseconds request_timeout{2'000};       // for the answer to one event
  std::chrono::milliseconds sync_timeout{30'000};         // for the list of what runs
  std::chrono::milliseconds call_timeout{20'000};         // all plugins together, for one CRI call
  int64_t strikes = 3;  // late answers in a row that end a plugin; 0: none do
  NriValidatorConfig validator{};
  // What follows where a plugin wants what the CRI cannot express, by NRI's name of the field; of
  // others as by default. The names are checked where they are known (pkg/nri/host/host_config.h).
  std::map<std::string, FailurePolicy, std::less<>> unsupported{};
  std::map<std::string, NriPluginConfig, std::less<>> plugins{};  // by "10-logger"

  friend bool operator==(const NriHostConfig&, const NriHostConfig&) = default;
};

// Reads the module `nri`.
void ReadNri(MapReader& nri, NriHostConfig& host);
// The same, for printing: with every option.
ConfigNode NriNode(const NriHostConfig& host);

// A path or socket as people write it: "disabled" is none, "", and "unix://" before it is left out.
std::string_view PathOrNone(std::string_view text);

}  // namespace resmgr
