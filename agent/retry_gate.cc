// SPDX-License-Identifier: Apache-2.0
#include "agent/retry_gate.h"

namespace resmgr::agent {

RetryGate::Duration RetryGate::Failed(TimePoint now) {
  if (const Duration wait = Postponed(now); wait.count() > 0) return wait;
  const Duration wait = backoff_.Next();
  next_try_ = now + wait;
  return wait;
}

RetryGate::Duration RetryGate::Postponed(TimePoint now) {
  if (now >= next_try_) return {};
  // Two watches and more share what one of them has for its tries.
  constexpr double kFollowers = 1.4;
  const auto spread = std::chrono::duration_cast<Duration>(backoff_.full() * kFollowers);
  return std::chrono::ceil<Duration>(next_try_ - now) + jitter_.UpTo(spread);
}

}  // namespace resmgr::agent
