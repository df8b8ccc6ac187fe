// SPDX-License-Identifier: Apache-2.0
#include "agent/backoff.h"

#include <algorithm>

namespace resmgr::agent {

Backoff::Duration Backoff::Next() {
  // Beyond so many doublings every limit is reached, and the shift stays defined.
  constexpr int kMaxDoublings = 20;
  const int doublings = std::min(failures_, kMaxDoublings);
  if (failures_ < kMaxDoublings) ++failures_;
  const Duration full =
      std::min(options_.limit, options_.first * (static_cast<Duration::rep>(1) << doublings));
  return jitter_.UpTo(full);
}

}  // namespace resmgr::agent
