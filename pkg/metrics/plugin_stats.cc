// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/plugin_stats.h"

#include <algorithm>

#include "pkg/base/parse.h"

namespace resmgr {

std::string ErrorText(std::string_view error) {
  constexpr size_t kMostBytes = 512;
  return Printable(error, kMostBytes);
}

void PluginStats::NoteAnswer(std::chrono::nanoseconds took, const Status& status) {
  ++calls_;
  busy_ += took;
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
  micros_.at(answers_++ % kMostSamples) =
      static_cast<uint32_t>(std::clamp<int64_t>(micros, 0, UINT32_MAX));
  if (counter_ != nullptr) counter_->Answered(took);
  if (status.ok()) return;
  ++failures_;
  if (counter_ != nullptr) counter_->Failed();
  last_error_ = ErrorText(Describe(status));
}

void PluginStats::NoteFailure(const Status& why) {
  ++calls_;
  ++failures_;
  if (counter_ != nullptr) counter_->Failed();
  last_error_ = ErrorText(Describe(why));
}

uint64_t PluginStats::MedianMicros() const {
  const size_t count = std::min<size_t>(answers_, kMostSamples);
  if (count == 0) return 0;
  auto samples = micros_;
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(samples.begin(), middle, samples.begin() + static_cast<std::ptrdiff_t>(count));
  return *middle;
}

}  // namespace resmgr
