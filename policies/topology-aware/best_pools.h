// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "policies/topology-aware/pool_score.h"

namespace resmgr {

// The best of the pools that are scored one after the other, in their order. Scores are large, so
// they stay where they were counted.
class BestPools {
 public:
  // Candidates that are remembered for explain.
  static constexpr size_t kMost = 8;

  BestPools() {
    for (size_t i = 0; i < order_.size(); ++i)
      order_[i] = &scores_[i];
  }
  BestPools(const BestPools&) = delete;
  BestPools& operator=(const BestPools&) = delete;

  // The place for the next pool's score.
  PoolScore& Next() { return *order_[count_]; }
  // The score that the next pool must beat; nullptr if there is room for it in any case.
  const PoolScore* Worst() const { return count_ == kMost ? order_[kMost - 1] : nullptr; }
  // Keeps the next pool as one of the best.
  void KeepNext() {
    PoolScore* const next = order_[count_];
    size_t place = count_;
    for (; place > 0 && Compare(*next, *order_[place - 1]).order > 0; --place)
      order_[place] = order_[place - 1];
    order_[place] = next;
    if (count_ < kMost) ++count_;
  }
  std::vector<PoolScore> Get() const {
    std::vector<PoolScore> best;
    best.reserve(count_);
    for (size_t i = 0; i < count_; ++i)
      best.push_back(*order_[i]);
    return best;
  }

 private:
  std::array<PoolScore, kMost + 1> scores_;
  std::array<PoolScore*, kMost + 1> order_;
  size_t count_ = 0;
};

}  // namespace resmgr
