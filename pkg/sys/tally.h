// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace resmgr {

// A sum that one thread counts and any thread may read. As no other thread counts, it takes no
// locked instruction.
class Tally {
 public:
  // Negative numbers count back.
  void Add(int64_t number) {
    sum_.store(sum_.load(std::memory_order_relaxed) + number, std::memory_order_relaxed);
  }
  int64_t value() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> sum_ = 0;
};

}  // namespace resmgr
