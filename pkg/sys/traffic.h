// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace resmgr {

// Bytes that went over a kind of connections, of all that there were. One thread counts; any may
// read.
class Traffic {
 public:
  void Received(size_t bytes) { Add(received_, bytes); }
  void Sent(size_t bytes) { Add(sent_, bytes); }

  uint64_t received() const { return received_.load(std::memory_order_relaxed); }
  uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }

 private:
  // No other thread counts, so that it takes no locked instruction.
  static void Add(std::atomic<uint64_t>& sum, size_t bytes) {
    sum.store(sum.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }

  std::atomic<uint64_t> received_ = 0;
  std::atomic<uint64_t> sent_ = 0;
};

}  // namespace resmgr
