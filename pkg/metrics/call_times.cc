// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/call_times.h"

#include <algorithm>

namespace resmgr {

void TimeHistogram::Observe(std::chrono::nanoseconds time) {
  // A linear search is fast, since most calls are in the first buckets.
  size_t bucket = 0;
  while (bucket < kBounds && time > bounds_[bucket])
    ++bucket;
  buckets_[bucket].Add(1);
  nanoseconds_.Add(time.count());
}

bool TimeHistogram::empty() const {
  return std::ranges::all_of(buckets_, [](const Tally& bucket) { return bucket.value() == 0; });
}

}  // namespace resmgr
