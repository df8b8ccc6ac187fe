// SPDX-License-Identifier: Apache-2.0
#include "pkg/claims/claim_place.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/machines/machines.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Must;
using testing::ElementsAre;

class ClaimPlaceTest : public testing::Test {
 protected:
  // L3 groups 0-3, 4-7, 8-11, 12-15, in nodes 0-7 and 8-15.
  const Machine machine_ = test::U16TwoNodes();
};

TEST_F(ClaimPlaceTest, IsTheNodeTheCacheOrTheMachine) {
  const auto node = Must(PlaceOf({.node = 1, .cpus = 1}, machine_));
  EXPECT_EQ(node.cpus, test::Cpus("8-15"));
  EXPECT_EQ(node.name, "NUMA node 1");
  for (const int cpu : {4, 7}) {
    const auto cache = Must(PlaceOf({.cpus = 1, .l3_of = cpu}, machine_));
    EXPECT_EQ(cache.cpus, test::Cpus("4-7"));
  }
  const auto any = Must(PlaceOf({.cpus = 1}, machine_));
  EXPECT_EQ(any.cpus, machine_.allowed());
  EXPECT_EQ(any.name, "");
}

TEST_F(ClaimPlaceTest, APlaceThatIsNotThereIsRefused) {
  EXPECT_EQ(PlaceOf({.node = 2, .cpus = 1}, machine_).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(PlaceOf({.cpus = 1, .l3_of = 16}, machine_).status().code(),
            StatusCode::kInvalidArgument);
}

// A machine whose caches have these CPUs, the ones that are not online included.
Machine WithCaches(const std::vector<CpuSet>& caches, const CpuSet& offline) {
  std::map<int, Cpu> cpus;
  for (size_t cache = 0; cache < caches.size(); ++cache) {
    for (const int id : caches[cache]) {
      cpus[id] =
          Cpu{.id = id, .l3 = static_cast<int>(cache), .numa = 0, .online = !offline.Contains(id)};
    }
  }
  std::vector<Cpu> list;
  list.reserve(cpus.size());
  for (const auto& [id, cpu] : cpus)
    list.push_back(cpu);
  return test::MakeMachine(test::PartsOf(std::move(list)));
}

// The CPUs of the device with this number; empty where it has no place.
std::string CacheOf(int number, const Machine& machine) {
  const auto place = PlaceOf({.cpus = 1, .l3_of = number}, machine);
  return place.ok() ? place->cpus.ToString() : "";
}

TEST(CacheNumberTest, ACacheIsFoundByItsLowestCpuWhileThatIsOffline) {
  const std::vector<CpuSet> neighbours = {CpuSet::Range(0, 3), CpuSet::Range(4, 7),
                                          CpuSet::Range(8, 11), CpuSet::Range(12, 15)};
  const Machine one = WithCaches(neighbours, {4});
  EXPECT_EQ(CacheOf(4, one), "5-7");
  EXPECT_EQ(CacheOf(8, one), "8-11");
  const Machine several = WithCaches(neighbours, {0, 4, 5, 8});
  EXPECT_EQ(CacheOf(0, several), "1-3");
  EXPECT_EQ(CacheOf(4, several), "6-7");
  EXPECT_EQ(CacheOf(8, several), "9-11");
  const Machine smt = WithCaches(
      {test::Cpus("0-3,16-19"), test::Cpus("4-7,20-23"), test::Cpus("8-11,24-27")}, {4, 5, 17});
  EXPECT_EQ(CacheOf(4, smt), "6-7,20-23");
  EXPECT_EQ(CacheOf(0, smt), "0-3,16,18-19");
  const Machine interleaved =
      WithCaches({test::Cpus("0,3,6,9"), test::Cpus("1,4,7,10"), test::Cpus("2,5,8,11")}, {0, 1});
  EXPECT_EQ(CacheOf(0, interleaved), "3,6,9");
  EXPECT_EQ(CacheOf(1, interleaved), "4,7,10");
}

TEST(CacheNumberTest, ACacheThatIsAwayIsNotTakenForAnother) {
  const std::vector<CpuSet> caches = {CpuSet::Range(0, 3), CpuSet::Range(4, 7),
                                      CpuSet::Range(8, 11), CpuSet::Range(12, 15)};
  const Machine away = WithCaches(caches, test::Cpus("4-7,8"));
  EXPECT_EQ(CacheOf(4, away), "");
  EXPECT_EQ(CacheOf(5, away), "");
  EXPECT_EQ(CacheOf(8, away), "9-11");
  // Not the lowest one.
  EXPECT_EQ(PlaceOf({.cpus = 1, .l3_of = 6}, WithCaches(caches, {6})).status().code(),
            StatusCode::kInvalidArgument);
  // No whole cache shows where these begin.
  EXPECT_EQ(CacheOf(4, WithCaches(caches, {0, 4, 8, 12})), "");
  // CPU 7 is the last one of the first cache.
  const Machine both =
      WithCaches({CpuSet::Range(0, 7), CpuSet::Range(8, 15), CpuSet::Range(16, 23)}, {7, 8, 15});
  EXPECT_EQ(CacheOf(7, both), "");
  EXPECT_EQ(CacheOf(8, both), "9-14");
}

TEST(CacheNumberTest, IsTheOneOfTheWholeCache) {
  const std::vector<CpuSet> caches = {CpuSet::Range(0, 3), CpuSet::Range(4, 7),
                                      CpuSet::Range(8, 11)};
  const auto numbers = [&caches](const CpuSet& offline) {
    const Machine machine = WithCaches(caches, offline);
    std::vector<int> all;
    for (const CpuSet& cache : machine.l3_groups())
      all.push_back(NumberOfCache(cache, machine));
    return all;
  };
  EXPECT_THAT(numbers({}), ElementsAre(0, 4, 8));
  EXPECT_THAT(numbers({4, 9}), ElementsAre(0, 4, 8));
  EXPECT_THAT(numbers({0, 4, 8}), ElementsAre(1, 5, 9)) << "no cache is known to be whole";
}

}  // namespace
}  // namespace resmgr
