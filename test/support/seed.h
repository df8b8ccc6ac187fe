// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>

#include <gtest/gtest.h>

#include "pkg/base/parse.h"

namespace resmgr::test {

// The seed of a test that draws its input: RESMGR_SEED of the environment, to look further or to
// repeat a failure, or else `usual`. Never one of chance: a second try would pass by other input,
// and hide what the first one had found.
inline uint64_t SeedOr(uint64_t usual) {
  const char* const given = std::getenv("RESMGR_SEED");
  if (given == nullptr) return usual;
  const std::optional<uint64_t> seed = ParseUint(given);
  EXPECT_TRUE(seed.has_value()) << "RESMGR_SEED=" << given << " is no number";
  return seed.value_or(usual);
}

// For SCOPED_TRACE: how to repeat it.
inline testing::Message Repeat(uint64_t seed) {
  return testing::Message() << "RESMGR_SEED=" << seed;
}

}  // namespace resmgr::test
