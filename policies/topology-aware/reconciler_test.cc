// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/reconciler.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/policy/testing/test_snapshot.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

// Four nodes of four CPUs, two of them in each package; CPUs 0 and 1 are reserved. Containers are
// taken over with their pool by the state and their CPUs by the runtime.
class ReconcilerTest : public testing::Test {
 protected:
  ContainerKey Add(CpuClass cpu_class, std::string_view pool, std::string_view cpus,
                   std::string_view exclusive = "", int64_t fraction = 1000) {
    Container& container = snapshot_.Add("c", QosClass::kBurstable, 1000);
    container.placement.pool = pool;
    container.placement.cpus = test::Cpus(cpus);
    container.placement.exclusive = test::Cpus(exclusive);
    Demand demand;
    demand.need.cpu_class = cpu_class;
    demand.need.full = container.placement.exclusive.size();
    demand.need.fraction = fraction;
    reconciler_.Add(snapshot_.PodOf(container.key), container, demand);
    return container.key;
  }
  void Run() {
    const auto nothing = [](const Pod&, const Container&, const auto&...) {};
    snapshot_.Apply(reconciler_.Run(nothing, nothing));
  }
  std::string PlaceOf(ContainerKey key) {
    const Placement& placement = snapshot_.At(key).placement;
    return placement.pool + ": " + placement.cpus.value_or(CpuSet()).ToString();
  }

  const Machine machine_ = test::MakeMachine({.packages = 2, .nodes = 2, .cores = 4});
  GrantBook book_{machine_, machine_.online(), test::Cpus("0-1"), true};
  const Placer placer_{book_};
  Reconciler reconciler_{book_, placer_};
  test::TestSnapshot snapshot_;
};

TEST_F(ReconcilerTest, KeepsThePoolThatIsNamed) {
  const ContainerKey wide = Add(CpuClass::kShared, "root", "2-15");
  // The push of its larger set was still to come.
  const ContainerKey narrow = Add(CpuClass::kShared, "socket #1", "8-11");
  const ContainerKey mixed = Add(CpuClass::kExclusive, "NUMA node #1", "4-7", "4");
  Run();
  EXPECT_EQ(PlaceOf(wide), "root: 2-3,5-15");
  EXPECT_EQ(PlaceOf(narrow), "socket #1: 8-15");
  EXPECT_EQ(PlaceOf(mixed), "NUMA node #1: 4-7");
}

// The disk took no part when it moved there.
TEST_F(ReconcilerTest, WhereItRunsOverrulesAPoolThatHasNoSuchCpus) {
  const ContainerKey wide = Add(CpuClass::kShared, "NUMA node #1", "2-15");
  const ContainerKey elsewhere = Add(CpuClass::kShared, "NUMA node #1", "8-11");
  // The container shares because there was no room; without its pool's name this would not be
  // known.
  const ContainerKey entitled = Add(CpuClass::kExclusive, "NUMA node #1", "2-15");
  Run();
  EXPECT_EQ(PlaceOf(wide), "root: 2-15");
  EXPECT_EQ(PlaceOf(elsewhere), "NUMA node #2: 8-11");
  EXPECT_EQ(PlaceOf(entitled), "root: 2-15");
}

TEST_F(ReconcilerTest, TheSharedPartOfAMixedPlaceTellsItsPool) {
  const ContainerKey mixed = Add(CpuClass::kExclusive, "NUMA node #1", "4,8-15", "4");
  Run();
  EXPECT_EQ(PlaceOf(mixed), "root: 2-15");
  EXPECT_EQ(snapshot_.At(mixed).placement.exclusive.ToString(), "4");
}

// Their requests exceed the shared CPU that is left, as under another policy that counts otherwise.
TEST_F(ReconcilerTest, FractionsCostNoExclusiveCpus) {
  const ContainerKey mixed = Add(CpuClass::kExclusive, "NUMA node #1", "4,6", "4");
  const ContainerKey other = Add(CpuClass::kExclusive, "NUMA node #1", "5-6", "5");
  const ContainerKey whole = Add(CpuClass::kExclusive, "NUMA node #1", "7", "7", 0);
  Run();
  EXPECT_EQ(PlaceOf(whole), "NUMA node #1: 7");
  EXPECT_EQ(PlaceOf(mixed), "NUMA node #1: 4,6");
  EXPECT_EQ(PlaceOf(other), "NUMA node #1: 5-6");
}

// Resizes may make fractions larger than the shared CPUs.
TEST_F(ReconcilerTest, FractionsOfOthersCostNoExclusiveCpus) {
  std::vector<ContainerKey> mixed;
  for (int cpu = 2; cpu < 15; ++cpu) {
    const std::string own = std::to_string(cpu);
    mixed.push_back(Add(CpuClass::kExclusive, "root", own + ",15", own, 900));
  }
  Run();
  for (size_t i = 0; i < mixed.size(); ++i) {
    const Placement& placement = snapshot_.At(mixed[i]).placement;
    EXPECT_EQ(placement.exclusive.ToString(), std::to_string(i + 2));
    EXPECT_EQ(placement.cpus->ToString(), CpuSet({static_cast<int>(i) + 2, 15}).ToString());
  }
}

TEST_F(ReconcilerTest, AReservedContainerOnReservedCpusStays) {
  const ContainerKey reserved = Add(CpuClass::kReserved, "root", "0-1");
  const ContainerKey crowded_out = Add(CpuClass::kReserved, "root", "2-15");
  const ContainerKey ordinary = Add(CpuClass::kShared, "NUMA node #2", "0-1");
  Run();
  EXPECT_EQ(PlaceOf(reserved), "reserved: 0-1");
  EXPECT_EQ(PlaceOf(crowded_out), "root: 2-15");
  EXPECT_EQ(PlaceOf(ordinary), "NUMA node #2: 8-11") << "that is no place for it";
}

}  // namespace
}  // namespace resmgr
