// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/base/parse.h"

namespace resmgr::test {

// The seed of a test that draws its input: RESMGR_SEED of the environment, to search further or to
// repeat a failure, or else `usual`. Never a random one: a second try with other input would hide
// the failure of the first.
inline uint64_t SeedOr(uint64_t usual) {
  const char* const given = std::getenv("RESMGR_SEED");
  if (given == nullptr) return usual;
  const std::optional<uint64_t> seed = ParseUint(given);
  EXPECT_TRUE(seed.has_value()) << "RESMGR_SEED=" << given << " is no number";
  return seed.value_or(usual);
}

// A text for SCOPED_TRACE that tells how to repeat the run.
inline testing::Message Repeat(uint64_t seed) {
  return testing::Message() << "RESMGR_SEED=" << seed;
}

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
