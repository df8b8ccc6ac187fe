// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>

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

}  // namespace resmgr::test
