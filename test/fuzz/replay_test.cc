// SPDX-License-Identifier: Apache-2.0
// Runs each fuzz target without a fuzzer: on the seeds beside it and on bytes made from them, the
// same ones each time. Finds shallow errors; the preset `fuzz` builds the targets for a search.
#include "test/fuzz/replay.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace resmgr::test {
namespace {

constexpr int kRounds = 5000;
constexpr uint32_t kSeed = 20'260'101;

std::vector<std::string> SeedsOf(const FuzzTarget& target) {
  std::vector<std::string> seeds = {"", "a", std::string(64, '\0')};
  const auto directory = std::filesystem::path(RESMGR_SOURCE_DIR) / "test/fuzz/seeds" / target.name;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::ifstream file(entry.path(), std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::sort(seeds.begin(), seeds.end());
  return seeds;
}

// One change of the kinds that break parsers.
void Mutate(std::string& bytes, std::mt19937& random) {
  const auto below = [&random](size_t limit) { return random() % (limit + 1); };
  const size_t at = below(bytes.size());
  switch (random() % 5) {
    case 0:
      bytes.insert(at, 1, static_cast<char>(random()));
      break;
    case 1:
      bytes.erase(at, below(4));
      break;
    case 2:
      if (at < bytes.size()) bytes[at] = static_cast<char>(random());
      break;
    case 3: {
      // In this order with every compiler.
      const size_t from = below(bytes.size());
      const size_t count = below(16);
      bytes.insert(at, bytes.substr(from, count));
      break;
    }
    default:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
      break;
  }
}

class FuzzReplayTest : public testing::TestWithParam<FuzzTarget> {};

TEST_P(FuzzReplayTest, TakesSeedsAndWhatBecomesOfThem) {
  const std::vector<std::string> seeds = SeedsOf(GetParam());
  std::mt19937 random(kSeed);
  int inputs = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = seeds[random() % seeds.size()];
    const size_t changes = random() % 8;
    for (size_t i = 0; i < changes; ++i)
      Mutate(bytes, random);
    EXPECT_EQ(GetParam().run(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()), 0);
    ++inputs;
  }
  EXPECT_EQ(inputs, kRounds);
}

INSTANTIATE_TEST_SUITE_P(All, FuzzReplayTest, testing::ValuesIn(FuzzTargets()),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace resmgr::test
