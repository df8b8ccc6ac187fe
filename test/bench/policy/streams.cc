// SPDX-License-Identifier: Apache-2.0
#include "test/bench/policy/streams.h"

#include <array>
#include <utility>

namespace resmgr::test {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// Chooses one of these by its weight.
template <size_t N>
int64_t Weighted(std::mt19937_64& random, const std::array<std::pair<int64_t, int>, N>& values) {
  int sum = 0;
  for (const auto& [value, weight] : values)
    sum += weight;
  int64_t left = std::uniform_int_distribution<int64_t>(0, sum - 1)(random);
  for (const auto& [value, weight] : values) {
    if (left < weight) return value;
    left -= weight;
  }
  return values.back().first;
}

// 31 of 100 pods ask for whole CPUs exclusively, most of them for 2 to 16; the others share, most
// of them less than two CPUs.
PodShape TracePod(std::mt19937_64& random) {
  constexpr std::array<std::pair<int64_t, int>, 9> kWhole = {
      {{1, 5}, {2, 10}, {4, 22}, {6, 8}, {8, 24}, {12, 8}, {16, 14}, {32, 7}, {64, 2}}};
  constexpr std::array<std::pair<int64_t, int>, 7> kShared = {
      {{100, 25}, {250, 25}, {500, 20}, {1000, 15}, {1500, 8}, {3152, 5}, {6304, 2}}};
  const int64_t kind = std::uniform_int_distribution<int64_t>(1, 100)(random);
  if (kind <= 31) {
    const int64_t cpus = Weighted(random, kWhole);
    return {QosClass::kGuaranteed, cpus * 1000, cpus * 1000, cpus * kGiB};
  }
  if (kind <= 40) return {};
  const int64_t milli = Weighted(random, kShared);
  return {QosClass::kBurstable, milli, kind % 3 == 0 ? 0 : 2 * milli,
          kGiB / 4 + kGiB * milli / 2000};
}

// Between 1 and 32 CPUs, half of them 1 or 2.
PodShape ExclusivePod(std::mt19937_64& random) {
  constexpr std::array<std::pair<int64_t, int>, 6> kLast = {
      {{1, 25}, {2, 25}, {4, 24}, {8, 16}, {16, 7}, {32, 3}}};
  const int64_t last = Weighted(random, kLast);
  const int64_t cpus = std::uniform_int_distribution<int64_t>((last + 1) / 2, last)(random);
  return {QosClass::kGuaranteed, cpus * 1000, cpus * 1000, cpus * kGiB / 4};
}

constexpr std::array<Stream, 3> kStreams = {{
    {"random mix", "25 % exclusive (nine of ten 1 to 8 CPUs, the others 9 to 24), 75 % share",
     SomePod},
    {"trace-like",
     "31 % exclusive (1 to 64 CPUs, most 4 to 16), 69 % share (most below 1 CPU), lifetimes "
     "log-normal",
     TracePod, true},
    {"exclusive alone", "all exclusive, 1 to 32 CPUs, half of them 1 or 2", ExclusivePod},
}};

}  // namespace

std::span<const Stream> Streams() {
  return kStreams;
}

double Lifetime(std::mt19937_64& random) {
  return std::lognormal_distribution<double>(7, 1.5)(random);
}

}  // namespace resmgr::test
