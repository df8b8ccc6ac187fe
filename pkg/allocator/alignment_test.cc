// SPDX-License-Identifier: Apache-2.0
#include "pkg/allocator/alignment.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::Cpus;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> Names(const Machine& machine, Alignment alignment) {
  std::vector<std::string> names;
  const AlignedPlaces places(machine);
  for (const AlignedPlace& place : places.Of(alignment))
    names.push_back(place.name + " " + place.cpus.ToString());
  return names;
}

TEST(AlignmentTest, PlacesAreThoseOfTheMachine) {
  EXPECT_THAT(Names(test::S2Ht(), Alignment::kNuma),
              ElementsAre("NUMA node 0 0,2,4,6,8,10", "NUMA node 1 1,3,5,7,9,11"));
  EXPECT_THAT(
      Names(test::U16TwoNodes(), Alignment::kL3),
      ElementsAre("L3 cache 0 0-3", "L3 cache 1 4-7", "L3 cache 2 8-11", "L3 cache 3 12-15"));
  EXPECT_THAT(Names(test::F80(), Alignment::kPackage),
              ElementsAre("package 0 0-9,40-49", "package 1 10-19,50-59", "package 2 20-29,60-69",
                          "package 3 30-39,70-79"));
  EXPECT_THAT(Names(test::F80(), Alignment::kPrefer), ElementsAre());
}

TEST(AlignmentTest, EveryCpuHasAPlace) {
  Machine::Parts parts = test::PartsOf(std::vector<Cpu>(test::U16().cpus()));
  for (int cpu = 12; cpu < 16; ++cpu)
    parts.cpus[static_cast<size_t>(cpu)].l3 = -1;
  const Machine machine = test::MakeMachine(std::move(parts));
  const AlignedPlaces places(machine);
  CpuSet all;
  for (const AlignedPlace& place : places.Of(Alignment::kL3))
    all |= place.cpus;
  EXPECT_EQ(all, machine.online());
  EXPECT_EQ(places.Of(Alignment::kL3).back().name, "NUMA node 0 without L3 cache");
  EXPECT_TRUE(places.IsAligned(Alignment::kL3, Cpus("12-15")));
  EXPECT_FALSE(places.IsAligned(Alignment::kL3, Cpus("11-12")));
  EXPECT_TRUE(places.IsAligned(Alignment::kPrefer, Cpus("0-15")));
}

TEST(AlignmentTest, ReadsAnnotationsOfPodAndContainer) {
  const StringMap annotations = {{"alignment.resource-policy.nri.io/pod", "L3"},
                                 {"alignment.resource-policy.nri.io/container.main", "numa"},
                                 {"alignment.resource-policy.nri.io/container.odd", "core"}};
  EXPECT_EQ(ReadAlignmentAnnotation(annotations, "main").alignment, Alignment::kNuma);
  EXPECT_EQ(ReadAlignmentAnnotation(annotations, "side").alignment, Alignment::kL3);
  EXPECT_EQ(ReadAlignmentAnnotation(annotations, "odd").alignment, std::nullopt);
  EXPECT_EQ(
      ReadAlignmentAnnotation(annotations, "odd").ignored,
      "annotation alignment ignored: unknown value \"core\": use prefer, numa, l3 or package");
  EXPECT_EQ(ReadAlignmentAnnotation(annotations, "odd").Note(),
            fmt::format(" ({})", ReadAlignmentAnnotation(annotations, "odd").ignored));
  EXPECT_EQ(ReadAlignmentAnnotation(annotations, "main").Note(),
            " (alignment numa by its annotation)");
  EXPECT_EQ(ReadAlignmentAnnotation({}, "main").Note(), "");
}

// 64 L3 caches: the one that comes nearest to the need must not be among those left out.
// Nothing else than the annotation helps where it has precedence over the option.
TEST(AlignmentTest, AWayToSplitNamesTheAnnotationOrTheOption) {
  const StringMap annotations = {{"alignment.resource-policy.nri.io/container.main", "l3"},
                                 {"alignment.resource-policy.nri.io/container.odd", "core"}};
  EXPECT_EQ(WayToSplit(Alignment::kL3, annotations, "main", "static"),
            "the annotation alignment.resource-policy.nri.io/container.main: prefer (now l3)");
  EXPECT_EQ(WayToSplit(Alignment::kNuma, annotations, "odd", "static"),
            "policy.static.Alignment: prefer");
  EXPECT_EQ(WayToSplit(Alignment::kNuma, {}, "main", "topology-aware"),
            "policy.topology-aware.Alignment: prefer");
}

TEST(AlignmentTest, TheLackOfManyPlacesBeginsWithTheMostFreeCpus) {
  std::vector<std::pair<std::string_view, int>> free(64, {"L3 cache 1", 0});
  free[17] = {"L3 cache 17", 3};
  free[63] = {"L3 cache 63", 2};
  EXPECT_THAT(DescribeLack(free, 4),
              StartsWith("L3 cache 17: 3 of 4 CPUs free; L3 cache 63: 2 of 4 CPUs free; "));
}

TEST(AlignmentTest, TheLackIsBounded) {
  EXPECT_EQ(DescribeLack({{"NUMA node 0", 3}, {"NUMA node 1", 0}}, 4),
            "NUMA node 0: 3 of 4 CPUs free; NUMA node 1: 0 of 4 CPUs free");
  EXPECT_EQ(DescribeLack({{"L3 cache 2", 0}}, 1), "L3 cache 2: 0 of 1 CPU free");
  const std::vector<std::pair<std::string_view, int>> many(1000, {"L3 cache 7", 1});
  const std::string text = DescribeLack(many, 2);
  EXPECT_LT(text.size(), 400);
  EXPECT_THAT(text, HasSubstr("; 992 more have no more than 1"));
}

}  // namespace
}  // namespace resmgr
