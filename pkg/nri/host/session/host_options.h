// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "pkg/metrics/metrics.h"
#include "pkg/nri/host/session/plugin_port.h"

namespace resmgr::nri {

// The way plugins are served (configuration `nri.Host`). The defaults are those of containerd and
// CRI-O, except for `strikes` and `sync_timeout`: one late answer, or a node with many containers,
// does not disconnect a plugin here (containerd/nri#114, containerd#13901).
struct HostOptions {
  std::string socket = "/var/run/nri/nri.sock";
  // Whether plugins may connect to the socket; otherwise it is not created.
  bool external_plugins = true;
  // Executables "NN-name" in this directory are started as plugins. "": none.
  std::string plugin_path = "/opt/nri/plugins";
  // "NN-name.conf" or "name.conf" in this directory is such a plugin's configuration. "": none.
  std::string plugin_config_path = "/etc/nri/conf.d";

  // Time from the connection until a plugin has registered.
  std::chrono::milliseconds registration_timeout{5'000};
  // Time for all pieces of all pods and containers together.
  std::chrono::milliseconds sync_timeout{30'000};
  // Number of late answers in a row that disconnect a plugin. A question that is not asked because
  // another answer is overdue counts as late when its own time is over. 0: no limit.
  uint32_t strikes = 3;
  // Time for plugins to answer that they shut down, when the host stops.
  std::chrono::milliseconds last_words{500};
  // Number of plugins that are connected at the same time.
  size_t most_plugins = 64;

  // For plugins without settings of their own.
  PluginSettings settings{};
  std::map<std::string, PluginSettings, std::less<>> plugins{};  // by "10-logger"

  // Pauses before a started plugin that has ended is started again: doubled each time from the
  // first to the last, until one has lived for longer than the last.
  std::chrono::milliseconds first_restart{1'000};
  std::chrono::milliseconds last_restart{60'000};

  // Outlives the host; null: no counting.
  Metrics* metrics = nullptr;

  const PluginSettings& SettingsOf(std::string_view full_name) const {
    const auto found = plugins.find(full_name);
    return found == plugins.end() ? settings : found->second;
  }
};

// The runtime's name and version for plugins; some tell containerd from CRI-O by them.
struct RuntimeIdentity {
  std::string name;     // "containerd"
  std::string version;  // "1.7.24"
};

}  // namespace resmgr::nri
