// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace resmgr {

// Counts what one plugin was asked. Thread-safe.
class PluginCounter {
 public:
  virtual ~PluginCounter() = default;
  // plugin_call_seconds{kind,plugin}: it has answered, be it with a refusal.
  virtual void Answered(std::chrono::nanoseconds took) = 0;
  // plugin_failures_total{kind,plugin}: it refused, was late, or was lost.
  virtual void Failed() = 0;
};

}  // namespace resmgr
