// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/cpu_chooser.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/balloons/testing/balloons_node.h"

namespace resmgr {
namespace {

using test::Cpus;

// Balloons on one machine, without types: only their CPUs.
class Sets {
 public:
  explicit Sets(Machine machine = test::N4C16())
      : machine_(std::move(machine)),
        chooser_(machine_, machine_.online()),
        idle_(machine_.online()) {}

  void SetIdle(std::string_view cpus) { idle_ = Cpus(cpus); }
  // The set grows or shrinks to `size`; its CPUs.
  std::string Size(const std::string& name, int size, const CpuChoiceRules& rules = {}) {
    CpuSet& own = sets_[name];
    const int more = size - own.size();
    if (more < 0) {
      const CpuSet back = chooser_.Shrink(rules, own, idle_, -more);
      EXPECT_EQ(back.size(), -more);
      own -= back;
      idle_ |= back;
      return own.ToString();
    }
    const StatusOr<CpuSet> cpus = chooser_.Grow(rules, own, idle_, more);
    if (!cpus.ok()) return std::string(Message(cpus.status()));
    EXPECT_EQ(cpus->size(), more);
    EXPECT_TRUE(cpus->IsSubsetOf(idle_));
    own |= *cpus;
    idle_ -= *cpus;
    return own.ToString();
  }
  const CpuSet& idle() const { return idle_; }
  const CpuSet& at(const std::string& name) { return sets_[name]; }
  const Machine& machine() const { return machine_; }

 private:
  const Machine machine_;
  const CpuChooser chooser_;
  CpuSet idle_;
  std::map<std::string, CpuSet> sets_;
};

const CpuChoiceRules kBalanced = {.balance = true};

TEST(CpuChooserRowsTest, R1ReservedAmongIdleCpus) {
  Sets sets;
  sets.SetIdle("2-7,10-13");
  EXPECT_EQ(sets.Size("reserved", 1), "10");
  EXPECT_EQ(sets.Size("b", 1), "11");
  EXPECT_EQ(sets.Size("c", 1), "12");
}

TEST(CpuChooserRowsTest, R2Packed) {
  Sets sets;
  EXPECT_EQ(sets.Size("a", 1), "0");
  EXPECT_EQ(sets.Size("b", 1), "1");
  EXPECT_EQ(sets.Size("c", 1), "2");
  EXPECT_EQ(sets.Size("d", 2), "4-5");
  EXPECT_EQ(sets.Size("e", 3), "8-10");
  EXPECT_EQ(sets.Size("f", 4), "12-15");
  EXPECT_EQ(sets.idle().ToString(), "3,6-7,11");
}

TEST(CpuChooserRowsTest, R3BalancedWithTiesByNumber) {
  Sets sets;
  EXPECT_EQ(sets.Size("a", 1, kBalanced), "0");
  EXPECT_EQ(sets.Size("b", 1, kBalanced), "8") << "theirs, by text: 10";
  EXPECT_EQ(sets.Size("c", 1, kBalanced), "4");
  EXPECT_EQ(sets.Size("d", 1, kBalanced), "12");
  EXPECT_EQ(sets.Size("e", 1, kBalanced), "2");
  EXPECT_EQ(sets.Size("f", 1, kBalanced), "10");
  EXPECT_EQ(sets.Size("g", 2, kBalanced), "6-7");
}

TEST(CpuChooserRowsTest, R4PackedGrowth) {
  Sets sets;
  sets.SetIdle("1-15");
  EXPECT_EQ(sets.Size("a", 1), "1");
  EXPECT_EQ(sets.Size("a", 2), "1-2");
  EXPECT_EQ(sets.Size("a", 3), "1-3");
  EXPECT_EQ(sets.Size("a", 4), "1-4");
  EXPECT_EQ(sets.Size("b", 1), "5");
  EXPECT_EQ(sets.Size("a", 1), "2");
}

TEST(CpuChooserRowsTest, R5BalancedGrowth) {
  Sets sets;
  EXPECT_EQ(sets.Size("a", 1, kBalanced), "0");
  EXPECT_EQ(sets.Size("b", 1, kBalanced), "8");
  EXPECT_EQ(sets.Size("a", 4, kBalanced), "0-3");
  EXPECT_EQ(sets.Size("b", 4, kBalanced), "8-11");
  EXPECT_EQ(sets.Size("a", 6, kBalanced), "0-5");
  EXPECT_EQ(sets.Size("b", 6, kBalanced), "8-13");
  EXPECT_EQ(sets.Size("a", 2, kBalanced), "0-1");
}

TEST(CpuChooserRowsTest, R6SpreadOnCores) {
  Sets sets;
  const CpuChoiceRules both = {.balance = true, .spread = true};
  EXPECT_EQ(sets.Size("a", 2, both), "0,2");
  EXPECT_EQ(sets.Size("b", 2, both), "8,10");
  EXPECT_EQ(sets.Size("a", 4, both), "0-3");
  EXPECT_EQ(sets.Size("c", 3, {.spread = true}), "4-6");
}

TEST(CpuChooserRowsTest, R7CloseToADeviceAndFarFromIt) {
  Sets sets;
  const CpuChoiceRules dev = {.balance = true, .hints = {{"close", Cpus("8-11")}}};
  const CpuChoiceRules other = {.balance = true, .hints = {{"far", Cpus("0-7,12-15")}}};
  EXPECT_EQ(sets.Size("other1", 1, other), "0");
  EXPECT_EQ(sets.Size("dev1", 3, dev), "8-10");
  EXPECT_EQ(sets.Size("dev2", 2, dev), "4-5") << "one CPU is left there";
  EXPECT_EQ(sets.Size("other2", 4, other), "12-15");
  EXPECT_EQ(sets.Size("other3", 4, other), "2-3,6-7");
}

TEST(CpuChooserRowsTest, R8ReservedCpusAreForReserved) {
  Sets sets;
  const CpuChoiceRules reserved = {.hints = {{"its CPUs", Cpus("0-2")}}};
  const CpuChoiceRules others = {.hints = {{"far", Cpus("3-15")}}};
  EXPECT_EQ(sets.Size("reserved", 1, reserved), "2");
  EXPECT_EQ(sets.Size("a", 2, others), "4-5");
  EXPECT_EQ(sets.Size("b", 2, others), "6-7");
  EXPECT_EQ(sets.Size("default", 1, others), "3");
  EXPECT_EQ(sets.Size("reserved", 3, reserved), "0-2");
  EXPECT_TRUE(Cpus("0-2").IsSubsetOf(Cpus(sets.Size("reserved", 4, reserved))));
  EXPECT_TRUE(Cpus(sets.Size("reserved", 2, reserved)).IsSubsetOf(Cpus("0-2")));
}

TEST(CpuChooserRowsTest, R9LoadsOfCores) {
  Sets sets;
  const auto load = [&](std::string_view loaded) {
    return CpuChoiceRules{.loaded = Cpus(loaded), .own_loads = {BalloonLevel::kCore}};
  };
  EXPECT_EQ(sets.Size("a", 2, load("")), "0,2");
  EXPECT_EQ(sets.Size("b", 2, load("0-3")), "4,6");
  EXPECT_EQ(sets.Size("c", 4, load("0-7")), "8,10,12,14");
}

// Two packages of two dies of two nodes of two cores of two threads, neighbours.
Machine Deep() {
  std::vector<Cpu> cpus;
  cpus.reserve(32);
  for (int id = 0; id < 32; ++id) {
    cpus.push_back({.id = id,
                    .core = id / 2,
                    .die = id / 8,
                    .numa = id / 4,
                    .package = id / 16,
                    .online = true});
  }
  return test::MakeMachine(test::PartsOf(std::move(cpus)));
}

TEST(CpuChooserTest, LoadsAreTheLastHint) {
  CpuChoiceRules rules{.hints = {{"close to node2", Cpus("8-11")}}, .loaded = Cpus("8-11")};
  EXPECT_EQ(Sets().Size("a", 2, rules), "8-9");
  rules.loaded = Cpus("8-9");
  EXPECT_EQ(Sets().Size("a", 1, rules), "10");
  rules.loaded = CpuSet();
  rules.own_loads = {BalloonLevel::kCore};
  EXPECT_EQ(Sets().Size("a", 2, rules), "8,10");
}

TEST(CpuTreeTest, SmallestPartThatHasEnough) {
  const Machine machine = Deep();
  const CpuTree tree(machine, machine.online(), false);
  const std::map<int, int> sizes = {{1, 1},   {2, 2},   {3, 4},   {4, 4},   {5, 8},
                                    {7, 8},   {8, 8},   {9, 16},  {15, 16}, {16, 16},
                                    {17, 32}, {31, 32}, {32, 32}, {33, 0}};
  for (const auto& [count, size] : sizes)
    EXPECT_EQ(tree.PartToGrow({}, machine.online(), count, false).size(), size) << count;
  const CpuChooser chooser(machine, machine.online());
  EXPECT_FALSE(chooser.Grow({}, {}, machine.online(), 33).ok());
}

// How many parts of a level the sets touch.
int Touched(const std::vector<CpuSet>& parts, const CpuSet& cpus) {
  int count = 0;
  for (const CpuSet& part : parts)
    count += part.Intersects(cpus) ? 1 : 0;
  return count;
}

TEST(CpuTreeTest, EightBalancedSetsAreOnDifferentNodes) {
  Sets sets(Deep());
  CpuSet all;
  for (int i = 1; i <= 8; ++i) {
    all |= Cpus(sets.Size(std::to_string(i), 1, kBalanced));
    if (i == 2) {
      EXPECT_EQ(Touched(sets.machine().packages(), all), 2);
    }
    if (i == 4) {
      EXPECT_EQ(Touched(sets.machine().dies(), all), 4);
    }
  }
  EXPECT_EQ(sets.machine().NodesOf(all).size(), 8);
}

TEST(CpuTreeTest, PackedSetsShareCoreNodeAndDie) {
  Sets sets(Deep());
  EXPECT_EQ(sets.Size("a", 1), "0");
  EXPECT_EQ(sets.Size("b", 1), "1");
  EXPECT_EQ(sets.Size("c", 1), "2");
  EXPECT_EQ(sets.Size("d", 1), "3");
}

TEST(CpuTreeTest, AGrowingSetStaysNear) {
  Sets sets(Deep());
  int size = 0;
  const std::vector<std::pair<int, int>> steps = {{1, 1}, {1, 2},  {1, 4},  {1, 4},  {1, 8},
                                                  {3, 8}, {1, 16}, {6, 16}, {1, 16}, {1, 32}};
  for (const auto& [more, within] : steps) {
    size += more;
    const CpuSet cpus = Cpus(sets.Size("a", size));
    EXPECT_LT(cpus.Last(), within) << size;
  }
}

TEST(CpuTreeTest, AShrinkingSetLeavesFarPartsFirst) {
  const Machine machine = Deep();
  const CpuTree tree(machine, machine.online(), false);
  CpuSet own = Cpus("0,2-3,7,10,17-18");
  std::vector<int> order;
  while (!own.empty()) {
    const int cpu = tree.GiveBack(own, own, machine.online() - own, 1).First();
    order.push_back(cpu);
    own.Remove(cpu);
  }
  EXPECT_THAT(order, testing::ElementsAre(18, 17, 10, 7, 0, 3, 2));
}

TEST(CpuTreeTest, ShrinkingByManyLeavesDieThenPackageThenNode) {
  const Machine machine = Deep();
  const CpuChooser chooser(machine, machine.online());
  CpuSet own = Cpus("0,2,4,6,8-10,24-31");
  const auto shrink = [&](int count) {
    own -= chooser.Shrink({}, own, machine.online() - own, count);
    return own;
  };
  shrink(2);
  shrink(1);
  EXPECT_FALSE(own.Intersects(Cpus("8-15"))) << own.ToString();
  shrink(5);
  EXPECT_EQ(own.size(), 7);
}

// A resize is a gentle defragmentation.
TEST(CpuTreeTest, ASetThatShrinksAndGrowsEndsOnOnePackage) {
  Sets sets(test::MakeMachine({.packages = 2, .cores = 16, .threads = 2}));
  const std::vector<int> sizes = {4, 4, 14, 7, 7, 4, 4, 14};
  for (size_t i = 0; i < sizes.size(); ++i)
    sets.Size(std::to_string(i), sizes[i]);
  for (size_t i = 0; i < 4; ++i)
    sets.Size(std::to_string(i), sizes[i] - 2);
  for (int i = 0; i < 4; ++i) {
    sets.Size("7", 13);
    sets.Size("7", 14);
  }
  EXPECT_EQ(Touched(sets.machine().packages(), sets.at("7")), 1) << sets.at("7").ToString();
}

TEST(CpuTreeTest, L2CachesAreALevel) {
  // A performance core of two threads, and two L2 caches of four efficient cores.
  std::vector<Cpu> cpus;
  cpus.reserve(10);
  for (int id = 0; id < 10; ++id)
    cpus.push_back({.id = id, .core = id < 2 ? 0 : id - 1, .l2 = (id + 2) / 4, .online = true});
  Sets sets(test::MakeMachine(test::PartsOf(std::move(cpus))));
  EXPECT_EQ(sets.Size("a", 2), "0-1");
  EXPECT_EQ(sets.Size("b", 1), "2");
  EXPECT_EQ(sets.Size("c", 4), "6-9") << "one L2 cache";
  EXPECT_EQ(sets.Size("b", 2), "2-3");
}

TEST(CpuTreeTest, L3CachesAreALevel) {
  // A node of two L3 caches of four cores.
  const Machine machine =
      test::MakeMachine({.packages = 1, .nodes = 1, .l3s = 2, .cores = 8, .threads = 1});
  Sets sets(machine);
  EXPECT_EQ(sets.Size("a", 3), "0-2");
  EXPECT_EQ(sets.Size("b", 2), "4-5");
  EXPECT_EQ(sets.Size("c", 1), "3");
}

}  // namespace
}  // namespace resmgr
