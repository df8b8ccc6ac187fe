// SPDX-License-Identifier: Apache-2.0
// The containers that get CPUs that the kernel isolates.
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/static/testing/static_node.h"

namespace resmgr {
namespace {

using test::Cpus;
using Node = test::StaticNode;
using testing::HasSubstr;

using enum QosClass;

TEST(StaticIsolatedTest, IsolatedCpusAreNeitherSharedNorWasted) {
  Node node(test::WithIsolated(test::S1Ht(), "2-3,6-7"));
  EXPECT_EQ(node.CpusOf(*node.Create("shared", kBurstable, 100)), "0-1,4-5");
  EXPECT_EQ(node.ExclusiveOf(*node.Create("one", kGuaranteed, 1000)), "2")
      << "a single CPU comes from the isolated ones";
  EXPECT_EQ(node.ExclusiveOf(*node.Create("core", kGuaranteed, 2000)), "3,7") << "a full core, too";
  const ContainerKey four = *node.Create("four", kGuaranteed, 4000);
  EXPECT_EQ(node.ExclusiveOf(four), "1,4-6") << "they join when the others are too few";
}

// Ordinary and isolated CPUs together would be the last ordinary one.
TEST(StaticIsolatedTest, IsolatedCpusAreTakenWhereTheLastSharedOneHasToStay) {
  Node node(test::WithIsolated(test::S1Ht(), "2-3,6-7"), "");
  ASSERT_TRUE(node.Create("three", kGuaranteed, 3000).ok());
  const auto isolated = node.Create("isolated", kGuaranteed, 3000);
  ASSERT_TRUE(isolated.ok()) << isolated.status();
  EXPECT_TRUE(Cpus(node.ExclusiveOf(*isolated)).IsSubsetOf(Cpus("2-3,6-7")));
  const Status grown = node.Resize(*isolated, 4000);
  ASSERT_TRUE(grown.ok()) << grown;
  EXPECT_EQ(node.ExclusiveOf(*isolated), "2-3,6-7");
  EXPECT_FALSE(node.Create("one", kGuaranteed, 1000).ok());
}

TEST(StaticIsolatedTest, AnnotationsChooseIsolatedCpus) {
  Node node(test::WithIsolated(test::S1Ht(), "2-3,6-7"));
  Container& without = node.snapshot().Add("without", kGuaranteed, 1000);
  node.snapshot().PodOf(without.key).annotations = {
      {"prefer-isolated-cpus.cri-resource-manager.intel.com", "false"}};
  EXPECT_EQ(node.ExclusiveOf(*node.Place(without.key)), "4");
  Container& with = node.snapshot().Add("with", kGuaranteed, 3000);
  node.snapshot().PodOf(with.key).annotations = {
      {"prefer-isolated-cpus.resource-policy.nri.io", "true"}};
  EXPECT_TRUE(Cpus(node.ExclusiveOf(*node.Place(with.key))).IsSubsetOf(Cpus("2-3,6-7")));
}

TEST(StaticSharedTest, AnAnnotationAddsTheSharedCpus) {
  Node node(test::S1Ht());
  Container& mixed = node.snapshot().Add("mixed", kGuaranteed, 2000);
  node.snapshot().PodOf(mixed.key).annotations = {{"cpu-shared.crio.io/mixed", "enable"}};
  ASSERT_TRUE(node.Place(mixed.key).ok());
  EXPECT_EQ(node.ExclusiveOf(mixed.key), "1,5");
  EXPECT_EQ(node.CpusOf(mixed.key), "0-7");
  EXPECT_THAT(node.PlacementOf(mixed.key).reason,
              testing::HasSubstr("and shared CPUs by annotation"));
  const ContainerKey other = *node.Create("other", kGuaranteed, 2000);
  EXPECT_EQ(node.CpusOf(other), "2,6");
  EXPECT_EQ(node.CpusOf(mixed.key), "0-1,3-5,7") << "others keep their own";
}

TEST(StaticIsolatedTest, RelaxedIsolationPrefersIsolatedCpusForAllContainers) {
  Node node(test::WithIsolated(test::S1Ht(), "2-3,6-7"), "0", "{RelaxedIsolation: true}");
  EXPECT_TRUE(
      Cpus(node.ExclusiveOf(*node.Create("three", kGuaranteed, 3000))).IsSubsetOf(Cpus("2-3,6-7")));
}

TEST(StaticIsolatedTest, IsolatedCpusOnRequestOnly) {
  Node node(test::WithIsolated(test::S1Ht(), "2-3,6-7"));
  const auto create = [&node](std::string_view name, int64_t milli_cpu, std::string_view key,
                              std::string_view value) {
    Container& container = node.snapshot().Add(name, kGuaranteed, milli_cpu);
    node.snapshot().PodOf(container.key).annotations = {
        {fmt::format("{}.resource-policy.nri.io", key), std::string(value)}};
    return node.Place(container.key);
  };
  const Status none = create("none", 4000, "prefer-isolated-cpus", "false").status();
  EXPECT_THAT(std::string(Message(none)), HasSubstr("3 of 8 free: CPU 0 reserved"));
  EXPECT_EQ(node.ExclusiveOf(*create("all", 4000, "require-isolated-cpus", "true")), "2-3,6-7");
  EXPECT_THAT(
      std::string(Message(create("x", 1000, "require-isolated-cpus", "true").status())),
      HasSubstr(
          "needs 1 isolated CPU, 0 of 4 free: CPU 0 reserved, CPUs 2-3,6-7 held by ns/all/all"));
}

TEST(StaticIsolatedTest, ReadsOlderFormsOfAnnotations) {
  Node node(test::WithIsolated(test::S1Ht(), "2-3,6-7"));
  const auto create = [&node](std::string_view name, const StringMap& annotations,
                              const StringMap& labels) {
    Container& container = node.snapshot().Add(name, kGuaranteed, 1000);
    node.snapshot().PodOf(container.key).annotations = annotations;
    node.snapshot().PodOf(container.key).labels = labels;
    return node.ExclusiveOf(*node.Place(container.key));
  };
  const StringMap old = {{"cri-resource-manager.intel.com/prefer-isolated-cpus", "false"}};
  EXPECT_EQ(create("pod", old, {}), "4");
  const StringMap map = {
      {"cri-resource-manager.intel.com/prefer-isolated-cpus", "{one: false, other: true}"}};
  EXPECT_EQ(create("one", map, {}), "1");
  EXPECT_EQ(create("other", map, {}), "2");
  const StringMap label = {{"cri.resource-manager.prefer-isolated-cpus", "false"}};
  EXPECT_EQ(create("labelled", {}, label), "5");
  const StringMap annotation = {{"prefer-isolated-cpus.resource-policy.nri.io", "true"}};
  EXPECT_EQ(create("both", annotation, label), "6");
}

}  // namespace
}  // namespace resmgr
