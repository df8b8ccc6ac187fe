// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/metrics/metrics.h"
#include "pkg/metrics/plugin_stats.h"

namespace resmgr::nri {

enum class PluginState {
  kDisconnected,  // it closed the connection, or is not ready yet
  kReady,
  kFailed,  // disconnected because of an error, or never started
};
std::string_view ToString(PluginState state);

// A plugin's state for `cri-resmgr-ctl plugins`.
struct PluginStatus {
  std::string index;  // "10"
  std::string name;   // "logger"
  PluginState state = PluginState::kDisconnected;
  std::vector<std::string> events;  // "CreateContainer"
  uint64_t calls = 0;
  uint64_t failures = 0;
  std::string last_error;  // "": none so far
  uint64_t p50_micros = 0;
  std::chrono::nanoseconds busy{0};  // all answered calls together
};

// The plugins that are or were connected; only the last ones that are gone are kept. Loop's thread
// only.
class PluginRegistry {
 public:
  static constexpr size_t kMostKnown = 128;

  // The metrics outlive this object; null: no counting.
  explicit PluginRegistry(Metrics* metrics = nullptr) : metrics_(metrics) {}

  // Adds a session of the plugin. The figures are shared by all its sessions, and are valid until
  // the matching Remove.
  PluginStats& Add(std::string_view index, std::string_view name);
  void SetReady(std::string_view full_name, uint32_t events);
  // A session of the plugin has ended; another one may be ready.
  void Remove(std::string_view full_name, bool was_ready, PluginState state, const Status& why);

  // The process of a started plugin has ended; `why` explains more than the end of the session
  // does.
  void NoteExit(std::string_view index, std::string_view name, const Status& why);

  // By index and name.
  std::vector<PluginStatus> List() const;

 private:
  struct Known {
    std::string index;
    std::string name;
    size_t sessions = 0;
    size_t ready = 0;  // ready sessions
    PluginState state = PluginState::kDisconnected;
    uint32_t events = 0;
    std::string exit;        // how its process ended; reset when it is ready again
    std::string last_error;  // error of the connection, newer than that of the figures
    PluginStats stats;
    uint64_t ended = 0;  // orders plugins by the end of their last sessions
  };

  void ForgetOldest();
  void CountReady();

  Metrics* metrics_;
  std::map<std::string, Known, std::less<>> known_;  // by full name
  uint64_t ended_ = 0;
};

}  // namespace resmgr::nri
