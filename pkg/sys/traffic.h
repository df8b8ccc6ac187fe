// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace resmgr {

// A sum that one thread changes and any thread may read. With only one writer, it needs no locked
// instruction.
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

// Bytes sent over all connections of one kind. One thread counts; any may read.
class Traffic {
 public:
  void Received(size_t bytes) { received_.Add(static_cast<int64_t>(bytes)); }
  void Sent(size_t bytes) { sent_.Add(static_cast<int64_t>(bytes)); }

  uint64_t received() const { return static_cast<uint64_t>(received_.value()); }
  uint64_t sent() const { return static_cast<uint64_t>(sent_.value()); }

 private:
  Tally received_;
  Tally sent_;
};

}  // namespace resmgr
