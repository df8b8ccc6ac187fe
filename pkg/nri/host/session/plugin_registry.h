// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/metrics/metrics.h"
#include "pkg/metrics/plugin_stats.h"
#include "pkg/model/plugin_view.h"

namespace resmgr::nri {

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
  void Remove(std::string_view full_name, bool was_ready, PluginView::State state,
              const Status& why);

  // The process of a started plugin has ended; `why` explains more than the end of the session
  // does.
  void NoteExit(std::string_view index, std::string_view name, const Status& why);

  // By index and name.
  std::vector<PluginView> List() const;

 private:
  struct Known {
    std::string index;
    std::string name;
    size_t sessions = 0;
    size_t ready = 0;  // ready sessions
    PluginView::State state = PluginView::State::kDisconnected;
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
