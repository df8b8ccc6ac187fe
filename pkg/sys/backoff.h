// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

namespace resmgr {

// The pauses between attempts: the first one, then each twice as long as the one before, up to a
// longest one.
class Backoff {
 public:
  using Duration = std::chrono::milliseconds;

  Backoff(Duration first, Duration last)
      : first_(std::min(first, last)), last_(last), next_(first_) {}

  // The pause before the next try.
  Duration Next() { return std::exchange(next_, std::min(2 * next_, last_)); }
  // A try succeeded.
  void Reset() { next_ = first_; }
  // Makes each pause the longest one, until Reset.
  void SkipToLast() { next_ = last_; }

  // For a pause that is stored elsewhere: the pause that follows `former`; 0: there was none yet.
  static Duration After(Duration former, Duration first, Duration last) {
    return former.count() == 0 ? first : std::min(2 * former, last);
  }

 private:
  Duration first_;
  Duration last_;
  Duration next_;
};

}  // namespace resmgr
