// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace resmgr::agent {

// Random waits, so that an event that thousands of agents see at the same moment does not make them
// send requests at the same moment. Thread-compatible.
class Jitter {
 public:
  using Duration = std::chrono::milliseconds;

  // The seed makes the waits of two agents differ.
  explicit Jitter(uint64_t seed) : random_(Spread(seed)) {}

  // A random wait between zero and `limit`, evenly distributed.
  Duration UpTo(Duration limit) { return Between(Duration(0), limit); }
  Duration Between(Duration from, Duration to) {
    return Duration(std::uniform_int_distribution<Duration::rep>(
        from.count(), std::max(from, to).count())(random_));
  }

 private:
  // Similar seeds would give similar first waits.
  static std::minstd_rand::result_type Spread(uint64_t seed) {
    std::seed_seq sequence{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32U)};
    uint32_t spread = 0;
    sequence.generate(&spread, &spread + 1);
    return spread;
  }

  std::minstd_rand random_;
};

}  // namespace resmgr::agent
