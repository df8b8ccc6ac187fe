// SPDX-License-Identifier: Apache-2.0
#include "policies/static/static_policy.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/static/testing/static_node.h"

namespace resmgr {
namespace {

using test::Cpus;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using enum QosClass;

using Node = test::StaticNode;

TEST(StaticPolicyTest, WholeCpusOfGuaranteedContainersAreExclusive) {
  Node node(test::S1Ht());
  const ContainerKey two = *node.Create("two", kGuaranteed, 2000);
  EXPECT_EQ(node.CpusOf(two), "1,5") << "a whole core";
  EXPECT_EQ(node.ExclusiveOf(two), "1,5");
  EXPECT_EQ(node.PlacementOf(two).cpu_quota, -1);
  EXPECT_EQ(node.PlacementOf(two).pool, "exclusive");
  EXPECT_THAT(node.PlacementOf(two).reason, HasSubstr("Guaranteed pod with 2 whole CPUs"));
  EXPECT_THAT(node.PlacementOf(*node.Create("one", kGuaranteed, 1000)).reason,
              HasSubstr("Guaranteed pod with 1 whole CPU: "));
  EXPECT_FALSE(node.PlacementOf(two).mems.has_value());
}

TEST(StaticPolicyTest, AllOtherContainersShare) {
  Node node(test::S1Ht());
  const ContainerKey fraction = *node.Create("fraction", kGuaranteed, 1500);
  const ContainerKey burstable = *node.Create("burstable", kBurstable, 2000);
  const ContainerKey best_effort = *node.Create("best-effort", kBestEffort, 0);
  for (const ContainerKey key : {fraction, burstable, best_effort}) {
    EXPECT_EQ(node.CpusOf(key), "0-7");
    EXPECT_EQ(node.ExclusiveOf(key), "");
    EXPECT_FALSE(node.PlacementOf(key).cpu_quota.has_value());
    EXPECT_EQ(node.PlacementOf(key).pool, "shared");
  }
  EXPECT_EQ(node.PlacementOf(fraction).reason, "CPU request of 1500m is not whole");
  EXPECT_EQ(node.PlacementOf(burstable).reason, "Burstable pod");
}

TEST(StaticPolicyTest, TheSharedSetShrinksAndGrows) {
  Node node(test::S1Ht());
  const ContainerKey shared = *node.Create("shared", kBurstable, 100);
  const ContainerKey a = *node.Create("a", kGuaranteed, 2000);
  EXPECT_EQ(node.CpusOf(shared), "0,2-4,6-7");
  const ContainerKey b = *node.Create("b", kGuaranteed, 1000);
  EXPECT_EQ(node.CpusOf(shared), "0,2-3,6-7");
  EXPECT_EQ(node.ExclusiveOf(b), "4") << "the sibling of the reserved CPU: the core that has least";
  node.Remove(a);
  EXPECT_EQ(node.CpusOf(shared), "0-3,5-7");
  node.Remove(b);
  EXPECT_EQ(node.CpusOf(shared), "0-7");
}

TEST(StaticPolicyTest, ReservedCpusAreSharedButNeverGranted) {
  Node node(test::S1Ht(), "0,4");
  const ContainerKey six = *node.Create("six", kGuaranteed, 6000);
  EXPECT_EQ(node.CpusOf(six), "1-3,5-7");
  const ContainerKey shared = *node.Create("shared", kBurstable, 100);
  EXPECT_EQ(node.CpusOf(shared), "0,4");
  const Status refusal = node.Create("more", kGuaranteed, 1000).status();
  EXPECT_EQ(refusal.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(
      Message(refusal),
      "needs 1 exclusive CPU, 0 of 8 free: CPUs 0,4 reserved, CPUs 1-3,5-7 held by ns/six/six");
}

TEST(StaticPolicyTest, ARefusalNamesNeedAndShortageAndChangesNothing) {
  Node node(test::S1Ht());
  const ContainerKey five = *node.Create("five", kGuaranteed, 5000);
  const std::string before = node.CpusOf(five);
  const Status refusal = node.Create("web", kGuaranteed, 3000).status();
  EXPECT_EQ(refusal.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(refusal)),
              HasSubstr("needs 3 exclusive CPUs, 2 of 8 free: CPU 0 reserved, CPUs 1-2,4-6 held by "
                        "ns/five/five"));
  EXPECT_EQ(node.CpusOf(five), before);
  EXPECT_TRUE(node.Create("fits", kGuaranteed, 2000).ok());
}

TEST(StaticPolicyTest, WithoutAReservationTheLastSharedCpuStays) {
  Node node(test::S1Ht(), "");
  ASSERT_TRUE(node.Create("seven", kGuaranteed, 7000).ok());
  const Status refusal = node.Create("last", kGuaranteed, 1000).status();
  EXPECT_EQ(refusal.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(refusal)), HasSubstr("taking the last one from shared"));
}

TEST(StaticPolicyTest, AllocateThenReleaseRestores) {
  Node node(test::M80());
  const ContainerKey shared = *node.Create("shared", kBurstable, 100);
  ASSERT_TRUE(node.Create("a", kGuaranteed, 6000).ok());
  const std::string before = node.CpusOf(shared);
  const ContainerKey b = *node.Create("b", kGuaranteed, 20000);
  const std::string granted = node.CpusOf(b);
  EXPECT_NE(node.CpusOf(shared), before);
  node.Remove(b);
  EXPECT_EQ(node.CpusOf(shared), before);
  EXPECT_EQ(node.CpusOf(*node.Create("b", kGuaranteed, 20000)), granted);
}

TEST(StaticPolicyTest, ANewAttemptGetsTheCpusOfTheFormerOne) {
  Node node(test::M80());
  ASSERT_TRUE(node.Create("first", kGuaranteed, 4000).ok());
  const ContainerKey web = *node.Create("web", kGuaranteed, 4000);
  const std::string cpus = node.CpusOf(web);
  const Container former = node.snapshot().At(web);
  node.snapshot().Remove(web);
  const ContainerKey again = *node.Create("web", kGuaranteed, 4000, &former);
  EXPECT_EQ(node.CpusOf(again), cpus);
  node.Remove(web);
  EXPECT_EQ(node.CpusOf(*node.Create("shared", kBurstable, 1)), "0,5-40,45-79")
      << "the new attempt holds them now, the late release of the former changes nothing";
}

TEST(StaticPolicyTest, AFormerAttemptCountsAsFree) {
  Node node(test::S1Ht());
  const ContainerKey all = *node.Create("all", kGuaranteed, 7000);
  const Container former = node.snapshot().At(all);
  node.snapshot().Remove(all);
  const ContainerKey smaller = *node.Create("all", kGuaranteed, 4000, &former);
  EXPECT_EQ(node.PlacementOf(smaller).exclusive.size(), 4);
  EXPECT_TRUE(node.Create("rest", kGuaranteed, 3000).ok());
}

TEST(StaticPolicyTest, ReleasedCpusOfAnExitedAttemptAreTakenAgainWhileFree) {
  Node node(test::S1Ht());
  const ContainerKey web = *node.Create("web", kGuaranteed, 2000);
  const ContainerKey other = *node.Create("other", kGuaranteed, 2000);
  const Container former = node.snapshot().At(other);
  node.Remove(web);
  node.Remove(other);
  EXPECT_EQ(node.CpusOf(*node.Create("other", kGuaranteed, 2000, &former)),
            former.placement.cpus->ToString());
}

TEST(StaticPolicyTest, ARefusalNamesTheHoldersOfTheCpus) {
  Node node(test::MakeMachine({.cores = 2}), "0");
  ASSERT_TRUE(node.Create("dsp", kGuaranteed, 1000).ok());
  const Status refused = node.Create("more", kGuaranteed, 1000).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(refused),
            "needs 1 exclusive CPU, 0 of 2 free: CPU 0 reserved, CPU 1 held by ns/dsp/dsp");
}

// The container never fits, whatever ends, so it must not wait for room.
TEST(StaticPolicyTest, WhatNeverFitsIsNotRefusedForWantOfRoom) {
  Node node(test::S1Ht());
  ASSERT_TRUE(node.Create("dsp", kGuaranteed, 1000).ok());
  const Status large = node.Create("large", kGuaranteed, 8000).status();
  EXPECT_EQ(large.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(
      Message(large),
      "needs 8 exclusive CPUs, 6 of 8 free: CPU 0 reserved, CPU 4 held by ns/dsp/dsp; this node "
      "can grant no more than 7");
  EXPECT_EQ(node.Create("most", kGuaranteed, 7000).status().code(), StatusCode::kResourceExhausted);
  Pod pod;
  pod.id = PodSandboxId("isolated");
  pod.qos = kGuaranteed;
  pod.annotations.Set("require-isolated-cpus.resource-policy.nri.io", "true");
  const Status isolated = node.CreateIn(pod, "c", 1000).status();
  EXPECT_EQ(isolated.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(
      Message(isolated),
      "needs 1 isolated CPU, 0 of 0 free: CPU 0 reserved, CPU 4 held by ns/dsp/dsp; this node "
      "can grant no more than 0");
  Node unreserved(test::S1Ht(), "");
  const Status all = unreserved.Create("all", kGuaranteed, 8000).status();
  EXPECT_EQ(all.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(all)), testing::EndsWith("; this node can grant no more than 7"));
}

TEST(StaticPolicyTest, TellsWhichOptionWouldLetARefusedContainerIn) {
  const auto ways = [](std::string_view section, int64_t milli_cpu, bool isolated = false) {
    Node node(test::S1Ht(), "0", section);
    const Container& app = node.snapshot().Add("app", kGuaranteed, milli_cpu);
    Pod& pod = node.snapshot().PodOf(app.key);
    if (isolated) pod.annotations.Set("require-isolated-cpus.resource-policy.nri.io", "true");
    return node.policy().WaysIn(node.snapshot(), pod, app);
  };
  EXPECT_THAT(ways("{Options: {full-pcpus-only: \"true\"}}", 3000),
              testing::ElementsAre("full-pcpus-only: \"false\""));
  EXPECT_THAT(ways("", 2000, true),
              testing::ElementsAre(
                  "the annotation require-isolated-cpus.resource-policy.nri.io: \"false\""));
  EXPECT_THAT(ways("", 8000), testing::IsEmpty()) << "only a smaller request helps";
}

TEST(StaticPolicyTest, TellsWhichOptionWouldLetARefusedResizeIn) {
  Node node(test::S2NoHt(), "0", "{Alignment: numa}");
  const ContainerKey app = *node.Create("app", kGuaranteed, 4000);
  ASSERT_FALSE(node.Resize(app, 6000).ok());
  Container& asks = node.snapshot().At(app);
  asks.requirements.cpu_request = MilliCpu{6000};
  EXPECT_THAT(node.policy().WaysIn(node.snapshot(), node.snapshot().PodOf(app), asks),
              testing::ElementsAre("policy.static.Alignment: prefer"));
  EXPECT_EQ(node.PlacementOf(app).exclusive.size(), 4);
}

TEST(StaticPolicyTest, TheReasonHasTheAlignmentThatAnAnnotationChose) {
  Node node(test::U16TwoNodes());
  const auto reason = [&node](const std::string& name, std::string_view value) {
    const ContainerKey key = node.snapshot().Add(name, kGuaranteed, 2000).key;
    if (!value.empty())
      node.snapshot().PodOf(key).annotations.Set("alignment.resource-policy.nri.io", value);
    EXPECT_TRUE(node.Place(key).ok());
    return node.PlacementOf(key).reason;
  };
  EXPECT_THAT(reason("l3", "L3"), HasSubstr(" (alignment l3 by its annotation): "));
  EXPECT_THAT(reason("none", ""), testing::Not(HasSubstr("alignment")));
  EXPECT_THAT(reason("wrong", "l3cache"),
              HasSubstr("unknown value \"l3cache\": use prefer, numa, l3 or package"));
}

TEST(StaticPolicyTest, TellsWhichAlignmentKeepsARefusedContainerOut) {
  const auto ways = [](std::string_view section, const StringMap& annotations) {
    Node node(test::U16TwoNodes(), "0", section);
    const Container& app = node.snapshot().Add("app", kGuaranteed, 10'000);
    Pod& pod = node.snapshot().PodOf(app.key);
    for (const auto& [key, value] : annotations)
      pod.annotations.Set(key, value);
    return node.policy().WaysIn(node.snapshot(), pod, app);
  };
  const std::string option = "policy.static.Alignment: prefer";
  const std::string key = "alignment.resource-policy.nri.io/container.app";
  EXPECT_THAT(ways("{Alignment: numa}", {}), testing::ElementsAre(option));
  EXPECT_THAT(ways("", {{key, "l3"}}),
              testing::ElementsAre("the annotation " + key + ": prefer (now l3)"));
  EXPECT_THAT(ways("{Alignment: numa}", {{key, "prefer"}}), testing::IsEmpty());
}

TEST(StaticPolicyTest, ARefusalNamesAFewOfManyHolders) {
  Node node(test::M80(), "0,40");
  for (int i = 0; i < 70; ++i)
    ASSERT_TRUE(node.Create(fmt::format("small-{}", i), kGuaranteed, 1000).ok());
  ASSERT_TRUE(node.Create("large", kGuaranteed, 6000).ok());
  const Status refused = node.Create("more", kGuaranteed, 3000).status();
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("needs 3 exclusive CPUs, 2 of 80 free: "
                                                       "CPUs 0,40 reserved, CPUs "));
  EXPECT_THAT(std::string(Message(refused)), HasSubstr(" held by ns/large/large, CPU "));
  EXPECT_THAT(std::string(Message(refused)), HasSubstr(" and 68 more"));
  EXPECT_LT(Message(refused).size(), 400U);
}

TEST(StaticPolicyTest, VeryLargeContainersKeepTheQuotaThatTellsTheirSize) {
  Node node(test::MakeMachine({.packages = 8, .cores = 64, .threads = 2}));
  EXPECT_EQ(node.PlacementOf(*node.Create("255", kGuaranteed, 255'000)).cpu_quota, -1);
  const ContainerKey more = *node.Create("256", kGuaranteed, 256'000);
  EXPECT_FALSE(node.PlacementOf(more).cpu_quota.has_value())
      << "CPU shares end at 256 CPUs: after a restart it would be taken for smaller";
}

TEST(StaticPolicyTest, ZonesShowWhatIsGranted) {
  Node node(test::S1Ht());
  ASSERT_TRUE(node.Create("two", kGuaranteed, 2000).ok());
  ASSERT_TRUE(node.Create("shared", kBurstable, 300).ok());
  ASSERT_TRUE(node.Create("more", kBurstable, 200).ok());
  std::vector<std::string> zones;
  for (const Zone& zone : node.policy().Zones(node.snapshot())) {
    zones.push_back(fmt::format("{} {} {} {}m", zone.name, zone.cpus.ToString(), zone.containers,
                                zone.shared_request.value));
  }
  EXPECT_THAT(zones, UnorderedElementsAre("shared 0,2-4,6-7 2 500m", "exclusive 1,5 1 0m",
                                          "reserved 0 0 0m"));
}

TEST(StaticPolicyTest, CpusOfEndedInitContainersGoToTheirPod) {
  Node node(test::M80());
  ASSERT_TRUE(node.Create("other", kGuaranteed, 2000).ok());
  const ContainerKey init = *node.Create("init", kGuaranteed, 6000);
  const CpuSet had = node.PlacementOf(init).exclusive;
  const Pod pod = node.snapshot().PodOf(init);
  node.Remove(init);
  EXPECT_EQ(node.CpusOf(*node.Create("shared", kBurstable, 1)), "0,2-40,42-79")
      << "nothing leaks: they are free for all containers";
  node.Remove(*node.Create("stranger", kGuaranteed, 1000));
  const ContainerKey a = *node.CreateIn(pod, "a", 2000);
  const ContainerKey b = *node.CreateIn(pod, "b", 4000);
  EXPECT_EQ(node.PlacementOf(a).exclusive | node.PlacementOf(b).exclusive, had);
}

TEST(StaticPolicyTest, ALaterContainerMayNeedMoreThanTheInitContainerLeft) {
  Node node(test::M80());
  const ContainerKey init = *node.Create("init", kGuaranteed, 2000);
  const CpuSet had = node.PlacementOf(init).exclusive;
  const Pod pod = node.snapshot().PodOf(init);
  node.Remove(init);
  ASSERT_TRUE(node.Create("other", kGuaranteed, 20'000).ok());
  const ContainerKey main = *node.CreateIn(pod, "main", 4000);
  EXPECT_TRUE(had.IsSubsetOf(node.PlacementOf(main).exclusive));
  EXPECT_EQ(node.machine().NodesOf(node.PlacementOf(main).exclusive).size(), 1);
}

// The other CPU of the init container's core is reserved.
TEST(StaticPolicyTest, AnInitContainerDoesNotSplitTheCoresOfTheMainOne) {
  Node node(test::MakeMachine({.cores = 8, .threads = 2, .siblings_apart = false}));
  const ContainerKey init = *node.Create("init", kGuaranteed, 1000);
  ASSERT_EQ(node.ExclusiveOf(init), "1");
  const Pod pod = node.snapshot().PodOf(init);
  node.Remove(init);
  EXPECT_EQ(node.ExclusiveOf(*node.CreateIn(pod, "main", 2000)), "2-3") << "one core";
  EXPECT_EQ(node.ExclusiveOf(*node.CreateIn(pod, "side", 1000)), "1") << "what it left";
}

TEST(StaticPolicyTest, RestartableInitContainersKeepTheirs) {
  Node node(test::S1Ht());
  const ContainerKey sidecar = *node.Create("sidecar", kGuaranteed, 2000);
  const std::string before = node.CpusOf(sidecar);
  const ContainerKey init = *node.CreateIn(sidecar, "init", 3000);
  const ContainerKey main_refused = *node.CreateIn(sidecar, "main", 1000);
  EXPECT_FALSE(node.PlacementOf(init).exclusive.Intersects(node.PlacementOf(sidecar).exclusive));
  node.Remove(init);
  const ContainerKey main = *node.CreateIn(sidecar, "more", 3000);
  EXPECT_FALSE(node.PlacementOf(main).exclusive.Intersects(node.PlacementOf(sidecar).exclusive));
  EXPECT_FALSE(
      node.PlacementOf(main).exclusive.Intersects(node.PlacementOf(main_refused).exclusive));
  EXPECT_EQ(node.CpusOf(sidecar), before);
}

TEST(StaticPolicyTest, ExplainsWhatWasConsidered) {
  Node node(test::WithIsolated(test::S1Ht(), "2,7"));
  const ContainerKey two = *node.Create("two", kGuaranteed, 2000);
  EXPECT_THAT(node.policy().Explain(two),
              testing::ElementsAre("isolated CPUs: 2 free, not in one core",
                                   "ordinary CPUs: 5 free, taken"));
  const std::vector<std::string> before = node.policy().Explain(two);
  EXPECT_TRUE(node.Reconcile().empty()) << "as after each list of what the runtime holds";
  EXPECT_EQ(node.policy().Explain(two), before);
}

// The options of the static policy.

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

// Cores are {0,4} {1,5} {2,6} {3,7}.
TEST(StaticOptionsTest, FullPcpusOnlyTakesCoresByTheirOnlineThreads) {
  Node node(test::S1Ht(), "0", "{Options: {full-pcpus-only: true}}");
  node.SetOffline(test::Cpus("4-7"));
  EXPECT_EQ(node.ExclusiveOf(*node.Create("smt-is-off", kGuaranteed, 1000)), "1");
  EXPECT_EQ(node.ExclusiveOf(*node.Create("two", kGuaranteed, 2000)), "2-3");
  Node partly(test::S1Ht(), "0,4", "{Options: {full-pcpus-only: true}}");
  partly.SetOffline({5});
  EXPECT_EQ(partly.ExclusiveOf(*partly.Create("three", kGuaranteed, 3000)), "1-2,6");
  EXPECT_FALSE(partly.Create("odd", kGuaranteed, 1000).ok()) << "a core of two is left";
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

// The containers that get CPUs that the kernel isolates.

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

// The one that grows keeps its ordinary CPUs, and takes an isolated one in place of the last shared
// one.
TEST(StaticIsolatedTest, AContainerOnOrdinaryCpusGrowsOntoIsolatedOnes) {
  const Machine machine = test::MakeMachine({.packages = 1, .cores = 8, .threads = 1});
  Node node(test::WithIsolated(machine, "6-7"), "0", "{Options: {strict-cpu-reservation: true}}");
  const ContainerKey grows = *node.Create("grows", kGuaranteed, 2000);
  ASSERT_TRUE(node.Create("other", kGuaranteed, 2000).ok());
  ASSERT_EQ(node.ExclusiveOf(grows), "1-2");
  const Status grown = node.Resize(grows, 3000);
  ASSERT_TRUE(grown.ok()) << grown;
  EXPECT_EQ(node.ExclusiveOf(grows), "1-2,6");
}

// On one NUMA node, so all CPUs are near.
TEST(StaticIsolatedTest, AContainerGrowsByCpusOfItsKind) {
  const Machine machine = test::WithIsolated(
      test::MakeMachine({.packages = 1, .cores = 12, .threads = 1}), "1,3,5,7,9");
  const auto grown = [&machine](const StringMap& annotations, int64_t to) {
    Node node(machine);
    const ContainerKey key = node.snapshot().Add("c", kGuaranteed, 2000).key;
    node.snapshot().PodOf(key).annotations = annotations;
    EXPECT_TRUE(node.Place(key).ok());
    const Status status = node.Resize(key, to);
    return status.ok() ? node.ExclusiveOf(key) : std::string(Message(status));
  };
  constexpr const char* kPrefer = "prefer-isolated-cpus.resource-policy.nri.io";
  constexpr const char* kRequire = "require-isolated-cpus.resource-policy.nri.io";
  EXPECT_EQ(grown({}, 5000), "2,4,6,8,10");
  EXPECT_EQ(grown({{kPrefer, "false"}}, 5000), "2,4,6,8,10");
  EXPECT_THAT(grown({{kPrefer, "false"}}, 7000), HasSubstr("needs 5 more exclusive CPUs, 4 of 12"));
  EXPECT_EQ(grown({{kPrefer, "true"}}, 4000), "1,3,5,7");
  EXPECT_EQ(grown({{kPrefer, "true"}}, 6000), "1-4,6,8") << "too few isolated ones, ordinary ones";
  EXPECT_EQ(grown({{kRequire, "true"}}, 4000), "1,3,5,7");
  EXPECT_THAT(grown({{kRequire, "true"}}, 6000), HasSubstr("needs 4 more exclusive CPUs, 3 of"));
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
