// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

namespace resmgr::test {

// The draws of one random life: a base of the class that lives it. The same seed gives the same
// draws with every standard library, which std::uniform_int_distribution does not promise.
class Draws {
 protected:
  explicit Draws(uint64_t seed) : random_(seed) {}

  int64_t Number(int64_t first, int64_t last) {
    return first + static_cast<int64_t>(random_() % static_cast<uint64_t>(last - first + 1));
  }
  bool Chance(int percent) { return Number(1, 100) <= percent; }
  // One of a list, or map, that is not empty.
  template <typename List>
  auto& OneOf(List&& list) {
    return *std::next(list.begin(), Number(0, std::ssize(list) - 1));
  }
  // Takes one out; the order of the others stays.
  template <typename Value>
  Value TakeFrom(std::vector<Value>& list) {
    const auto at = std::next(list.begin(), Number(0, std::ssize(list) - 1));
    Value value = std::move(*at);
    list.erase(at);
    return value;
  }

  std::mt19937_64 random_;
};

}  // namespace resmgr::test
