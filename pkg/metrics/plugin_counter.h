// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace resmgr {

// Counts the calls of one plugin. Thread-safe.
class PluginCounter {
 public:
  virtual ~PluginCounter() = default;
  // plugin_call_seconds{kind,plugin}: an answer, which may be a refusal.
  virtual void Answered(std::chrono::nanoseconds took) = 0;
  // plugin_failures_total{kind,plugin}: a refusal, a late answer, or a loss.
  virtual void Failed() = 0;
};

}  // namespace resmgr
