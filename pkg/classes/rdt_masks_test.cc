// SPDX-License-Identifier: Apache-2.0
// The acceptance rows of docs/classes.md's arithmetic, which is that of goresctrl.
#include "pkg/classes/rdt_masks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/config.h"
#include "test/support/sanitizer.h"
#include "test/support/seed.h"

namespace resmgr {
namespace {

using testing::HasSubstr;

class RdtMasksTest : public testing::Test {
 protected:
  using Unit = RdtBandwidth::Unit;

  static RdtCache Cache(uint64_t mask, std::vector<uint32_t> ids = {0, 1, 2, 3}) {
    return {.mask = mask, .ids = std::move(ids)};
  }
  RdtMasksTest() {
    machine_.l3 = Cache(0xfffff);
    machine_.mb = RdtBandwidth{.least = 10, .ids = {0, 1, 2, 3}};
  }
  StatusOr<RdtClassSchemata> Compute(std::string_view partitions) const {
    RESMGR_ASSIGN_OR_RETURN(
        const Config config,
        ParseConfig(fmt::format("classes: {{rdt: {{{}partitions: {}}}}}", options_, partitions),
                    "f", {}));
    return ComputeRdt(config.classes.rdt, machine_);
  }
  std::string ErrorOf(std::string_view partitions) const {
    return std::string(Message(Compute(partitions).status()));
  }
  // One line of one class.
  std::string Line(std::string_view partitions, std::string_view class_name,
                   std::string_view resource) const {
    const StatusOr<RdtClassSchemata> all = Compute(partitions);
    if (!all.ok()) return std::string(Message(all.status()));
    const auto found = all->find(class_name);
    if (found == all->end()) return "no class";
    const auto line = found->second.find(resource);
    if (line == found->second.end()) return "no line";
    return SchemataText({*line});
  }

  RdtMachine machine_;
  std::string options_;
};

TEST_F(RdtMasksTest, PriorityAndDefault) {
  const char* const text =
      "{priority: {l3Allocation: 60%, mbAllocation: [100%],"
      "            classes: {Guaranteed: {l3Allocation: 100%}}},"
      " default: {l3Allocation: 40%, mbAllocation: [100%],"
      "           classes: {Burstable: {l3Allocation: 100%, mbAllocation: [66%]},"
      "                     BestEffort: {l3Allocation: 66%, mbAllocation: [33%]}}}}";
  EXPECT_EQ(Line(text, "Guaranteed", "L3"), "L3:0=fff00;1=fff00;2=fff00;3=fff00\n");
  EXPECT_EQ(Line(text, "Guaranteed", "MB"), "MB:0=100;1=100;2=100;3=100\n");
  EXPECT_EQ(Line(text, "Burstable", "L3"), "L3:0=ff;1=ff;2=ff;3=ff\n");
  EXPECT_EQ(Line(text, "Burstable", "MB"), "MB:0=66;1=66;2=66;3=66\n");
  EXPECT_EQ(Line(text, "BestEffort", "L3"), "L3:0=3f;1=3f;2=3f;3=3f\n");
  EXPECT_EQ(Line(text, "BestEffort", "MB"), "MB:0=33;1=33;2=33;3=33\n");
}

TEST_F(RdtMasksTest, SmallSharesGetTheirLeastBits) {
  machine_.l3->ids = {0};
  const char* const text =
      "{part-2: {l3Allocation: 39%, classes: {c2: {}, half: {l3Allocation: 50%},"
      "                                        more: {l3Allocation: 60%}}},"
      " part-3: {l3Allocation: 1%, classes: {c3: {}}},"
      " part-1: {l3Allocation: 60%, classes: {c1: {}, tenth: {l3Allocation: 10%}}}}";
  EXPECT_EQ(Line(text, "c1", "L3"), "L3:0=fff\n");
  EXPECT_EQ(Line(text, "c2", "L3"), "L3:0=7f000\n");
  EXPECT_EQ(Line(text, "c3", "L3"), "L3:0=80000\n");
  EXPECT_EQ(Line(text, "half", "L3"), "L3:0=f000\n");
  EXPECT_EQ(Line(text, "more", "L3"), "L3:0=1f000\n");
  EXPECT_EQ(Line(text, "tenth", "L3"), "L3:0=3\n");
}

// Two bits are the least: with one, 8 % of the ten bits of cache 1 would be one.
TEST_F(RdtMasksTest, IdsHaveTheirOwnShares) {
  machine_.l3->min_bits = 2;
  const char* const text =
      "{part-1: {l3Allocation: {1: 42%, 2: 63%, 3: 89%, all: 21%}, classes: {c1: {}}},"
      " part-2: {l3Allocation: {1: 8%, 2: 19%, 3: 11%, all: 29%}, classes: {c2: {}}}}";
  EXPECT_EQ(Line(text, "c1", "L3"), "L3:0=f;1=ff;2=1fff;3=3ffff\n");
  EXPECT_EQ(Line(text, "c2", "L3"), "L3:0=3f0;1=300;2=e000;3=c0000\n");
  machine_.l3.reset();
  machine_.l2 = Cache(0xff, {0, 1});
  const char* const l2 =
      "{a: {l2Allocation: {0: 30%, 1: 75%}, classes: {ca: {}}},"
      " b: {l2Allocation: {0: 30%, 1: 20%}, classes: {cb: {}}},"
      " c: {l2Allocation: {0: 40%, 1: 5%}, classes: {cc: {}}}}";
  EXPECT_EQ(Line(l2, "ca", "L2"), "L2:0=3;1=3f\n");
  EXPECT_EQ(Line(l2, "cb", "L2"), "L2:0=c;1=40\n");
  EXPECT_EQ(Line(l2, "cc", "L2"), "L2:0=f0;1=80\n");
}

TEST_F(RdtMasksTest, ClassesByPercentByMaskAndByBits) {
  machine_.l3->ids = {0};
  const auto line = [this](std::string_view share) {
    return Line(
        fmt::format("{{p: {{l3Allocation: 100%, classes: {{c: {{l3Allocation: {}}}}}}}}}", share),
        "c", "L3");
  };
  EXPECT_EQ(line("50%"), "L3:0=3ff\n");
  EXPECT_EQ(line("'0x7'"), "L3:0=7\n");
  EXPECT_EQ(line("1-2"), "L3:0=6\n");
  EXPECT_EQ(line("'3'"), "L3:0=8\n");
  EXPECT_EQ(line("0-50%"), "L3:0=3ff\n");
  machine_.l3->min_bits = 2;
  EXPECT_EQ(line("1%"), "L3:0=3\n");
  EXPECT_EQ(line("99-100%"), "L3:0=c0000\n");
}

const char* const kCodeAndData =
    "{part-1: {l3Allocation: {'0-1': {unified: 60%, code: 70%, data: 50%}, '2-3': 40%},"
    "          classes: {one: {}}},"
    " part-2: {l3Allocation: {'0-1': {unified: 40%, code: 30%, data: 50%}, '2-3': 60%},"
    "          classes: {two: {}, '': {l3Allocation: {all: 100%,"
    "                                  3: {unified: 80%, code: 60%, data: 90%}}}}}}";

TEST_F(RdtMasksTest, CodeAndDataWhereTheKernelTellsThemApart) {
  machine_.l3->split = true;
  EXPECT_EQ(Line(kCodeAndData, "one", "L3CODE"), "L3CODE:0=3fff;1=3fff;2=ff;3=ff\n");
  EXPECT_EQ(Line(kCodeAndData, "two", "L3CODE"), "L3CODE:0=fc000;1=fc000;2=fff00;3=fff00\n");
  EXPECT_EQ(Line(kCodeAndData, "one", "L3DATA"), "L3DATA:0=3ff;1=3ff;2=ff;3=ff\n");
  EXPECT_EQ(Line(kCodeAndData, "two", "L3DATA"), "L3DATA:0=ffc00;1=ffc00;2=fff00;3=fff00\n");
  EXPECT_EQ(Line(kCodeAndData, "", "L3CODE"), "L3CODE:0=fc000;1=fc000;2=fff00;3=ff00\n");
  EXPECT_EQ(Line(kCodeAndData, "", "L3DATA"), "L3DATA:0=ffc00;1=ffc00;2=fff00;3=7ff00\n");
  EXPECT_EQ(Line(kCodeAndData, "one", "L3"), "no line");
}

TEST_F(RdtMasksTest, WithoutCdpUnifiedCounts) {
  EXPECT_EQ(Line(kCodeAndData, "one", "L3"), "L3:0=fff;1=fff;2=ff;3=ff\n");
  EXPECT_EQ(Line(kCodeAndData, "", "L3"), "L3:0=ff000;1=ff000;2=fff00;3=3ff00\n");
}

TEST_F(RdtMasksTest, L2WithCodeAndData) {
  machine_.l3.reset();
  machine_.l2 = Cache(0xfffff, {0, 2, 3});
  machine_.l2->split = true;
  const char* const text =
      "{a: {l2Allocation: {all: 42%, 2: {unified: 50%, code: 20%, data: 50%},"
      "                     3: {unified: 50%, code: 40%, data: 50%}}, classes: {ca: {}}},"
      " b: {l2Allocation: {all: 43%, 2: {unified: 50%, code: 40%, data: 30%},"
      "                     3: {unified: 50%, code: 60%, data: 50%}},"
      "     classes: {cb: {l2Allocation: {all: 80%, 2: {unified: 80%, code: 60%, data: 90%}}}}}}";
  EXPECT_EQ(Line(text, "ca", "L2CODE"), "L2CODE:0=ff;2=f;3=ff\n");
  EXPECT_EQ(Line(text, "cb", "L2CODE"), "L2CODE:0=ff00;2=1f0;3=3ff00\n");
  EXPECT_EQ(Line(text, "ca", "L2DATA"), "L2DATA:0=ff;2=3ff;3=3ff\n");
  EXPECT_EQ(Line(text, "cb", "L2DATA"), "L2DATA:0=ff00;2=fc00;3=3fc00\n");
}

TEST_F(RdtMasksTest, BandwidthInPercentAndInMBps) {
  EXPECT_EQ(Line("{p: {mbAllocation: [1%], classes: {c: {mbAllocation: [100%]}}}}", "c", "MB"),
            "MB:0=10;1=10;2=10;3=10\n");
  machine_.mb->unit = Unit::kMbps;
  EXPECT_EQ(Line("{p: {mbAllocation: [50%, 1000MBps],"
                 "     classes: {c: {mbAllocation: [100%, 1500MBps]}}}}",
                 "c", "MB"),
            "MB:0=1000;1=1000;2=1000;3=1000\n");
  EXPECT_EQ(Line("{p: {mbAllocation: {all: [1000MBps], '0,1': [50%, 1GBps, 500MBps]},"
                 "     classes: {c: {mbAllocation: [750MBps]}}}}",
                 "c", "MB"),
            "MB:0=500;1=500;2=750;3=750\n");
  EXPECT_EQ(Line("{p: {classes: {c: {}}}}", "c", "MB"),
            "MB:0=4294967295;1=4294967295;2=4294967295;3=4294967295\n");
}

TEST_F(RdtMasksTest, AmdHasEighthsOfGigabytes) {
  machine_.mb = RdtBandwidth{.unit = Unit::kEighths, .least = 1, .ids = {0}};
  const auto line = [this](std::string_view mb) {
    return Line(
        fmt::format("{{p: {{mbAllocation: [100%], classes: {{c: {{mbAllocation: {}}}}}}}}}", mb),
        "c", "MB");
  };
  EXPECT_EQ(line("[100%]"), "MB:0=2048\n");
  EXPECT_EQ(line("[50%]"), "MB:0=80\n");
  EXPECT_EQ(line("[100%, 2000MBps]"), "MB:0=16\n");
}

TEST_F(RdtMasksTest, WithoutAllocationsOfACacheAllHaveAllOfIt) {
  const char* const text = "{p: {mbAllocation: [50%], classes: {c: {mbAllocation: [60%]}}}}";
  EXPECT_EQ(Line(text, "c", "L3"), "L3:0=fffff;1=fffff;2=fffff;3=fffff\n");
  EXPECT_EQ(Line(text, "c", "MB"), "MB:0=30;1=30;2=30;3=30\n");
  EXPECT_EQ(Line(text, "", "L3"), "no class");
}

TEST_F(RdtMasksTest, RangesOfPartitionsAreKoordletsGroups) {
  machine_.l3->ids = {0};
  const auto line = [this](std::string_view range) {
    return Line(fmt::format("{{be: {{l3Allocation: {}, classes: {{BE: {{}}}}}},"
                            " ls: {{l3Allocation: 0-100%, classes: {{LS: {{}}}}}}}}",
                            range),
                "BE", "L3");
  };
  machine_.l3->mask = 0x3ff;
  EXPECT_EQ(line("10-80%"), "L3:0=fe\n");
  machine_.l3->mask = 0x7ff;
  EXPECT_EQ(line("10-50%"), "L3:0=3c\n");
  EXPECT_EQ(line("0-30%"), "L3:0=f\n");
}

TEST_F(RdtMasksTest, LargeIdsAreIds) {
  machine_.l3->ids = {128, 70'000};
  EXPECT_EQ(Line("{p: {l3Allocation: {128: '0x3', 70000: '0xf'}, classes: {c: {}}}}", "c", "L3"),
            "L3:128=3;70000=f\n");
}

TEST_F(RdtMasksTest, AShareOfNoBitsIsAnErrorWithTheNumbers) {
  machine_.l3->ids = {0};
  for (const char* const share : {"0%", "4%"}) {
    EXPECT_THAT(ErrorOf(fmt::format("{{p: {{l3Allocation: {}, classes: {{c: {{}}}}}}}}", share)),
                HasSubstr("of 20 bits of L3 are 0, too few for 1 partitions of at least 1"));
  }
  EXPECT_EQ(Line("{p: {l3Allocation: 5%, classes: {c: {}}}}", "c", "L3"), "L3:0=1\n");
}

TEST_F(RdtMasksTest, TheConfigurationsErrors) {
  const std::map<std::string, std::string> errors = {
      {"{a: {classes: {class-1: {}}}, b: {classes: {class-1: {}}}}",
       "\"class-1\" defined multiple times"},
      {"{a: {classes: {'': {}}}, b: {classes: {system/default: {}}}}", "defined multiple times"},
      {"{a: {classes: {..: {}}}}", "unqualified class name"},
      {"{a: {classes: {x/y: {}}}}", "unqualified class name"},
      {"{a: {foo: 1}}", "partitions.a.foo: unknown key"},
      {"{a: {l3Allocation: {a: 10%}}}", "invalid integer \"a\""},
      {"{a: {l3Allocation: {all: {data: 10%}}}}", "'unified' not specified"},
      {"{a: {l3Allocation: {all: {unified: 1%, data: 10%}}}}", "'data' specified without 'code'"},
      {"{a: {l3Allocation: {all: {unified: 1%, code: 10%}}}}", "'code' specified without 'data'"},
      {"{a: {l3Allocation: '1f%'}}", "\"1f%\": invalid integer \"1f\""},
      {"{a: {l3Allocation: 101%}}", "101% is more than 100%"},
      {"{a: {mbAllocation: [1GBps]}}", "has neither a value in percent"},
  };
  for (const auto& [text, error] : errors)
    EXPECT_THAT(ErrorOf(text), HasSubstr(error)) << text;
}

TEST_F(RdtMasksTest, TheMachinesErrors) {
  const std::map<std::string, std::string> errors = {
      {"{p: {l2Allocation: 1%, classes: {class-1: {}}}}",
       "L2 cache allocation for \"p\" specified in configuration but not supported by system"},
      {"{part-1: {l3Allocation: 50%, classes: {c: {}}},"
       " part-2: {l3Allocation: '0xf', classes: {d: {}}}}",
       "mixing relative and absolute"},
      {"{part-1: {l3Allocation: 50%, classes: {c: {}}}, part-2: {classes: {d: {}}}}",
       "some partitions (part-2) missing L3 \"unified\""},
      {"{p: {l3Allocation: '0x2f', classes: {c: {}}}}", "more than one continuous block of ones"},
      {"{p: {l3Allocation: '0x7', classes: {c: {}}}, q: {l3Allocation: '0xc', classes: {d: {}}}}",
       "overlapping L3 partition allocations"},
      {"{p: {l3Allocation: {0: 60%}, classes: {c: {}}},"
       " q: {l3Allocation: {0: 41%}, classes: {d: {}}}}",
       "101%, which is more than 100%"},
      {"{p: {l3Allocation: '0xff00', classes: {c: {l3Allocation: '0x1ff'}}}}",
       "bitmask 0x1ff00 (0x1ff << 8) does not fit basemask 0xff00"},
      {"{p: {classes: {c: {l3Allocation: 50%}}}}", "missing from its partition \"p\""},
      {"{p: {l3Allocation: 50%, classes: {c: {l3Allocation: 0%}}}}", "is empty"},
      {"{p: {mbAllocation: [50MBps], classes: {c: {}}}}", "missing '%' value"},
      {"{p: {l3Allocation: '0x1fffff', classes: {c: {}}}}", "does not fit basemask 0xfffff"},
  };
  for (const auto& [text, error] : errors)
    EXPECT_THAT(ErrorOf(text), HasSubstr(error)) << text;
  machine_.mb->unit = Unit::kMbps;
  EXPECT_THAT(ErrorOf("{p: {mbAllocation: [50%], classes: {c: {}}}}"),
              HasSubstr("missing 'MBps' value"));
  machine_.mb.reset();
  machine_.l3.reset();
  EXPECT_THAT(ErrorOf("{p: {mbAllocation: [50%], classes: {c: {}}}}"),
              HasSubstr("MB allocation for \"p\" specified in configuration but not supported"));
  const char* const l3 = "{p: {l3Allocation: 50%, classes: {class-1: {l3Allocation: 50%}}}}";
  EXPECT_THAT(ErrorOf(l3), HasSubstr("L3 cache allocation for \"p\" specified in configuration"));
  options_ = "options: {l3: {optional: true}}, ";
  EXPECT_EQ(ErrorOf(l3), "");
  EXPECT_EQ(Line(l3, "class-1", "L3"), "no line");
}

TEST_F(RdtMasksTest, GapsWhereTheMachineHasSparseMasks) {
  machine_.l3->ids = {0};
  machine_.l3->sparse = true;
  EXPECT_EQ(Line("{p: {l3Allocation: 100%, classes: {c: {l3Allocation: '0x2f'}}}}", "c", "L3"),
            "L3:0=2f\n");
}

TEST(RdtSchemataTest, TheKernelsTextIsPadded) {
  const RdtSchemata now = ParseSchemata("    MB:0= 70;1=100\n    L3:0=00fff;1=fffff\nfoo\n");
  EXPECT_EQ(SchemataText(now), "L3:0=fff;1=fffff\nMB:0=70;1=100\n");
  EXPECT_TRUE(HasSchemata(ParseSchemata("L3:0=fff"), now));
  EXPECT_FALSE(HasSchemata(ParseSchemata("L3:1=fff"), now));
  EXPECT_FALSE(HasSchemata(ParseSchemata("L2:0=fff"), now));
  EXPECT_FALSE(HasSchemata(ParseSchemata("MB:0=66"), now));
  RdtSchemata rounded = ParseSchemata("MB:0=66;1=100");
  RoundBandwidth({.step = 10}, rounded);
  EXPECT_EQ(SchemataText(rounded), "MB:0=70;1=100\n");
}

// Random configurations, against a second implementation that counts single bits.

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
  constexpr int kRounds = test::kSanitized ? 5'000 : 20'000;
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
