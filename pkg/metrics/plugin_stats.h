// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// Counts the calls of one plugin. Thread-safe.
class PluginCounter {
 public:
  virtual ~PluginCounter() = default;
  // plugin_call_seconds{kind,plugin}: the plugin has answered; the answer may be a refusal.
  virtual void Answered(std::chrono::nanoseconds took) = 0;
  // plugin_failures_total{kind,plugin}: the plugin has refused, was late, or was lost.
  virtual void Failed() = 0;
};

// The form in which an error that may quote a plugin is stored: shortened and printable.
std::string ErrorText(std::string_view error);

// Figures about a plugin's calls, for `cri-resmgr-ctl plugins` and the metrics. A value type.
class PluginStats {
 public:
  // Counts calls also in `counter`, which must stay valid; may be null.
  void CountBy(PluginCounter* counter) { counter_ = counter; }

  // The plugin has answered, or was lost before it answered.
  void NoteAnswer(std::chrono::nanoseconds took, const Status& status);
  // The plugin did not answer in time, or was not asked at all because it is late.
  void NoteFailure(const Status& why);

  uint64_t calls() const { return calls_; }
  // Calls that were refused or not answered.
  uint64_t failures() const { return failures_; }
  const std::string& last_error() const { return last_error_; }
  // Sum of the times of all answered calls.
  std::chrono::nanoseconds busy() const { return busy_; }
  // Median of the last kMostSamples answers; 0 without any.
  uint64_t MedianMicros() const;

 private:
  static constexpr size_t kMostSamples = 128;

  PluginCounter* counter_ = nullptr;
  uint64_t calls_ = 0;
  uint64_t failures_ = 0;
  uint64_t answers_ = 0;
  std::chrono::nanoseconds busy_{0};
  std::string last_error_;
  std::array<uint32_t, kMostSamples> micros_{};
};

}  // namespace resmgr
