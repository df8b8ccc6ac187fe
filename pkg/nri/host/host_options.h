// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "pkg/metrics/metrics.h"
#include "pkg/nri/host/plugin_port.h"

namespace resmgr::nri {

// How plugins are served (configuration `nri.Host`). The defaults are those of containerd and
// CRI-O, but for `strikes` and `sync_timeout`: one late answer, or a node of many containers,
// does not cost a plugin here (containerd/nri#114, containerd#13901).
struct HostOptions {
  std::string socket = "/var/run/nri/nri.sock";
  // Plugins may connect to the socket; else it is not made.
  bool external_plugins = true;
  // Executables "NN-name" in it are started as plugins. "": none are.
  std::string plugin_path = "/opt/nri/plugins";
  // "NN-name.conf" or "name.conf" in it is what such a plugin is configured with. "": nothing is.
  std::string plugin_config_path = "/etc/nri/conf.d";

  // From the connection until a plugin has registered.
  std::chrono::milliseconds registration_timeout{5'000};
  // For all pieces of all pods and containers together.
  std::chrono::milliseconds sync_timeout{30'000};
  // So many answers in a row that are too late end a plugin. A question that is not asked since
  // another one is overdue counts once its own time is over. 0: none ever does.
  uint32_t strikes = 3;
  // Until plugins have answered that they shut down, when the host stops.
  std::chrono::milliseconds last_words{500};
  // Plugins that are connected at the same time.
  size_t most_plugins = 64;

  // Of plugins that have no settings of their own.
  PluginSettings settings{};
  std::map<std::string, PluginSettings, std::less<>> plugins{};  // by "10-logger"

  // A plugin that was started and has ended is started again after a pause, doubled each time from
  // the first to the last until one has lived for longer than the last.
  std::chrono::milliseconds first_restart{1'000};
  std::chrono::milliseconds last_restart{60'000};

  // Outlives the host; null: nothing is counted.
  Metrics* metrics = nullptr;

  const PluginSettings& SettingsOf(std::string_view full_name) const {
    const auto found = plugins.find(full_name);
    return found == plugins.end() ? settings : found->second;
  }
};

// What plugins are told of the runtime behind us, by which some tell containerd from CRI-O.
struct RuntimeIdentity {
  std::string name;     // "containerd"
  std::string version;  // "1.7.24"
};

}  // namespace resmgr::nri
