// SPDX-License-Identifier: Apache-2.0
// Random configurations, against a second implementation that counts single bits.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/classes/rdt_masks.h"
#include "test/support/seed.h"

namespace resmgr {
namespace {

using Bits = std::set<uint64_t>;
using BitsByName = std::map<std::string, Bits>;

// As docs/classes.md tells it; nullopt: such a configuration is refused.
class BitCounter {
 public:
  BitCounter(const RdtConfig& config, uint64_t bits, uint64_t least, uint32_t id)
      : config_(config), bits_(bits), least_(least), id_(id) {}

  std::optional<BitsByName> Classes() {
    const std::optional<BitsByName> partitions = Partitions();
    if (!partitions) return std::nullopt;
    BitsByName classes;
    for (const auto& [name, partition] : config_.partitions) {
      const Bits& base = partitions->at(name);
      for (const auto& [class_name, one] : partition.classes) {
        std::optional<Bits> own = base;
        if (const CacheParts* const parts = one.allocations.l3.Find(id_))
          own = ClassBits(std::vector<uint64_t>(base.begin(), base.end()), parts->unified);
        if (!own) return std::nullopt;
        classes[class_name] = *own;
      }
    }
    return classes;
  }

 private:
  std::optional<BitsByName> Partitions() {
    BitsByName result;
    std::map<std::string, uint64_t> percents;
    uint64_t sum = 0;
    Bits all;
    for (const auto& [name, partition] : config_.partitions) {
      const CachePart& part = partition.allocations.l3.all->unified;
      if (const auto* const percent = std::get_if<CachePercent>(&part)) {
        percents[name] = percent->percent;
        sum += percent->percent;
        continue;
      }
      Bits own;
      for (uint64_t bit = 0; bit < 64; ++bit)
        if ((std::get<CacheBits>(part).mask >> bit & 1) != 0) own.insert(bit);
      if (!IsBlock(own)) return std::nullopt;
      for (const uint64_t bit : own)
        if (bit >= bits_ || !all.insert(bit).second) return std::nullopt;
      result[name] = own;
    }
    if (percents.empty()) return result;
    if (!result.empty() || sum > 100) return std::nullopt;
    const uint64_t total = sum * bits_ / 100;
    if (total < percents.size() * least_) return std::nullopt;
    uint64_t left = total;
    std::map<std::string, uint64_t> sizes;
    while (sizes.size() < percents.size()) {
      std::string smallest;
      for (const auto& [name, percent] : percents) {
        if (!sizes.contains(name) && (smallest.empty() || percent < percents[smallest]))
          smallest = name;
      }
      const uint64_t available = left * sum / total;
      if (left < least_ || available == 0) return std::nullopt;
      uint64_t size = percents[smallest] * left / available;
      if (size < least_) size = least_;
      if (size > left || sizes.size() + 1 == percents.size()) size = left;
      sizes[smallest] = size;
      left -= size;
    }
    uint64_t next = 0;
    for (const auto& [name, size] : sizes)
      for (uint64_t i = 0; i < size; ++i)
        result[name].insert(next++);
    return result;
  }

  bool IsBlock(const Bits& bits) const {
    return !bits.empty() && *bits.rbegin() - *bits.begin() + 1 == bits.size() &&
           bits.size() >= least_;
  }

  std::optional<Bits> ClassBits(const std::vector<uint64_t>& base, const CachePart& part) const {
    Bits own;
    if (const auto* const mask = std::get_if<CacheBits>(&part)) {
      for (uint64_t bit = 0; bit < 64; ++bit) {
        if ((mask->mask >> bit & 1) == 0) continue;
        if (bit >= base.size()) return std::nullopt;
        own.insert(base[bit]);
      }
      return IsBlock(own) ? std::optional(own) : std::nullopt;
    }
    uint64_t first = 1;
    uint64_t last = 0;
    if (const auto* const percent = std::get_if<CachePercent>(&part)) {
      last = percent->percent;
    } else {
      first = std::max<uint64_t>(std::get<CacheRange>(part).first, 1);
      last = std::get<CacheRange>(part).last;
    }
    if (last == 0) return std::nullopt;
    uint64_t from = (first - 1) * base.size() / 100;
    uint64_t to = (last - 1) * base.size() / 100;
    const uint64_t needed = std::min<uint64_t>(least_, base.size());
    for (; to - from + 1 < needed && from > 0; --from) {
    }
    for (; to - from + 1 < needed; ++to) {
    }
    for (uint64_t i = from; i <= to; ++i)
      own.insert(base[i]);
    return own;
  }

  const RdtConfig& config_;
  const uint64_t bits_;
  const uint64_t least_;
  const uint32_t id_;
};

class RdtPropertyTest : public testing::Test {
 protected:
  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }
  CachePart SomeMask(uint32_t bits) {
    const uint32_t first = Below(bits);
    const uint32_t size = 1 + Below(bits - first);
    uint64_t mask = ((uint64_t{1} << size) - 1) << first;
    if (Below(12) == 0) mask |= uint64_t{1} << Below(bits + 1);
    return CacheBits{mask};
  }
  CachePart SomeClass(uint32_t bits) {
    switch (Below(4)) {
      case 0:
        return SomeMask(std::max(bits / 2, 1U));
      case 1: {
        const uint32_t first = Below(100);
        return CacheRange{first, first + Below(101 - first)};
      }
      default:
        return CachePercent{Below(101)};
    }
  }
  RdtConfig SomeConfig(uint32_t bits) {
    RdtConfig config;
    const uint32_t partitions = 1 + Below(4);
    const bool by_mask = Below(3) == 0;
    for (uint32_t p = 0; p < partitions; ++p) {
      RdtPartitionConfig& partition = config.partitions[fmt::format("p{}", Below(10) * 4 + p)];
      CacheParts parts{.unified = CachePercent{Below(110 / partitions)}};
      if (by_mask || Below(40) == 0) parts.unified = SomeMask(bits);
      partition.allocations.l3.all = parts;
      const uint32_t classes = 1 + Below(3);
      for (uint32_t c = 0; c < classes; ++c) {
        RdtClassConfig& one = partition.classes[fmt::format("c{}-{}", p, c)];
        if (Below(4) != 0) one.allocations.l3.all = CacheParts{.unified = SomeClass(bits)};
      }
    }
    return config;
  }
  static Bits BitsOf(uint64_t mask) {
    Bits bits;
    for (uint64_t bit = 0; bit < 64; ++bit)
      if ((mask >> bit & 1) != 0) bits.insert(bit);
    return bits;
  }

  std::mt19937_64 random_{test::SeedOr(41)};
};

TEST_F(RdtPropertyTest, IsWhatCountingBitsGives) {
  int refused = 0;
  constexpr int kRounds = 20'000;
  for (int round = 0; round < kRounds; ++round) {
    const uint32_t bits = 1 + Below(40);
    const uint32_t least = 1 + Below(3);
    RdtMachine machine;
    machine.l3 =
        RdtCache{.mask = (uint64_t{1} << bits) - 1, .min_bits = std::min(least, bits), .ids = {7}};
    const RdtConfig config = SomeConfig(bits);
    const StatusOr<RdtClassSchemata> computed = ComputeRdt(config, machine);
    const std::optional<BitsByName> expected =
        BitCounter(config, bits, machine.l3->min_bits, 7).Classes();
    ASSERT_EQ(computed.ok(), expected.has_value()) << computed.status();
    if (!expected) ++refused;
    if (!expected) continue;
    for (const auto& [name, own] : *expected)
      ASSERT_EQ(BitsOf(computed->at(name).at("L3").at(7)), own) << name << " of " << bits;
  }
  EXPECT_GT(refused, kRounds / 20);
  EXPECT_LT(refused, kRounds * 19 / 20);
}

}  // namespace
}  // namespace resmgr
