// SPDX-License-Identifier: Apache-2.0
#include "pkg/allocator/exclusive_picker.h"

#include <random>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/allocator/testing/reference_allocator.h"
#include "test/support/machines/machines.h"
#include "test/support/seed.h"

namespace resmgr {
namespace {

using test::Cpus;
using ::testing::HasSubstr;

std::string Text(const StatusOr<ExclusivePicker::Pick>& pick) {
  return pick.ok() ? pick->cpus.ToString() : std::string(Message(pick.status()));
}

class ExclusivePickerTest : public testing::Test {
 protected:
  const Machine machine_ = test::M80();
  const ExclusivePicker picker_{machine_, {}};
};

TEST_F(ExclusivePickerTest, AFormerAttemptGetsItsCpusBack) {
  EXPECT_EQ(Text(picker_.Take({.count = 2, .former = Cpus("33,55")}, machine_.online(), {})),
            "33,55");
  EXPECT_EQ(Text(picker_.Take({.count = 2, .former = Cpus("33,55")}, Cpus("0-54,56-79"), {})),
            "33,73")
      << "what is left of them, and what is near";
  EXPECT_EQ(Text(picker_.Take({.count = 2, .former = Cpus("33,55")}, Cpus("0-9,40-49"), {})),
            "0,40");
}

TEST_F(ExclusivePickerTest, TheReasonTellsFromWhereThePreferredCpusAre) {
  const auto rule = [this](const CpuSet& former, bool is_place) {
    const auto pick = picker_.Take({.count = 2, .former = former, .former_is_place = is_place},
                                   Cpus("0-54,56-79"), {});
    return pick.ok() ? std::string(pick->rule) : Text(pick);
  };
  EXPECT_EQ(rule(Cpus("33,54"), false), "the CPUs that it had before");
  EXPECT_EQ(rule(Cpus("33,54,73"), false), "some of the CPUs that it had before");
  EXPECT_EQ(rule(Cpus("33,55"), false), "CPUs that it had before, and others near them");
  EXPECT_EQ(rule(Cpus("33,54"), true), "CPUs in the place that it asks for");
  EXPECT_EQ(rule(Cpus("33,55"), true), "CPUs in the place that it asks for, and others near them");
}

TEST_F(ExclusivePickerTest, WhatThePodLeftIsPreferredWhereThatCostsNoNode) {
  EXPECT_EQ(
      Text(picker_.Take({.count = 2, .left_by_pod = Cpus("32-33,72-73")}, machine_.online(), {})),
      "32,72");
  EXPECT_EQ(
      Text(picker_.Take({.count = 6, .left_by_pod = Cpus("32-33,72-73")}, machine_.online(), {})),
      "30,32-33,70,72-73");
  EXPECT_EQ(
      Text(picker_.Take({.count = 20, .left_by_pod = Cpus("32")}, Cpus("0-9,32-34,40-49"), {})),
      "0-9,40-49")
      << "one node rather than two";
}

TEST_F(ExclusivePickerTest, WhatThePodLeftDoesNotOverruleWishesAndOptions) {
  const CpuSet isolated = Cpus("10-19,50-59");
  EXPECT_EQ(Text(picker_.Take({.count = 2, .left_by_pod = Cpus("32,72"), .prefer_isolated = true},
                              machine_.online() - isolated, isolated)),
            "10,50");
  const ExclusivePicker spread(machine_, {.distribute_cpus_across_cores = true});
  EXPECT_EQ(Text(spread.Take({.count = 2, .left_by_pod = Cpus("30-32")}, machine_.online(), {})),
            "0-1");
  EXPECT_EQ(Text(spread.Take({.count = 3, .left_by_pod = Cpus("30-32")}, machine_.online(), {})),
            "30-32");
}

TEST_F(ExclusivePickerTest, GrowingStaysNear) {
  EXPECT_EQ(Text(picker_.Grow(Cpus("3"), 2, machine_.online() - Cpus("3"))), "3,43");
  EXPECT_EQ(Text(picker_.Grow(Cpus("13,53"), 4, Cpus("0-9,18,58,20-29"))), "13,18,53,58");
  EXPECT_EQ(Text(picker_.Grow(Cpus("13,53"), 4, Cpus("0,10-19,50-59"))), "10,13,50,53")
      << "in its node, though the cache is the package's";
  EXPECT_EQ(Text(picker_.Grow(Cpus("13,53"), 4, Cpus("0-1,20-29"))), "0-1,13,53") << "same package";
  EXPECT_EQ(Text(picker_.Grow(Cpus("13,53"), 4, Cpus("0,20-29"))), "0,13,20,53");
  EXPECT_THAT(Text(picker_.Grow(Cpus("13,53"), 4, Cpus("0"))),
              HasSubstr("needs 2 more exclusive CPUs, 1 of 80 free"));
}

TEST_F(ExclusivePickerTest, ShrinkingKeepsCoresWhole) {
  EXPECT_EQ(Text(picker_.Shrink(Cpus("3,5-6,45-46"), 4)), "5-6,45-46");
  EXPECT_EQ(Text(picker_.Shrink(Cpus("3,5-6,45-46"), 2, Cpus("3,6"))), "3,6");
}

TEST(ExclusivePickerOptionsTest, FullCoresStayWholeInEveryCase) {
  const Machine machine = test::M80();
  const ExclusivePicker picker(machine, {.full_pcpus_only = true});
  EXPECT_EQ(Text(picker.Take({.count = 4, .former = Cpus("3,5,45")}, machine.online(), {})),
            "0,5,40,45")
      << "only the whole core of the former ones counts";
  EXPECT_EQ(picker.Take({.count = 3}, machine.online(), {}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Text(picker.Grow(Cpus("0,40"), 4, Cpus("1-5,42,51,11"))), "0,2,40,42");
  EXPECT_EQ(Text(picker.Shrink(Cpus("0-2,40-42"), 4)), "0-1,40-41");
  EXPECT_EQ(Text(picker.Shrink(Cpus("0-2,4,40-42"), 4, Cpus("2,4"))), "0,2,40,42");
}

// A reservation leaves 2 and 10 of divided cores. The kubelet counts them when it distributes, and
// would take 6 CPUs of each node for a grant of 12, these two among them.
TEST(ExclusivePickerOptionsTest, FullCoresAreDistributedWithoutTheRestOfDividedOnes) {
  const Machine machine = test::MakeMachine({.packages = 2, .cores = 4, .threads = 2});
  ASSERT_EQ(machine.cores().front(), Cpus("0,8"));
  const CpuSet free = machine.online() - Cpus("0-1");
  EXPECT_TRUE(Cpus("8-9").IsSubsetOf(test::ReferenceDistributed(machine, free, 12, 2)));
  const ExclusivePicker picker(machine,
                               {.full_pcpus_only = true, .distribute_cpus_across_numa = true});
  EXPECT_EQ(Text(picker.Take({.count = 8}, free, {})), "4-7,12-15") << "one node is enough";
  EXPECT_EQ(Text(picker.Take({.count = 12}, free, {})), "2-7,10-15");
  EXPECT_EQ(picker.Take({.count = 14}, free, {}).status().code(), StatusCode::kResourceExhausted);
}

TEST(ExclusivePickerOptionsTest, FullCoresAreDistributedAsIfDividedOnesWereBusy) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937 random(seed);
  const auto number = [&random](int first, int last) {
    return std::uniform_int_distribution<int>(first, last)(random);
  };
  for (int round = 0; round < 300; ++round) {
    const int threads = 1 << number(1, 2);
    const Machine machine = test::MakeMachine({.packages = number(1, 2),
                                               .nodes = number(1, 2),
                                               .cores = number(2, 6),
                                               .threads = threads});
    const ExclusivePicker picker(machine,
                                 {.full_pcpus_only = true, .distribute_cpus_across_numa = true});
    CpuSet free = machine.online();
    for (int i = number(1, 6); i > 0; --i)
      free.Remove(number(0, machine.online().Last()));
    const CpuSet whole = free - machine.WithSiblings(machine.online() - free);
    const int count = number(0, whole.size() / threads) * threads;
    if (count == 0) continue;
    const StatusOr<ExclusivePicker::Pick> pick = picker.Take({.count = count}, free, {});
    ASSERT_TRUE(pick.ok()) << Describe(pick.status());
    ASSERT_EQ(pick->cpus.size(), count);
    ASSERT_EQ(machine.WithSiblings(pick->cpus), pick->cpus) << "round " << round;
    ASSERT_EQ(pick->cpus.ToString(),
              test::ReferenceDistributed(machine, whole, count, threads).ToString());
  }
}

TEST(ExclusivePickerOptionsTest, UnevenCoresThatDoNotMakeUpTheCountAreRefusedForNow) {
  const Machine machine = test::Hybrid();
  const ExclusivePicker picker(machine, {.full_pcpus_only = true});
  const Status status = picker.Take({.count = 1}, Cpus("0-3"), {}).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("without dividing one"));
}

TEST(ExclusivePickerOptionsTest, UnevenCoresMakeUpTheCountWhereThatIsPossible) {
  const Machine machine = test::Hybrid();
  const ExclusivePicker picker(machine, {.full_pcpus_only = true});
  EXPECT_EQ(Text(picker.Take({.count = 2}, Cpus("2-3,5"), {})), "2-3") << "not 5 and half a core";
  EXPECT_EQ(Text(picker.Take({.count = 3}, Cpus("0-3,5"), {})), "0-1,5");
  EXPECT_EQ(Text(picker.Take({.count = 4}, Cpus("2-3,5,7"), {})), "2-3,5,7");
}

// Cores of four threads, some of which are offline.
TEST(ExclusivePickerOptionsTest, SmallerCoresReplaceALargeOneWhereOnlyTheyMakeUpTheCount) {
  const Machine all = test::MakeMachine({.cores = 6, .threads = 4});
  Machine::Parts parts = test::PartsOf(all);
  for (const int core : {0, 1, 2})
    parts.cpus[static_cast<size_t>(all.cores()[static_cast<size_t>(core)].Last())].online = false;
  const Machine machine = test::MakeMachine(std::move(parts));
  const ExclusivePicker picker(machine, {.full_pcpus_only = true});
  const CpuSet free = machine.online() - machine.cores()[5];
  const auto take = [&](int count) {
    const auto pick = picker.Take({.count = count}, free, {});
    if (!pick.ok()) return Text(pick);
    EXPECT_EQ(machine.WithSiblings(pick->cpus), pick->cpus) << count;
    return fmt::format("{}", pick->cpus.size());
  };
  for (const int count : {3, 4, 6, 7, 8, 9, 10, 11, 13, 14, 17})
    EXPECT_EQ(take(count), fmt::format("{}", count));
  for (const int count : {1, 2, 5, 12, 15, 16}) {
    EXPECT_EQ(picker.Take({.count = count}, free, {}).status().code(),
              StatusCode::kResourceExhausted)
        << count;
  }
}

TEST(ExclusivePickerOptionsTest, IsolatedCpusByNeedAndByWish) {
  const Machine machine = test::M80();
  const ExclusivePicker picker(machine, {});
  const CpuSet isolated = Cpus("10-19,50-59");
  const CpuSet ordinary = machine.online() - isolated;
  const auto take = [&](const ExclusivePicker::Need& need) {
    return Text(picker.Take(need, ordinary, isolated));
  };
  EXPECT_EQ(take({.count = 1}), "10");
  EXPECT_EQ(take({.count = 2}), "10,50");
  EXPECT_EQ(take({.count = 4}), "0-1,40-41");
  EXPECT_EQ(take({.count = 4, .prefer_isolated = true}), "10-11,50-51");
  EXPECT_EQ(take({.count = 1, .prefer_isolated = false}), "0");
  EXPECT_EQ(take({.count = 4, .require_isolated = true}), "10-11,50-51");
  EXPECT_EQ(take({.count = 21, .require_isolated = true}), "needs 21 isolated CPUs, 20 of 20 free");
  EXPECT_EQ(Cpus(take({.count = 70})).CountCommon(isolated), 10) << "these join when needed";
  EXPECT_THAT(take({.count = 70, .prefer_isolated = false}), HasSubstr("60 of 80 free"));
}

}  // namespace
}  // namespace resmgr
