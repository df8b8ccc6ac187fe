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
using Node = test::StaticNode;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

using enum QosClass;

Status CreateError(const Machine& machine, std::string_view reserved, std::string_view section) {
  return test::CreateError(StaticPolicyFactory(), machine, reserved, section);
}

TEST(StaticPolicyTest, GuaranteedContainersWithWholeCpusGetThemAlone) {
  Node node(test::S1Ht());
  const ContainerKey two = *node.Create("two", kGuaranteed, 2000);
  EXPECT_EQ(node.CpusOf(two), "1,5") << "a whole core";
  EXPECT_EQ(node.ExclusiveOf(two), "1,5");
  EXPECT_EQ(node.PlacementOf(two).cpu_quota, -1);
  EXPECT_EQ(node.PlacementOf(two).pool, "exclusive");
  EXPECT_THAT(node.PlacementOf(two).reason, HasSubstr("Guaranteed pod with 2 whole CPUs"));
  EXPECT_FALSE(node.PlacementOf(two).mems.has_value());
}

TEST(StaticPolicyTest, EverybodyElseShares) {
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

TEST(StaticPolicyTest, TheSharedSetShrinksAndGrowsForThoseWhoShare) {
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

TEST(StaticPolicyTest, StrictReservationKeepsSharedContainersOffReservedCpus) {
  Node node(test::S1Ht(), "0", "{Options: {strict-cpu-reservation: true}}");
  const ContainerKey shared = *node.Create("shared", kBurstable, 100);
  EXPECT_EQ(node.CpusOf(shared), "1-7");
  ASSERT_TRUE(node.Create("six", kGuaranteed, 6000).ok());
  EXPECT_FALSE(node.CpusOf(shared).empty());
  EXPECT_EQ(node.Create("last", kGuaranteed, 1000).status().code(), StatusCode::kResourceExhausted);
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
      << "the new attempt holds them alone now, the late release of the former changes nothing";
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

TEST(StaticPolicyTest, GrowingKeepsTheCpusAndAddsNearOnes) {
  Node node(test::M80(), "0");
  const ContainerKey web = *node.Create("web", kGuaranteed, 4000);
  const CpuSet before = node.PlacementOf(web).exclusive;
  const ContainerKey shared = *node.Create("shared", kBurstable, 100);
  ASSERT_TRUE(node.Resize(web, 6000).ok());
  const CpuSet after = node.PlacementOf(web).exclusive;
  EXPECT_EQ(after.size(), 6);
  EXPECT_TRUE(before.IsSubsetOf(after));
  EXPECT_EQ(test::M80().NodesOf(after), test::M80().NodesOf(before));
  EXPECT_FALSE(Cpus(node.CpusOf(shared)).Intersects(after));
}

TEST(StaticPolicyTest, ShrinkingKeepsAPart) {
  Node node(test::S1Ht());
  const ContainerKey web = *node.Create("web", kGuaranteed, 4000);
  const CpuSet before = node.PlacementOf(web).exclusive;
  const ContainerKey shared = *node.Create("shared", kBurstable, 100);
  ASSERT_TRUE(node.Resize(web, 2000).ok());
  const CpuSet after = node.PlacementOf(web).exclusive;
  EXPECT_EQ(after.size(), 2);
  EXPECT_TRUE(after.IsSubsetOf(before));
  EXPECT_EQ(node.CpusOf(shared), (Cpus("0-7") - after).ToString());
}

TEST(StaticPolicyTest, ResizingAcrossTheRuleMovesBetweenSharedAndExclusive) {
  Node node(test::S1Ht());
  const ContainerKey web = *node.Create("web", kGuaranteed, 2000);
  ASSERT_TRUE(node.Resize(web, 1500).ok());
  EXPECT_EQ(node.CpusOf(web), "0-7");
  EXPECT_EQ(node.ExclusiveOf(web), "");
  EXPECT_FALSE(node.PlacementOf(web).cpu_quota.has_value());
  ASSERT_TRUE(node.Resize(web, 3000).ok());
  EXPECT_EQ(node.PlacementOf(web).exclusive.size(), 3);
}

TEST(StaticPolicyTest, ARefusedResizeChangesNothing) {
  Node node(test::S1Ht());
  const ContainerKey web = *node.Create("web", kGuaranteed, 2000);
  ASSERT_TRUE(node.Create("other", kGuaranteed, 3000).ok());
  const std::string before = node.CpusOf(web);
  const Status refusal = node.Resize(web, 5000);
  EXPECT_EQ(refusal.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(refusal)),
              HasSubstr("needs 3 more exclusive CPUs, 2 of 8 free: CPU 0 reserved, CPUs 2,4,6 held "
                        "by ns/other/other"));
  EXPECT_EQ(node.CpusOf(web), before);
  EXPECT_TRUE(node.Resize(web, 4000).ok());
}

TEST(StaticPolicyTest, AdoptsWhatRunsWhereItRuns) {
  Node node(test::S1Ht());
  Container& kept = node.snapshot().Add("kept", kGuaranteed, 2000);
  kept.placement.cpus = Cpus("3,6");  // nothing that the policy would choose itself
  Container& shared = node.snapshot().Add("shared", kBurstable, 100);
  shared.placement.cpus = Cpus("0-2,4-5,7");
  const Plan plan = node.Reconcile();
  EXPECT_EQ(node.ExclusiveOf(kept.key), "3,6");
  EXPECT_EQ(node.CpusOf(shared.key), "0-2,4-5,7");
  EXPECT_EQ(plan.changes.size(), 2u) << "both learn their pool";
  EXPECT_TRUE(node.Reconcile().changes.empty()) << "and nothing changes any more";
}

TEST(StaticPolicyTest, PlacesAnewOnlyWhatIsNotLegal) {
  Node node(test::S1Ht());
  Container& first = node.snapshot().Add("first", kGuaranteed, 2000);
  first.placement.cpus = Cpus("2,6");
  Container& twice = node.snapshot().Add("twice", kGuaranteed, 2000);
  twice.placement.cpus = Cpus("6-7");
  Container& on_reserved = node.snapshot().Add("on-reserved", kGuaranteed, 1000);
  on_reserved.placement.cpus = Cpus("0");
  Container& everywhere = node.snapshot().Add("everywhere", kGuaranteed, 1000);
  node.Reconcile();
  EXPECT_EQ(node.ExclusiveOf(first.key), "2,6");
  EXPECT_EQ(node.ExclusiveOf(twice.key).size(), 3u);
  EXPECT_FALSE(node.PlacementOf(twice.key).exclusive.Intersects(Cpus("0,2,6")));
  EXPECT_EQ(node.PlacementOf(on_reserved.key).exclusive.size(), 1);
  EXPECT_EQ(node.PlacementOf(everywhere.key).exclusive.size(), 1);
  EXPECT_FALSE(node.PlacementOf(on_reserved.key).exclusive.Contains(0));
}

TEST(StaticPolicyTest, ARunningContainerWithoutRoomShares) {
  Node node(test::S1Ht(), "0-5");
  Container& two = node.snapshot().Add("two", kGuaranteed, 2000);
  Container& three = node.snapshot().Add("three", kGuaranteed, 3000);
  node.Reconcile();
  EXPECT_EQ(node.ExclusiveOf(two.key), "6-7");
  EXPECT_EQ(node.CpusOf(three.key), "0-5");
  EXPECT_EQ(node.PlacementOf(three.key).reason,
            "shared for want of room: needs 3 exclusive CPUs, 0 of 8 free");
  EXPECT_TRUE(node.Reconcile().changes.empty());
}

// A restart, a reconnect and the same configuration again are each a new policy that takes over.
TEST(StaticPolicyTest, RoomThatComesMovesNobodyUntilARebalance) {
  for (const std::string_view section : {"", "{Options: {strict-cpu-reservation: true}}"}) {
    Node node(test::S1Ht(), "0", section);
    const ContainerKey five = node.snapshot().Add("five", kGuaranteed, 5000).key;
    const ContainerKey three = node.snapshot().Add("three", kGuaranteed, 3000).key;
    const ContainerKey web = node.snapshot().Add("web", kBurstable, 100).key;
    node.Reconcile();
    ASSERT_TRUE(node.PlacementOf(three).exclusive.empty());
    node.Remove(five);
    const std::string shared = node.CpusOf(three);
    EXPECT_EQ(node.CpusOf(web), shared);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(node.Reconcile().empty());
      node.RestartPolicy();
      EXPECT_TRUE(node.Reconcile().empty());
      EXPECT_EQ(node.CpusOf(three), shared);
    }
    node.Rebalance();
    EXPECT_EQ(node.PlacementOf(three).exclusive.size(), 3);
    EXPECT_EQ(node.PlacementOf(three).cpus, node.PlacementOf(three).exclusive);
    EXPECT_FALSE(node.PlacementOf(web).cpus->Intersects(node.PlacementOf(three).exclusive));
    EXPECT_TRUE(node.Rebalance().empty()) << "once is enough";
    EXPECT_TRUE(node.Reconcile().empty());
  }
}

TEST(StaticPolicyTest, RoomThatComesMovesNobodyWithoutSavedStateEither) {
  for (const std::string_view section : {"", "{Options: {strict-cpu-reservation: true}}"}) {
    Node node(test::S1Ht(), "0", section);
    const ContainerKey four = node.snapshot().Add("four", kGuaranteed, 4000).key;
    const ContainerKey one = node.snapshot().Add("one", kGuaranteed, 1000).key;
    const ContainerKey three = node.snapshot().Add("three", kGuaranteed, 3000).key;
    node.Reconcile();
    ASSERT_TRUE(node.PlacementOf(three).exclusive.empty());
    node.Remove(four);
    const std::string shared = node.CpusOf(three);
    const std::string own = node.CpusOf(one);
    node.ForgetDecisions();
    node.Reconcile();
    EXPECT_EQ(node.CpusOf(three), shared);
    EXPECT_EQ(node.CpusOf(one), own);
    EXPECT_EQ(node.ExclusiveOf(one), own);
    node.Rebalance();
    EXPECT_EQ(node.PlacementOf(three).exclusive.size(), 3);
  }
}

TEST(StaticPolicyTest, WhoHasFewerCpusThanItAsksForGetsNoMoreUntilARebalance) {
  Node node(test::S1Ht(), "0");
  const ContainerKey other = *node.Create("other", kGuaranteed, 5000);
  Container& few = node.snapshot().Add("few", kGuaranteed, 4000);
  const CpuSet two = Cpus("1-7") - node.PlacementOf(other).exclusive;
  few.placement.cpus = few.placement.exclusive = two;
  node.Reconcile();
  ASSERT_EQ(node.PlacementOf(few.key).exclusive, two) << "there are no more";
  EXPECT_THAT(node.PlacementOf(few.key).reason, HasSubstr("fewer than it asks for"));
  EXPECT_TRUE(node.Resize(few.key, 4000).ok()) << "an update of something else";
  EXPECT_EQ(node.PlacementOf(few.key).exclusive, two);
  node.Remove(other);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(node.Reconcile().empty());
    node.RestartPolicy();
    EXPECT_TRUE(node.Reconcile().empty());
  }
  node.Rebalance();
  EXPECT_EQ(node.PlacementOf(few.key).exclusive.size(), 4);
  EXPECT_TRUE(two.IsSubsetOf(node.PlacementOf(few.key).exclusive));
  EXPECT_TRUE(node.Rebalance().empty());
}

// By chance alone on as many CPUs as it wants, and even so nobody's owner.
TEST(StaticPolicyTest, WhoSharesForWantOfRoomStaysASharer) {
  Node node(test::S1Ht(), "0-4");
  Container& two = node.snapshot().Add("two", kGuaranteed, 2000);
  two.placement.cpus = Cpus("6-7");
  two.placement.pool = "shared";
  two.placement.reason = "shared for want of room: needs 2 exclusive CPUs, 1 of 8 free";
  node.Reconcile();
  EXPECT_TRUE(node.PlacementOf(two.key).exclusive.empty());
}

TEST(StaticPolicyTest, AResizeDownIsNotRefusedWhereSharingWillDo) {
  Node node(test::S1Ht(), "0");
  const ContainerKey other = *node.Create("other", kGuaranteed, 5000);
  const ContainerKey found = node.snapshot().Add("found", kGuaranteed, 6000).key;
  node.Reconcile();
  ASSERT_TRUE(node.PlacementOf(found).exclusive.empty()) << "there is no room for it";
  Status status = node.Resize(found, 4000);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(node.PlacementOf(found).reason, HasSubstr("shared for want of room: needs 4"));
  EXPECT_TRUE(node.Reconcile().empty());
  EXPECT_EQ(node.Resize(found, 5000).code(), StatusCode::kResourceExhausted) << "it asks for more";
  status = node.Resize(found, 2000);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(node.PlacementOf(found).exclusive.size(), 2) << "there is room for these";
  status = node.Resize(other, 2500);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(node.PlacementOf(other).exclusive.empty());
}

TEST(StaticPolicyTest, FullCoresOnlyResizesDownToWholeCoresOrShares) {
  Node node(test::S1Ht(), "0", "{Options: {full-pcpus-only: true}}");
  const ContainerKey four = *node.Create("four", kGuaranteed, 4000);
  EXPECT_EQ(node.Resize(four, 3000).code(), StatusCode::kInvalidArgument)
      << "a new attempt of it would be refused as well";
  EXPECT_EQ(node.PlacementOf(four).exclusive.size(), 4);
  EXPECT_TRUE(node.Resize(four, 2000).ok());
  EXPECT_EQ(node.PlacementOf(four).exclusive.size(), 2);
  EXPECT_TRUE(node.Resize(four, 1500).ok());
  EXPECT_TRUE(node.PlacementOf(four).exclusive.empty());
}

TEST(StaticPolicyTest, HalvesOfCoresAreGivenUpWhereOnlyWholeOnesAreGranted) {
  Node node(test::S1Ht(), "0", "{Options: {full-pcpus-only: true}}");
  Container& halves = node.snapshot().Add("halves", kGuaranteed, 4000);
  halves.placement.cpus = halves.placement.exclusive = Cpus("1-3,5");
  node.Reconcile();
  ASSERT_EQ(node.ExclusiveOf(halves.key), "1-3,5") << "of before the option was set";
  EXPECT_TRUE(node.Resize(halves.key, 2000).ok());
  EXPECT_EQ(node.ExclusiveOf(halves.key), "1,5");
  halves.placement.exclusive = Cpus("2-3");
  halves.placement.cpus = halves.placement.exclusive;
  node.Reconcile();
  ASSERT_EQ(node.ExclusiveOf(halves.key), "2-3");
  EXPECT_TRUE(node.Resize(halves.key, 0).ok());
  EXPECT_TRUE(node.PlacementOf(halves.key).exclusive.empty());
}

TEST(StaticPolicyTest, ARefusalSaysWhoHasTheCpus) {
  Node node(test::MakeMachine({.cores = 2}), "0");
  ASSERT_TRUE(node.Create("dsp", kGuaranteed, 1000).ok());
  const Status refused = node.Create("more", kGuaranteed, 1000).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(refused),
            "needs 1 exclusive CPU, 0 of 2 free: CPU 0 reserved, CPU 1 held by ns/dsp/dsp");
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

TEST(StaticPolicyTest, FullCoresOnly) {
  Node node(test::S1Ht(), "0", "{Options: {full-pcpus-only: true}}");
  const Status odd = node.Create("odd", kGuaranteed, 3000).status();
  EXPECT_EQ(odd.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(odd)), HasSubstr("full-pcpus-only grants whole cores of 2 CPUs"));
  EXPECT_EQ(node.CpusOf(*node.Create("six", kGuaranteed, 6000)), "1-3,5-7");
  const Status none = node.Create("more", kGuaranteed, 2000).status();
  EXPECT_EQ(none.code(), StatusCode::kResourceExhausted)
      << "CPU 4 is free, but its core is partly reserved";
}

TEST(StaticPolicyTest, FullCoresOnlyOnUnevenCores) {
  Node node(test::Hybrid(), "7", "{Options: {full-pcpus-only: true}}");
  const ContainerKey three = *node.Create("three", kGuaranteed, 3000);
  const CpuSet cpus = node.PlacementOf(three).exclusive;
  EXPECT_EQ(test::Hybrid().WithSiblings(cpus), cpus);
  EXPECT_EQ(cpus.size(), 3);
}

TEST(StaticPolicyTest, SpreadsAcrossCores) {
  Node node(test::S1Ht(), "7", "{Options: {distribute-cpus-across-cores: true}}");
  EXPECT_EQ(node.CpusOf(*node.Create("three", kGuaranteed, 3000)), "0-2");
}

TEST(StaticPolicyTest, DistributesAcrossNuma) {
  Node node(test::M80(), "79", "{Options: {distribute-cpus-across-numa: true}}");
  const ContainerKey big = *node.Create("big", kGuaranteed, 30000);
  const Machine machine = test::M80();
  std::vector<int> per_node;
  for (const NumaNode& numa : machine.nodes())
    per_node.push_back(numa.cpus.CountCommon(node.PlacementOf(big).exclusive));
  EXPECT_THAT(per_node, UnorderedElementsAre(15, 15, 0, 0));
}

TEST(StaticPolicyTest, AlignsToTheUncoreCache) {
  Node node(test::U16(), "0", "{Options: {prefer-align-cpus-by-uncorecache: true}}");
  EXPECT_EQ(node.CpusOf(*node.Create("ten", kGuaranteed, 10000)), "1-2,4-11");
}

TEST(StaticPolicyTest, QuotaIsKeptOnRequest) {
  Node node(test::S1Ht(), "0", "{Options: {cpu-quota: keep}}");
  const ContainerKey two = *node.Create("two", kGuaranteed, 2000);
  EXPECT_FALSE(node.PlacementOf(two).cpu_quota.has_value());
}

TEST(StaticPolicyTest, VeryLargeContainersKeepTheQuotaThatTellsTheirSize) {
  Node node(test::MakeMachine({.packages = 8, .cores = 64, .threads = 2}));
  EXPECT_EQ(node.PlacementOf(*node.Create("255", kGuaranteed, 255'000)).cpu_quota, -1);
  const ContainerKey more = *node.Create("256", kGuaranteed, 256'000);
  EXPECT_FALSE(node.PlacementOf(more).cpu_quota.has_value())
      << "CPU shares end at 256 CPUs: after a restart it would be taken for smaller";
}

TEST(StaticPolicyTest, IsolatedCpusAreNeitherSharedNorWasted) {
  Node node(test::WithIsolated(test::S1Ht(), "2-3,6-7"));
  EXPECT_EQ(node.CpusOf(*node.Create("shared", kBurstable, 100)), "0-1,4-5");
  EXPECT_EQ(node.ExclusiveOf(*node.Create("one", kGuaranteed, 1000)), "2")
      << "a single CPU comes from the isolated ones";
  EXPECT_EQ(node.ExclusiveOf(*node.Create("core", kGuaranteed, 2000)), "3,7") << "a full core, too";
  const ContainerKey four = *node.Create("four", kGuaranteed, 4000);
  EXPECT_EQ(node.ExclusiveOf(four), "1,4-6") << "they join when the others are too few";
}

TEST(StaticPolicyTest, IsolatedCpusAsThePodWantsIt) {
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

TEST(StaticPolicyTest, RelaxedIsolationPrefersIsolatedCpusForEverybody) {
  Node node(test::WithIsolated(test::S1Ht(), "2-3,6-7"), "0", "{RelaxedIsolation: true}");
  EXPECT_TRUE(
      Cpus(node.ExclusiveOf(*node.Create("three", kGuaranteed, 3000))).IsSubsetOf(Cpus("2-3,6-7")));
}

TEST(StaticPolicyTest, NeedsACpuToShare) {
  const Status status =
      CreateError(test::S1Ht(), "0-7", "{Options: {strict-cpu-reservation: true}}");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("none is left for shared containers"));
}

TEST(StaticPolicyTest, RefusesOptionsThatExcludeEachOther) {
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

TEST(StaticPolicyTest, RefusesOptionsThatItDoesNotKnow) {
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

TEST(StaticPolicyTest, ZonesTellWhoHasWhat) {
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
      << "nothing leaks: they are free for everybody";
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

TEST(StaticPolicyTest, IsolatedCpusOnRequestOnly) {
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

TEST(StaticPolicyTest, ReadsOlderFormsOfWhatThePodWants) {
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

TEST(StaticPolicyTest, AlignsToOnePackage) {
  Node node(test::M80(), "0", "{Options: {align-by-socket: true}}");
  Container& held = node.snapshot().Add("held", kGuaranteed, 28'000);
  held.placement.cpus = Cpus("6-19,46-59");
  node.Reconcile();
  const ContainerKey big = *node.Create("big", kGuaranteed, 24'000);
  EXPECT_TRUE(node.PlacementOf(big).exclusive.IsSubsetOf(node.machine().packages()[1]));
}

TEST(StaticPolicyTest, ExplainsWhatWasConsidered) {
  Node node(test::WithIsolated(test::S1Ht(), "2,7"));
  const ContainerKey two = *node.Create("two", kGuaranteed, 2000);
  EXPECT_THAT(node.policy().Explain(two),
              testing::ElementsAre("isolated CPUs: 2 free, not in one core",
                                   "ordinary CPUs: 5 free, taken"));
}

}  // namespace
}  // namespace resmgr
