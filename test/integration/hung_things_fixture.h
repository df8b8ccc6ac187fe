// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

#include "test/integration/daemon_fixture.h"

namespace resmgr::test {

// The limit of the median time of another client's call while something hangs: a call that waited
// for that would take far longer than a busy machine makes it.
inline constexpr milliseconds kMeanwhile{1'000};

// A daemon beside something that hangs.
class HungThingsTest : public DaemonTest {
 protected:
  // The median of some calls of another client: a busy machine delays single ones.
  milliseconds VersionMeanwhile() {
    using Clock = std::chrono::steady_clock;
    constexpr int kCalls = 11;
    CriClient other = Relayed();
    std::vector<milliseconds> times;
    for (int i = 0; i < kCalls; ++i) {
      const auto start = Clock::now();
      const auto call = other.Start(kVersion, "");
      const auto result = call->Wait(kPatience);
      if (!result.has_value()) return kPatience;
      EXPECT_TRUE(result->status.ok()) << result->status.error_message();
      times.push_back(std::chrono::duration_cast<milliseconds>(Clock::now() - start));
    }
    std::nth_element(times.begin(), times.begin() + kCalls / 2, times.end());
    return times[kCalls / 2];
  }
};

}  // namespace resmgr::test
