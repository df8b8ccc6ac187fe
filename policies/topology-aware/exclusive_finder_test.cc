// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/exclusive_finder.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

// Cores of one design that are faster on some CPUs.
Machine WithSpeeds(const Machine& machine, std::string_view fast, std::string_view fastest) {
  Machine::Parts parts{
      .cpus = machine.cpus(), .nodes = machine.nodes(), .allowed = machine.allowed()};
  for (Cpu& cpu : parts.cpus) {
    if (test::Cpus(fast).Contains(cpu.id)) cpu.speed = 1;
    if (test::Cpus(fastest).Contains(cpu.id)) cpu.speed = 2;
  }
  return test::MakeMachine(std::move(parts));
}

class ExclusiveFinderTest : public testing::Test {
 protected:
  static std::string Pick(const Machine& machine, const CpuSet& available, CpuPriority priority,
                          int count) {
    const GrantBook book(machine, available, CpuSet{available.Last()}, true);
    Demand demand;
    demand.need.cpu_class = CpuClass::kExclusive;
    demand.need.full = count;
    demand.need.priority = priority;
    const auto picked = ExclusiveFinder(book).Pick(demand, book.tree().root());
    return picked ? picked->ToString() : "none";
  }
};

TEST_F(ExclusiveFinderTest, FollowsClockRatesOfCoresOfOneDesign) {
  const Machine machine = WithSpeeds(test::MakeMachine({.cores = 8}), "2,4", "6");
  const CpuSet& all = machine.online();
  EXPECT_EQ(Pick(machine, all, CpuPriority::kHigh, 1), "6");
  EXPECT_EQ(Pick(machine, all, CpuPriority::kHigh, 2), "2,6");
  EXPECT_EQ(Pick(machine, all, CpuPriority::kHigh, 4), "0,2,4,6");
  EXPECT_EQ(Pick(machine, all, CpuPriority::kNormal, 4), "0-1,3,5") << "7 is reserved";
  EXPECT_EQ(Pick(machine, all, CpuPriority::kLow, 5), "0-3,5");
  EXPECT_EQ(Pick(machine, all, CpuPriority::kNone, 4), "0-3");
}

TEST_F(ExclusiveFinderTest, DesignsCountMoreThanClockRates) {
  const Machine machine = WithSpeeds(test::Hybrid(), "5", "2-3");
  EXPECT_EQ(Pick(machine, machine.online(), CpuPriority::kHigh, 5), "0-3,5");
  EXPECT_EQ(Pick(machine, machine.online(), CpuPriority::kLow, 3), "4-6");
  EXPECT_EQ(Pick(machine, machine.online(), CpuPriority::kNormal, 2), "0-1");
}

// The golden case of cri-resource-manager's allocator: the three existing fast CPUs, and the fourth
// one from their package.
TEST_F(ExclusiveFinderTest, HighPriorityTakesTheFastOnesAndOneBesideThem) {
  const Machine machine = WithSpeeds(
      test::MakeMachine({.packages = 2, .nodes = 2, .cores = 10, .threads = 2}), "2,15,17", "");
  EXPECT_EQ(Pick(machine, test::Cpus("2-3,10-26"), CpuPriority::kHigh, 4), "2-3,15,17");
}

TEST_F(ExclusiveFinderTest, BetterCpusScoreMore) {
  const Machine machine = WithSpeeds(test::MakeMachine({.cores = 8}), "1-3", "6-7");
  const GrantBook book(machine, machine.online(), CpuSet{0}, true);
  const ExclusiveFinder finder(book);
  Need need;
  need.full = 2;
  EXPECT_EQ(finder.PriorityScore(need, machine.online()), 0) << "no priority";
  need.priority = CpuPriority::kHigh;
  EXPECT_EQ(finder.PriorityScore(need, test::Cpus("1-3,6-7")), 4);
  EXPECT_EQ(finder.PriorityScore(need, test::Cpus("1-3,6")), 3);
  EXPECT_EQ(finder.PriorityScore(need, test::Cpus("0,1-3")), 2);
  EXPECT_EQ(finder.PriorityScore(need, test::Cpus("0,4-5")), 0);
  need.priority = CpuPriority::kLow;
  EXPECT_EQ(finder.PriorityScore(need, test::Cpus("0,4-5")), 4);
}

// A core with one thread, one with two, one with three and one with four. Siblings of the
// container's visible CPUs must not be another's, and a restart knows only the visible ones.
TEST_F(ExclusiveFinderTest, HiddenHyperthreadsAreOfWholeCoresThoughCoresDiffer) {
  Machine::Parts parts;
  for (int id = 0; id < 11; ++id) {
    constexpr std::array<int, 11> kCores = {0, 1, 2, 2, 3, 3, 3, 4, 4, 4, 4};
    parts.cpus.push_back({.id = id, .core = kCores[IndexOf(id)], .online = true});
    parts.allowed.Add(id);
  }
  const Machine machine = test::MakeMachine(std::move(parts));
  GrantBook book(machine, machine.online(), CpuSet{0}, true);
  const ExclusiveFinder finder(book);
  for (const auto& [taken, asked, picked] :
       {std::tuple("", 1, "2-6"), std::tuple("", 5, "2-10"), std::tuple("7-10", 2, "2-6"),
        std::tuple("1,7-10", 2, "2-6"), std::tuple("1-3,7-10", 2, "")}) {
    book.Clear();
    book.Give(ContainerKey{1}, {.exclusive = test::Cpus(taken)});
    Demand demand;
    demand.need = {.cpu_class = CpuClass::kExclusive, .full = asked, .hide_hyperthreads = true};
    const std::optional<CpuSet> cpus = finder.Pick(demand, book.tree().root());
    EXPECT_EQ(cpus.value_or(CpuSet()).ToString(), picked) << asked << " beside " << taken;
    EXPECT_EQ(finder.Has(demand, book.tree().root()), cpus.has_value());
    if (cpus) EXPECT_TRUE(finder.Meets(demand.need, *cpus));
  }
  const Need need = {.cpu_class = CpuClass::kExclusive, .full = 1, .hide_hyperthreads = true};
  // Other containers leave four CPUs.
  book.Clear();
  book.Give(ContainerKey{1}, {.need = {.fraction = 6000}, .pool = book.tree().root()});
  EXPECT_EQ(finder.Pick({.need = need}, book.tree().root()), test::Cpus("7-10"));
  EXPECT_FALSE(finder.Meets(need, test::Cpus("2-3"))) << "too few";
  EXPECT_FALSE(finder.Meets(need, test::Cpus("2-6,7"))) << "not whole";
  EXPECT_FALSE(finder.Meets(need, test::Cpus("1-10"))) << "too many";
}

}  // namespace
}  // namespace resmgr
