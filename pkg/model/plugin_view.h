// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace resmgr {

// A plugin of a front door for display: an NRI plugin, or a hook server. A value type.
struct PluginView {
  enum class State {
    kDisconnected,  // it closed the connection, or is not ready yet
    kReady,
    kFailed,  // disconnected because of an error, or never started
  };

  std::string kind{};   // "nri" or "hook"
  std::string name{};   // "logger"
  std::string index{};  // "10"; "" for hook servers
  State state = State::kDisconnected;
  std::vector<std::string> events{};  // subscribed ones, "CreateContainer"
  uint64_t calls = 0;
  uint64_t failures = 0;     // refused, late and lost calls together
  std::string last_error{};  // "": none so far
  uint64_t p50_micros = 0;   // median of recent answers; 0: no answers yet
};

inline std::string_view ToString(PluginView::State state) {
  switch (state) {
    case PluginView::State::kDisconnected:
      return "disconnected";
    case PluginView::State::kReady:
      return "ready";
    case PluginView::State::kFailed:
      return "failed";
  }
  return "";
}

}  // namespace resmgr
