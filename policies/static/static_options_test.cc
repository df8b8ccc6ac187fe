// SPDX-License-Identifier: Apache-2.0
// The options of the static policy.
#include "policies/static/static_options.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/static/testing/static_node.h"

namespace resmgr {
namespace {

using test::Cpus;
using Node = test::StaticNode;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

using enum QosClass;

Status CreateError(const Machine& machine, std::string_view reserved, std::string_view section) {
  return test::CreateError(StaticPolicyFactory(), machine, reserved, section);
}

TEST(StaticOptionsTest, StrictReservationKeepsSharedContainersOffReservedCpus) {
  Node node(test::S1Ht(), "0", "{Options: {strict-cpu-reservation: true}}");
  const ContainerKey shared = *node.Create("shared", kBurstable, 100);
  EXPECT_EQ(node.CpusOf(shared), "1-7");
  ASSERT_TRUE(node.Create("six", kGuaranteed, 6000).ok());
  EXPECT_FALSE(node.CpusOf(shared).empty());
  EXPECT_EQ(node.Create("last", kGuaranteed, 1000).status().code(), StatusCode::kResourceExhausted);
}

TEST(StaticOptionsTest, FullCoresOnly) {
  Node node(test::S1Ht(), "0", "{Options: {full-pcpus-only: true}}");
  const Status odd = node.Create("odd", kGuaranteed, 3000).status();
  EXPECT_EQ(odd.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(odd)), HasSubstr("full-pcpus-only grants whole cores of 2 CPUs"));
  EXPECT_EQ(node.CpusOf(*node.Create("six", kGuaranteed, 6000)), "1-3,5-7");
  const Status none = node.Create("more", kGuaranteed, 2000).status();
  EXPECT_EQ(none.code(), StatusCode::kResourceExhausted)
      << "CPU 4 is free, but its core is partly reserved";
}

TEST(StaticOptionsTest, FullCoresOnlyOnUnevenCores) {
  Node node(test::Hybrid(), "7", "{Options: {full-pcpus-only: true}}");
  const ContainerKey three = *node.Create("three", kGuaranteed, 3000);
  const CpuSet cpus = node.PlacementOf(three).exclusive;
  EXPECT_EQ(test::Hybrid().WithSiblings(cpus), cpus);
  EXPECT_EQ(cpus.size(), 3);
}

TEST(StaticOptionsTest, ARefusalSaysOneCpuAsOne) {
  Node node(test::S1Ht(), "0,4", "{Options: {full-pcpus-only: true}}");
  EXPECT_EQ(Message(node.Create("one", kGuaranteed, 1000).status()),
            "needs 1 exclusive CPU, but full-pcpus-only grants whole cores of 2 CPUs");
}

// The webhook's annotation shows pod-level resources: a container without limits would make the pod
// Burstable.
TEST(StaticOptionsTest, PodLevelResourcesMayExcludeExclusiveCpus) {
  Node always(test::S1Ht());
  Node node(test::S1Ht(), "0", "{Options: {pod-level-exclusive: kubelet}}");
  Pod pod;
  pod.id = PodSandboxId("whole");
  pod.qos = kGuaranteed;
  const auto annotate = [&pod](std::string_view rest) {
    pod.annotations = {};
    pod.annotations.Set(
        "intel.com/resources",
        fmt::format(R"({{"containers":{{"c":{{"limits":{{"cpu":"2","memory":"1Gi"}}}}{}}}}})",
                    rest));
  };
  annotate(R"(,"d":{})");
  const ContainerKey whole = *node.CreateIn(pod, "c", 2000);
  EXPECT_EQ(node.ExclusiveOf(whole), "");
  EXPECT_EQ(node.PlacementOf(whole).reason, "pod with pod-level resources");
  EXPECT_EQ(always.PlacementOf(*always.CreateIn(pod, "c", 2000)).exclusive.size(), 2);
  pod.id = PodSandboxId("plain");
  annotate("");
  EXPECT_EQ(node.PlacementOf(*node.CreateIn(pod, "c", 2000)).exclusive.size(), 2);
}

TEST(StaticOptionsTest, SpreadsAcrossCores) {
  Node node(test::S1Ht(), "7", "{Options: {distribute-cpus-across-cores: true}}");
  EXPECT_EQ(node.CpusOf(*node.Create("three", kGuaranteed, 3000)), "0-2");
}

TEST(StaticOptionsTest, DistributesAcrossNuma) {
  Node node(test::M80(), "79", "{Options: {distribute-cpus-across-numa: true}}");
  const ContainerKey big = *node.Create("big", kGuaranteed, 30000);
  const Machine machine = test::M80();
  std::vector<int> per_node;
  for (const NumaNode& numa : machine.nodes())
    per_node.push_back(numa.cpus.CountCommon(node.PlacementOf(big).exclusive));
  EXPECT_THAT(per_node, UnorderedElementsAre(15, 15, 0, 0));
}

TEST(StaticOptionsTest, AlignsToTheUncoreCache) {
  Node node(test::U16(), "0", "{Options: {prefer-align-cpus-by-uncorecache: true}}");
  EXPECT_EQ(node.CpusOf(*node.Create("ten", kGuaranteed, 10000)), "1-2,4-11");
}

TEST(StaticOptionsTest, QuotaIsKeptOnRequest) {
  Node node(test::S1Ht(), "0", "{Options: {cpu-quota: keep}}");
  const ContainerKey two = *node.Create("two", kGuaranteed, 2000);
  EXPECT_FALSE(node.PlacementOf(two).cpu_quota.has_value());
}

TEST(StaticOptionsTest, NeedsACpuToShare) {
  const Status status =
      CreateError(test::S1Ht(), "0-7", "{Options: {strict-cpu-reservation: true}}");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("none is left for shared containers"));
}

TEST(StaticOptionsTest, RefusesOptionsThatExcludeEachOther) {
  const Machine machine = test::S1Ht();
  for (const std::string_view options :
       {"{Options: {distribute-cpus-across-cores: true, full-pcpus-only: true}}",
        "{Options: {distribute-cpus-across-cores: true, distribute-cpus-across-numa: true}}",
        "{Options: {distribute-cpus-across-cores: true, prefer-align-cpus-by-uncorecache: true}}",
        "{Options: {prefer-align-cpus-by-uncorecache: true, distribute-cpus-across-numa: true}}"}) {
    const Status status = CreateError(machine, "0", options);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << options;
    EXPECT_THAT(std::string(Message(status)), HasSubstr("cannot be combined with")) << options;
  }
  EXPECT_TRUE(CreateError(machine, "0",
                          "{Options: {distribute-cpus-across-cores: true, full-pcpus-only: false}}")
                  .ok());
}

TEST(StaticOptionsTest, RefusesOptionsThatItDoesNotKnow) {
  const Machine machine = test::S1Ht();
  EXPECT_THAT(std::string(Message(CreateError(machine, "0", "{Options: {full-cpus: true}}"))),
              HasSubstr("test.yaml:1"));
  EXPECT_THAT(
      std::string(Message(CreateError(test::F80(), "0", "{Options: {align-by-socket: true}}"))),
      HasSubstr("align-by-socket needs NUMA nodes that are parts of packages"));
  EXPECT_TRUE(CreateError(machine, "0", "{Options: {align-by-socket: true}}").ok());
  EXPECT_EQ(CreateError(machine, "0", "{Options: {cpu-quota: maybe}}").code(),
            StatusCode::kInvalidArgument);
}

TEST(StaticOptionsTest, AlignsToOnePackage) {
  Node node(test::M80(), "0", "{Options: {align-by-socket: true}}");
  Container& held = node.snapshot().Add("held", kGuaranteed, 28'000);
  held.placement.cpus = Cpus("6-19,46-59");
  node.Reconcile();
  const ContainerKey big = *node.Create("big", kGuaranteed, 24'000);
  EXPECT_TRUE(node.PlacementOf(big).exclusive.IsSubsetOf(node.machine().packages()[1]));
}

}  // namespace
}  // namespace resmgr
