// SPDX-License-Identifier: Apache-2.0
#include "agent/pacing.h"

#include <algorithm>

namespace resmgr::agent {

RetryGate::Duration RetryGate::Failed(TimePoint now) {
  if (const Duration wait = Postponed(now); wait.count() > 0) return wait;
  if (!outage_began_) outage_began_ = now;
  const auto outage = std::chrono::duration_cast<Duration>(now - *outage_began_);
  longest_wait_ = std::clamp(outage * 2 / 3, options_.first, options_.limit);
  const Duration wait = jitter_.UpTo(longest_wait_);
  next_try_ = now + wait;
  return wait;
}

RetryGate::Duration RetryGate::Postponed(TimePoint now) {
  if (now >= next_try_) return {};
  // The waiting watches are spread over this multiple of the longest wait. It is large enough for
  // two and more of them.
  constexpr double kFollowers = 1.2;
  const auto spread = std::chrono::duration_cast<Duration>(longest_wait_ * kFollowers);
  return std::chrono::ceil<Duration>(next_try_ - now) + jitter_.UpTo(spread);
}

}  // namespace resmgr::agent
