// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without a fuzzer: on the seeds beside it and on bytes made from them, the same
// ones each time. Finds what is shallow; the preset `fuzz` builds the targets for a search.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <errno.h>
#include <gtest/gtest.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr int kRounds = 5000;
constexpr uint32_t kSeed = 20'260'101;

// The directory with the seeds of this program, NAME_fuzz_test.
std::filesystem::path SeedsOfThisProgram() {
  const std::string_view program = program_invocation_short_name;
  return std::filesystem::path(RESMGR_SOURCE_DIR) / "test/fuzz/seeds" /
         program.substr(0, program.rfind("_fuzz_test"));
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds = {"", "a", std::string(64, '\0')};
  for (const auto& entry : std::filesystem::directory_iterator(SeedsOfThisProgram())) {
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

TEST(FuzzReplayTest, TakesSeedsAndWhatBecomesOfThem) {
  const std::vector<std::string> seeds = Seeds();
  std::mt19937 random(kSeed);
  int inputs = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = seeds[random() % seeds.size()];
    const size_t changes = random() % 8;
    for (size_t i = 0; i < changes; ++i)
      Mutate(bytes, random);
    EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()),
              0);
    ++inputs;
  }
  EXPECT_EQ(inputs, kRounds);
}

}  // namespace
