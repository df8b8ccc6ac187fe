// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace resmgr {

// A plugin of a front door, as people see it: one of NRI, or a hook server. A value.
struct PluginView {
  enum class State { kReady, kDisconnected, kFailed };

  std::string kind{};   // "nri" or "hook"
  std::string name{};   // "logger"
  std::string index{};  // "10"; "" where plugins have none
  State state = State::kDisconnected;
  std::vector<std::string> events{};  // that it has subscribed to
  uint64_t calls = 0;
  uint64_t failures = 0;  // of these: refused, late, or lost
  std::string last_error{};
  uint64_t p50_micros = 0;  // of its last answers; 0: there are none
};

// "ready", "disconnected", "failed".
constexpr std::string_view ToString(PluginView::State state) {
  switch (state) {
    case PluginView::State::kReady:
      return "ready";
    case PluginView::State::kDisconnected:
      return "disconnected";
    case PluginView::State::kFailed:
      return "failed";
  }
  return "failed";
}

}  // namespace resmgr
