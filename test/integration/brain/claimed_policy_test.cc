// SPDX-License-Identifier: Apache-2.0
#include "pkg/claims/claimed_policy.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/balloons/balloons_policy.h"
#include "policies/null/null_policy.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/claimed_node.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::ClaimedNode;
using test::ClaimOf;
using test::Must;
using testing::ElementsAre;
using testing::HasSubstr;

// Two NUMA nodes of eight CPUs each, 0-7 and 8-15.
Machine TwoNodes(int threads = 1) {
  return test::MakeMachine(
      {.packages = 2, .cores = 8 / threads, .threads = threads, .siblings_apart = false});
}

std::vector<PolicyFactory> GrantingPolicies() {
  return {StaticPolicyFactory(), StaticPlusPolicyFactory(), TopologyAwarePolicyFactory(),
          BalloonsPolicyFactory()};
}

class ClaimedPolicyTest : public testing::Test {
 protected:
  ClaimedNode node_{StaticPolicyFactory(), TwoNodes(), "0", ""};
};

TEST_F(ClaimedPolicyTest, AClaimGetsCpusOfItsNodeWhereverThePolicyWouldPlaceIt) {
  const auto first =
      Must(node_.Reserve(ClaimOf("a", {{.device = "cpu-numa-1", .node = 1, .cpus = 4}})));
  EXPECT_TRUE(first.All().IsSubsetOf(test::Cpus("8-15")));
  const auto second =
      Must(node_.Reserve(ClaimOf("b", {{.device = "cpu-numa-0", .node = 0, .cpus = 4}})));
  EXPECT_TRUE(second.All().IsSubsetOf(test::Cpus("1-7")));
}

// The claim was allocated while the CPU was online, by which the device of the cache is named.
TEST(ClaimedPolicyCacheTest, AClaimOfACacheWhoseLowestCpuIsOfflineIsGranted) {
  Machine::Parts parts = test::PartsOf(test::U16TwoNodes().cpus());
  parts.cpus[12].online = false;
  for (const PolicyFactory& factory : {StaticPolicyFactory(), StaticPlusPolicyFactory(),
                                       TopologyAwarePolicyFactory(), BalloonsPolicyFactory()}) {
    ClaimedNode node(factory, test::MakeMachine(parts), "0", "");
    const auto grant =
        node.Reserve(ClaimOf("a", {{.device = "cpu-l3-12", .cpus = 3, .l3_of = 12}}));
    ASSERT_TRUE(grant.ok()) << factory.name << ": " << grant.status();
    EXPECT_EQ(grant->All(), test::Cpus("13-15")) << factory.name;
  }
}

TEST_F(ClaimedPolicyTest, SharedContainersLeaveTheCpusOfAClaimAndComeBack) {
  const auto shared = Must(node_.Create("shared", QosClass::kBurstable, 500));
  EXPECT_EQ(node_.CpusOf(shared), "0-15");
  Must(node_.Reserve(ClaimOf("a", {{.node = 1, .cpus = 8}})));
  EXPECT_EQ(node_.CpusOf(shared), "0-7");
  EXPECT_FALSE(node_.GiveBack("a").empty());
  EXPECT_EQ(node_.CpusOf(shared), "0-15");
  EXPECT_TRUE(node_.policy().held().empty());
}

TEST_F(ClaimedPolicyTest, ARefusalNamesNeedRoomAndHoldersAndChangesNothing) {
  ASSERT_TRUE(node_.Reserve(ClaimOf("db", {{.node = 1, .cpus = 5}})).ok());
  const std::string before = node_.State();
  const auto refused = node_.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}}));
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  const std::string text(Message(refused.status()));
  EXPECT_THAT(text, HasSubstr("claim ns/a: needs 4 exclusive CPUs of NUMA node 1"));
  EXPECT_THAT(text, HasSubstr("of 3 that are free"));
  EXPECT_THAT(text, HasSubstr("held by ns/db/claim"));
  EXPECT_EQ(node_.State(), before);
}

TEST_F(ClaimedPolicyTest, AClaimOfSeveralPartsGetsAllOrNothing) {
  const auto grant =
      Must(node_.Reserve(ClaimOf("a", {{.node = 0, .cpus = 2}, {.node = 1, .cpus = 3}})));
  EXPECT_EQ(grant.cpus[0].size(), 2);
  EXPECT_TRUE(grant.cpus[1].IsSubsetOf(test::Cpus("8-15")));
  const std::string before = node_.State();
  EXPECT_FALSE(node_.Reserve(ClaimOf("b", {{.node = 0, .cpus = 2}, {.node = 1, .cpus = 6}})).ok());
  EXPECT_EQ(node_.State(), before);
}

TEST_F(ClaimedPolicyTest, AContainerRunsOnTheCpusOfItsClaims) {
  const auto a = node_.Reserve(ClaimOf("a", {{.node = 1, .cpus = 2}}));
  const auto b = node_.Reserve(ClaimOf("b", {{.node = 0, .cpus = 1}}));
  ASSERT_TRUE(a.ok() && b.ok());
  const auto carrier = Must(node_.CreateCarrier("c", {"a", "b"}));
  EXPECT_EQ(node_.ExclusiveOf(carrier), (a->All() | b->All()).ToString());
  EXPECT_EQ(node_.snapshot().At(carrier).placement.reason, "claim ns/a, claim ns/b");
  EXPECT_THAT(node_.policy().Explain(carrier),
              ElementsAre(HasSubstr("claim ns/a"), HasSubstr("claim ns/b")));
  node_.Remove(carrier);
  EXPECT_EQ(node_.policy().held().Find("a")->Cpus(), a->All());
}

TEST_F(ClaimedPolicyTest, AContainerThatNamesAnUnknownClaimIsRefused) {
  const auto refused = node_.CreateCarrier("c", {"typed-by-a-user"});
  EXPECT_EQ(refused.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("typed-by-a-user"));
}

TEST_F(ClaimedPolicyTest, AClaimIsForOneContainer) {
  ASSERT_TRUE(node_.Reserve(ClaimOf("a", {{.cpus = 2}})).ok());
  const auto first = Must(node_.CreateCarrier("first", {"a"}));
  const auto second = node_.CreateCarrier("second", {"a"}, first);
  EXPECT_EQ(second.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(Message(second.status())), HasSubstr("is in use by container ns/first"));
  node_.Remove(first);
  EXPECT_TRUE(node_.CreateCarrier("second", {"a"}).ok());
}

TEST_F(ClaimedPolicyTest, TheNextAttemptOfAContainerTakesTheClaimOver) {
  const auto grant = node_.Reserve(ClaimOf("a", {{.cpus = 2}}));
  const auto first = Must(node_.CreateCarrier("c", {"a"}));
  const Container former = node_.snapshot().At(first);
  const auto second = Must(node_.CreateNextAttempt(former));
  EXPECT_EQ(node_.CpusOf(second), grant->All().ToString());
}

TEST_F(ClaimedPolicyTest, ContainersOfOnePodMayShareAClaimThatSaysSo) {
  const auto grant = Must(node_.Reserve(ClaimOf("a", {{.cpus = 2}}, {.share_within_pod = true})));
  const auto first = Must(node_.CreateCarrier("first", {"a"}));
  const auto second = Must(node_.CreateCarrier("second", {"a"}, first));
  EXPECT_EQ(node_.CpusOf(first), grant.All().ToString());
  EXPECT_EQ(node_.CpusOf(second), grant.All().ToString());
  EXPECT_FALSE(node_.CreateCarrier("other", {"a"}).ok()) << "in another pod";
}

TEST_F(ClaimedPolicyTest, WhatStillCarriesAReturnedClaimIsPlacedAsOthers) {
  ASSERT_TRUE(node_.Reserve(ClaimOf("a", {{.node = 1, .cpus = 2}})).ok());
  Must(node_.CreateCarrier("c", {"a"}));
  node_.GiveBack("a");
  EXPECT_TRUE(node_.policy().held().empty());
  const auto all = node_.Create("rest", QosClass::kGuaranteed, 14000);
  EXPECT_TRUE(all.ok()) << "its request is 1 CPU, and the policy knows it: " << all.status();
}

TEST_F(ClaimedPolicyTest, BadClaimsAreRefused) {
  for (const Claim& claim :
       {ClaimOf("", {{.cpus = 1}}), ClaimOf("a", {}), ClaimOf("a", {{.cpus = 0}}),
        ClaimOf("a", {{.node = 7, .cpus = 1}}), ClaimOf("a", {{.node = 0, .cpus = 9}})}) {
    EXPECT_EQ(node_.Reserve(claim).status().code(), StatusCode::kInvalidArgument);
  }
  ASSERT_TRUE(node_.Reserve(ClaimOf("a", {{.cpus = 1}})).ok());
  EXPECT_EQ(node_.Reserve(ClaimOf("a", {{.cpus = 1}})).status().code(), StatusCode::kAlreadyExists);
}

TEST(ClaimsOfPoliciesTest, SharedContainersKeepACpu) {
  ClaimedNode node(StaticPlusPolicyFactory(), TwoNodes(), "", "");
  const auto grant = node.Reserve(ClaimOf("a", {{.node = 0, .cpus = 8}, {.node = 1, .cpus = 8}}));
  EXPECT_EQ(grant.status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(node.policy().held().empty());
  EXPECT_TRUE(node.Reserve(ClaimOf("b", {{.node = 0, .cpus = 8}, {.node = 1, .cpus = 7}})).ok());
  EXPECT_TRUE(node.Create("shared", QosClass::kBestEffort, 0).ok());
}

TEST(ClaimsOfPoliciesTest, WholeCoresAreTakenWhereTheClaimSaysSo) {
  ClaimedNode node(StaticPolicyFactory(), TwoNodes(2), "0", "");
  const auto grant =
      Must(node.Reserve(ClaimOf("a", {{.node = 0, .cpus = 4}}, {.whole_cores = true})));
  EXPECT_EQ(node.machine().WithSiblings(grant.All()), grant.All());
  EXPECT_EQ(
      node.Reserve(ClaimOf("b", {{.node = 0, .cpus = 3}}, {.whole_cores = true})).status().code(),
      StatusCode::kInvalidArgument);
}

// Otherwise the last CPU of the other kind may be gone for a later claim that was promised it.
TEST(ClaimsOfPoliciesTest, AClaimInItsNodeHasCpusOfTheKindThatThePolicyPrefers) {
  Machine::Parts parts = test::PartsOf(TwoNodes().cpus());
  for (const int cpu : {1, 8, 13})
    parts.cpus[static_cast<size_t>(cpu)].isolated = true;
  ClaimedNode isolated_first(StaticPlusPolicyFactory(), test::MakeMachine(parts), "0", "");
  const auto one = Must(isolated_first.Reserve(ClaimOf("a", {{.node = 1, .cpus = 2}})));
  EXPECT_EQ(one.All(), test::Cpus("8,13"));
  ClaimedNode isolated_last(StaticPolicyFactory(), test::MakeMachine(parts), "0", "");
  const auto other = Must(isolated_last.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}})));
  EXPECT_TRUE(other.All().IsSubsetOf(test::Cpus("9-12,14-15"))) << other.All().ToString();
}

const std::vector<PolicyFactory>& PoliciesWithClaims() {
  static const std::vector<PolicyFactory> policies = {
      StaticPolicyFactory(), StaticPlusPolicyFactory(), TopologyAwarePolicyFactory(),
      BalloonsPolicyFactory()};
  return policies;
}

TEST(ClaimParametersTest, AClaimGetsCoresOfTheTypeThatItAsksFor) {
  for (const PolicyFactory& factory : PoliciesWithClaims()) {
    ClaimedNode node(factory, test::Hybrid(), "7", "");
    const auto slow =
        node.Reserve(ClaimOf("a", {{.node = 0, .cpus = 2}}, {.core_type = CoreKind::kEfficient}));
    const auto fast =
        node.Reserve(ClaimOf("b", {{.cpus = 2}}, {.core_type = CoreKind::kPerformance}));
    ASSERT_TRUE(slow.ok()) << factory.name << ": " << slow.status();
    ASSERT_TRUE(fast.ok()) << factory.name << ": " << fast.status();
    EXPECT_TRUE(slow->All().IsSubsetOf(test::Cpus("4-6"))) << factory.name;
    EXPECT_TRUE(fast->All().IsSubsetOf(test::Cpus("0-3"))) << factory.name;
    const std::string before = node.State();
    const auto refused =
        node.Reserve(ClaimOf("c", {{.cpus = 3}}, {.core_type = CoreKind::kPerformance}));
    EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(Message(refused.status())),
                testing::AllOf(HasSubstr("claim ns/c"), HasSubstr("coreType p-core"),
                               HasSubstr(fmt::format("policy {}", factory.name))));
    EXPECT_EQ(node.State(), before);
  }
}

TEST(ClaimParametersTest, CoresThatTheMachineLacksAreRefusedForGood) {
  ClaimedNode node(StaticPolicyFactory(), TwoNodes(), "0", "");
  const auto refused =
      node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 1}}, {.core_type = CoreKind::kEfficient}));
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(refused.status())),
              HasSubstr("claim ns/a: device : needs 1 CPU (coreType e-core), and there are 0"));
}

// Each NUMA node of this machine has two caches of four CPUs.
TEST(ClaimParametersTest, AClaimLiesInOneL3CacheWhereItSaysSo) {
  const Machine machine = test::U16TwoNodes();
  const int size = machine.l3_groups().front().size();
  const auto caches = [&machine](const CpuSet& cpus) {
    return std::ranges::count_if(machine.l3_groups(),
                                 [&cpus](const CpuSet& cache) { return cache.Intersects(cpus); });
  };
  for (const PolicyFactory& factory : PoliciesWithClaims()) {
    ClaimedNode node(factory, machine, "0", "");
    // One CPU of each cache but the last is in use.
    for (size_t at = 0; at + 1 < machine.l3_groups().size(); ++at) {
      const int first = machine.l3_groups()[at].First();
      const ClaimPart part{.cpus = 1, .l3_of = first};
      ASSERT_TRUE(node.Reserve(ClaimOf("one-" + std::to_string(first), {part})).ok());
    }
    const int last = machine.FindCpu(machine.l3_groups().back().First())->numa;
    const auto whole = node.Reserve(ClaimOf("a", {{.node = last, .cpus = size}}, {.l3 = true}));
    ASSERT_TRUE(whole.ok()) << factory.name << ": " << whole.status();
    EXPECT_EQ(whole->All(), machine.l3_groups().back()) << factory.name;
    const auto part = node.Reserve(ClaimOf("b", {{.node = 0, .cpus = 2}}, {.l3 = true}));
    ASSERT_TRUE(part.ok()) << factory.name << ": " << part.status();
    EXPECT_EQ(caches(part->All()), 1) << factory.name;
    const std::string before = node.State();
    const auto refused = node.Reserve(ClaimOf("c", {{.cpus = size}}, {.l3 = true}));
    EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(Message(refused.status())),
                testing::AllOf(HasSubstr("claim ns/c"), HasSubstr("(l3)"),
                               HasSubstr(fmt::format("policy {}", factory.name))));
    EXPECT_EQ(node.State(), before);
    EXPECT_EQ(node.Reserve(ClaimOf("d", {{.cpus = size + 1}}, {.l3 = true})).status().code(),
              StatusCode::kInvalidArgument);
  }
}

TEST(ClaimParametersTest, ContainersSeeOneThreadOfEachCoreWhereThePolicyHidesTheOthers) {
  for (const PolicyFactory& factory : {TopologyAwarePolicyFactory(), BalloonsPolicyFactory()}) {
    ClaimedNode node(factory, TwoNodes(2), "0", "");
    const auto shared = Must(node.Create("shared", QosClass::kBurstable, 500));
    const auto grant =
        node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}}, {.avoid_siblings = true}));
    ASSERT_TRUE(grant.ok()) << factory.name << ": " << grant.status();
    EXPECT_EQ(grant->All().size(), 4) << factory.name;
    EXPECT_EQ(node.machine().WithSiblings(grant->All()), grant->All()) << factory.name;
    EXPECT_EQ(grant->Seen().size(), 2) << factory.name;
    EXPECT_EQ(node.machine().WithSiblings(grant->Seen()), grant->All()) << factory.name;
    EXPECT_FALSE(node.snapshot().At(shared).placement.cpus->Intersects(grant->All()));
    const auto carrier = Must(node.CreateCarrier("c", {"a"}));
    EXPECT_EQ(node.CpusOf(carrier), grant->Seen().ToString()) << factory.name;
    // No container gets the threads that are hidden.
    for (int more = 0; node.Create("more", QosClass::kGuaranteed, 1000).ok() && more < 16; ++more)
      node.Check();
    const std::string before = node.State();
    node.Restart();
    ASSERT_TRUE(node.Reconcile().ok());
    EXPECT_EQ(node.State(), before) << factory.name;
    EXPECT_EQ(node.policy().held().Find("a")->Grant(), *grant) << factory.name;
  }
}

TEST(ClaimParametersTest, APolicyThatHidesNoThreadsRefusesAClaimThatAvoidsSiblings) {
  for (const PolicyFactory& factory : {StaticPolicyFactory(), StaticPlusPolicyFactory()}) {
    ClaimedNode node(factory, TwoNodes(2), "0", "");
    const std::string before = node.State();
    const auto refused =
        node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}}, {.avoid_siblings = true}));
    EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(
        std::string(Message(refused.status())),
        HasSubstr(fmt::format("claim ns/a: parameter avoidSiblings: policy {}", factory.name)));
    EXPECT_EQ(node.State(), before);
    // Without a second thread in any core there is nothing to hide.
    ClaimedNode plain(factory, TwoNodes(), "0", "");
    const auto grant =
        Must(plain.Reserve(ClaimOf("a", {{.node = 1, .cpus = 3}}, {.avoid_siblings = true})));
    EXPECT_EQ(grant.Seen(), grant.All());
  }
}

TEST(ClaimsOfPoliciesTest, PoliciesWithoutExclusiveCpusRefuseClaims) {
  ClaimedNode null(NullPolicyFactory(), TwoNodes(), "0", "");
  ClaimedNode unpinned(BalloonsPolicyFactory(), TwoNodes(), "0", "{pinCPU: false}");
  for (ClaimedNode* const node : {&null, &unpinned}) {
    EXPECT_EQ(node->Reserve(ClaimOf("a", {{.cpus = 2}})).status().code(),
              StatusCode::kFailedPrecondition);
    EXPECT_TRUE(node->Create("c", QosClass::kGuaranteed, 2000).ok());
  }
}

TEST(ClaimsOfPoliciesTest, APolicyThatWouldTakeCpusFromAClaimIsRefused) {
  ClaimedNode node(StaticPolicyFactory(), TwoNodes(), "0", "");
  const auto grant = Must(node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}})));
  const auto carrier = node.CreateCarrier("c", {"a"});
  const std::string before = node.State();
  const Status refused =
      node.Switch(BalloonsPolicyFactory(), "{reservedResources: {cpu: 'cpuset:8-15'}}");
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("claim ns/a holds CPUs"));
  EXPECT_EQ(node.State(), before);
  for (const PolicyFactory& next : {TopologyAwarePolicyFactory(), BalloonsPolicyFactory()}) {
    const Status switched = node.Switch(next, "");
    EXPECT_TRUE(switched.ok()) << switched;
    EXPECT_EQ(node.policy().held().Find("a")->Cpus(), grant.All());
    EXPECT_EQ(node.CpusOf(*carrier), grant.All().ToString());
  }
}

TEST(ClaimsOfPoliciesTest, ClaimsOutlastTheNullPolicy) {
  ClaimedNode node(StaticPolicyFactory(), TwoNodes(), "0", "");
  const auto grant = node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}}));
  const auto carrier = node.CreateCarrier("c", {"a"});
  ASSERT_TRUE(grant.ok() && carrier.ok());
  ASSERT_TRUE(node.policy().held().Find("a") != nullptr);
  std::unique_ptr<ClaimedPolicy> null = node.MakePolicy(NullPolicyFactory(), "");
  null->Hold(node.policy().held());
  const Plan plan = Must(null->Reconcile(node.snapshot()));
  ASSERT_NE(plan.Find(*carrier), nullptr);
  EXPECT_FALSE(plan.Find(*carrier)->cpus);
  EXPECT_EQ(null->held().Find("a")->Cpus(), grant->All());
}

// The policy behind sees the container of a claim without CPUs; a plan names each container once.
TEST(ClaimsOfPoliciesTest, TheNullPolicyFreesAContainerWhoseClaimIsOfflineOnce) {
  ClaimedNode node(StaticPolicyFactory(), TwoNodes(), "0", "");
  const auto grant = node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}}));
  const auto carrier = node.CreateCarrier("c", {"a"});
  ASSERT_TRUE(grant.ok() && carrier.ok());
  std::unique_ptr<ClaimedPolicy> null = node.MakePolicy(NullPolicyFactory(), "");
  null->Hold(node.policy().held());
  null->SetUsable(node.machine().online() - grant->All());
  const Plan plan = Must(null->Reconcile(node.snapshot()));
  EXPECT_EQ(std::ranges::count(plan.changes, *carrier, &PlacementChange::key), 1);
  ASSERT_NE(plan.Find(*carrier), nullptr);
  EXPECT_FALSE(plan.Find(*carrier)->cpus);
}

// The policy behind knows nothing of a claim that has lost all CPUs.
TEST(ClaimsOfPoliciesTest, ClassesAreThoseOfTheClaimThatHasCpus) {
  ClaimedNode node(TopologyAwarePolicyFactory(), TwoNodes(), "0",
                   "{PoolClasses: {exclusive: {cpuClass: fast}}}");
  ASSERT_TRUE(node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 2}})).ok());
  ASSERT_TRUE(node.Reserve(ClaimOf("b", {{.node = 0, .cpus = 2}})).ok());
  const auto carrier = Must(node.CreateCarrier("c", {"a", "b"}));
  node.policy().SetUsable(test::Cpus("0-7"));
  ASSERT_TRUE(node.Reconcile().ok());
  ASSERT_TRUE(node.policy().held().Find("a")->Cpus().empty());
  EXPECT_THAT(node.policy().ClassesOf(carrier), ElementsAre(testing::Pair("cpu", "fast")));
}

// One type whose balloons share idle CPUs.
constexpr std::string_view kSharingBalloons =
    "{balloonTypes: [{name: batch, namespaces: ['*'], shareIdleCPUsInSame: system}]}";

TEST(ClaimsInBalloonsTest, AClaimHasABalloonOfItsOwnInsideItsNode) {
  ClaimedNode node(BalloonsPolicyFactory(), TwoNodes(), "0", "");
  const auto first = node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}}));
  const auto second = node.Reserve(ClaimOf("b", {{.node = 0, .cpus = 2}, {.node = 1, .cpus = 1}}));
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(first->All().IsSubsetOf(test::Cpus("8-15")));
  EXPECT_TRUE(second->cpus[0].IsSubsetOf(test::Cpus("1-7")));
  EXPECT_EQ(node.policy().held().Find("a")->parts[0].placement.pool, "claim[0]");
  const auto zones = node.policy().Zones(node.snapshot());
  const auto zone = std::ranges::find(zones, "claim[0]", &Zone::name);
  ASSERT_NE(zone, zones.end());
  EXPECT_EQ(zone->exclusive, first->All());
  EXPECT_TRUE(zone->shared.empty());
}

TEST(ClaimsInBalloonsTest, OtherContainersNeverJoinOrShareTheBalloonOfAClaim) {
  ClaimedNode node(BalloonsPolicyFactory(), TwoNodes(), "0", kSharingBalloons);
  const auto shared = Must(node.Create("shared", QosClass::kBurstable, 500));
  const auto grant = Must(node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 6}})));
  EXPECT_FALSE(node.snapshot().At(shared).placement.cpus->Intersects(grant.All()));
  // Far more than is left: it shares for want of room, and with no claim.
  const auto large = Must(node.Create("large", QosClass::kBurstable, 14000));
  EXPECT_FALSE(node.snapshot().At(large).placement.cpus->Intersects(grant.All()));
  node.GiveBack("a");
  EXPECT_GE(node.snapshot().At(large).placement.cpus->size(), 14) << "what it asks for";
}

TEST(ClaimsInBalloonsTest, ARefusalTellsWhatIsIdleThereAndChangesNothing) {
  ClaimedNode node(BalloonsPolicyFactory(), TwoNodes(), "0", "");
  ASSERT_TRUE(node.Reserve(ClaimOf("db", {{.node = 1, .cpus = 5}})).ok());
  const std::string before = node.State();
  const auto refused = node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}}));
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  const std::string text(Message(refused.status()));
  EXPECT_THAT(text,
              HasSubstr("claim ns/a: needs 4 CPUs that no other balloon has, and of CPUs 8-15 "
                        "only 13-15 are idle"));
  EXPECT_THAT(text, HasSubstr("held by ns/db/claim"));
  EXPECT_EQ(node.State(), before);
}

TEST(ClaimsInBalloonsTest, WholeCoresAreTakenWhereTheClaimSaysSo) {
  ClaimedNode node(BalloonsPolicyFactory(), TwoNodes(2), "0", "");
  ASSERT_TRUE(node.Reserve(ClaimOf("thread", {{.node = 1, .cpus = 1}})).ok());
  const auto grant =
      Must(node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 6}}, {.whole_cores = true})));
  EXPECT_EQ(node.machine().WithSiblings(grant.All()), grant.All());
}

// The type of claims is none of the configuration.
TEST(ClaimsInBalloonsTest, AConfiguredTypeMayHaveItsName) {
  ClaimedNode node(BalloonsPolicyFactory(), TwoNodes(), "0",
                   "{balloonTypes: [{name: claim, namespaces: ['*'], minCPUs: 2}]}");
  const auto container = node.Create("c", QosClass::kBurstable, 500);
  const auto grant = node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}}));
  ASSERT_TRUE(container.ok() && grant.ok()) << grant.status();
  EXPECT_EQ(node.snapshot().At(*container).placement.pool, "claim[0]");
  EXPECT_EQ(node.policy().held().Find("a")->parts[0].placement.pool, "dra-claim[0]");
  const std::string before = node.State();
  node.Restart();
  ASSERT_TRUE(node.Reconcile().ok());
  EXPECT_EQ(node.State(), before);
}

// Lost CPUs do not come back by others: the claim's containers were told the rest.
TEST(ClaimsInBalloonsTest, AClaimThatLostCpusDoesNotGrow) {
  ClaimedNode node(BalloonsPolicyFactory(), TwoNodes(), "0", "");
  const auto grant = Must(node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}})));
  CpuSet left = grant.All();
  left.Remove(grant.All().First());
  node.policy().SetUsable(node.machine().online() - CpuSet{grant.All().First()});
  ASSERT_TRUE(node.Reconcile().ok());
  EXPECT_EQ(node.policy().held().Find("a")->Cpus(), left);
  const auto other = Must(node.Create("c", QosClass::kGuaranteed, 2000));
  node.Remove(other);
  EXPECT_EQ(node.policy().held().Find("a")->Cpus(), left);
}

// Offline CPUs are not the claim's any more; the rest stays.
TEST(ClaimsOfPoliciesTest, AClaimKeepsItsCpusThatAreOnline) {
  ClaimedNode node(StaticPolicyFactory(), TwoNodes(), "0", "");
  const auto grant = node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}}));
  const auto carrier = node.CreateCarrier("c", {"a"});
  ASSERT_TRUE(grant.ok() && carrier.ok());
  const int gone = grant->All().First();
  CpuSet left = grant->All();
  left.Remove(gone);
  node.policy().SetUsable(node.machine().online() - CpuSet{gone});
  ASSERT_TRUE(node.Reconcile().ok());
  EXPECT_TRUE(left.IsSubsetOf(node.policy().held().Find("a")->Cpus()));
}

// The balloon's room is chosen anew, among CPUs that no claim has.
TEST(ClaimsOfPoliciesTest, AClaimKeepsItsCpusWhereABalloonKeepsRoom) {
  ClaimedNode node(
      BalloonsPolicyFactory(),
      test::MakeMachine(
          {.packages = 2, .nodes = 2, .cores = 2, .threads = 2, .siblings_apart = false}),
      "", "balloonTypes: [{name: x, cpus: 0-1, maxCPUs: 4, growWithin: package}]");
  const ClaimGrant grant = Must(node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 2}})));
  ASSERT_EQ(grant.All(), test::Cpus("4-5"));
  Must(node.CreateCarrier("c", {"a"}));
  ASSERT_TRUE(node.TakeOffline({2}).ok());
  EXPECT_EQ(node.policy().held().Find("a")->Cpus(), grant.All());
}

// A policy does not take such a claim for a container that shares.
TEST(ClaimsOfPoliciesTest, AClaimThatLostAllCpusKeepsNoneFromOthers) {
  for (const PolicyFactory& factory : GrantingPolicies()) {
    SCOPED_TRACE(factory.name);
    ClaimedNode node(factory, TwoNodes(), "0", "");
    const ClaimGrant grant = Must(node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}})));
    const ContainerKey carrier = Must(node.CreateCarrier("c", {"a"}));
    std::vector<ContainerKey> others;
    for (int i = 0; i < 8; ++i) {
      const auto other = Must(node.Create("other", QosClass::kGuaranteed, 1000));
      others.push_back(other);
    }
    ASSERT_TRUE(node.TakeOffline(grant.All()).ok());
    EXPECT_EQ(node.policy().held().Find("a")->Cpus(), CpuSet());
    const auto late = Must(node.Create("late", QosClass::kGuaranteed, 1000));
    node.Remove(others.front());
    node.Remove(late);
    EXPECT_FALSE(node.CpusOf(carrier).empty());
    node.Remove(carrier);
    node.GiveBack("a");
    EXPECT_TRUE(node.policy().held().empty());
  }
}

// The containers that share take the CPU of a claim, and its container keeps it. Then they take a
// CPU of another claim, and a container that lacks one gets the other.
TEST(ClaimsOfPoliciesTest, AClaimThatLosesItsCpusAfterAnotherDidKeepsNoneFromOthers) {
  ClaimedNode node(StaticPolicyFactory(), TwoNodes(), "0",
                   "{Options: {strict-cpu-reservation: true}}");
  (void)Must(node.Reserve(ClaimOf("first", {{.node = 1, .cpus = 2}}, {.share_within_pod = true})));
  (void)Must(node.Reserve(ClaimOf("last", {{.node = 1, .cpus = 1}})));
  const ContainerKey carrier = Must(node.CreateCarrier("a", {"first"}));
  (void)Must(node.CreateCarrier("b", {"last"}));
  const ContainerKey shared = Must(node.Create("shared", QosClass::kBurstable, 100));
  const ContainerKey lacking = Must(node.Create("lacking", QosClass::kGuaranteed, 2000));
  while (node.Create("other", QosClass::kGuaranteed, 1000).ok()) {
  }
  const CpuSet gone =
      test::Cpus(node.CpusOf(shared)) | CpuSet{test::Cpus(node.CpusOf(lacking)).First()};
  ASSERT_EQ(node.TakeOffline(gone), OkStatus());
  EXPECT_EQ(node.policy().held().Find("first")->Cpus(), CpuSet());
  EXPECT_EQ(node.CpusOf(carrier), node.CpusOf(shared));
}

// A policy may give CPUs that are back to such a claim. Where its container was before does not
// stay taken.
TEST(ClaimsOfPoliciesTest, AClaimWhoseCpusComeBackTakesNoneBesides) {
  for (const PolicyFactory& factory :
       {StaticPolicyFactory(), StaticPlusPolicyFactory(), TopologyAwarePolicyFactory()}) {
    SCOPED_TRACE(factory.name);
    ClaimedNode node(factory, TwoNodes(), "0", "");
    const ClaimGrant grant = Must(node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}})));
    ASSERT_TRUE(node.CreateCarrier("c", {"a"}).ok());
    for (int i = 0; i < 7; ++i)
      ASSERT_TRUE(node.Create("other", QosClass::kGuaranteed, 1000).ok());
    const CpuSet all = node.machine().online();
    ASSERT_TRUE(node.TakeOffline(grant.All()).ok());
    ASSERT_TRUE(node.TakeOverOn(all).ok());
    while (node.Create("more", QosClass::kGuaranteed, 1000).ok()) {
    }
    CpuSet owned = node.policy().held().Cpus();
    node.snapshot().ForEachContainer([&owned](const Pod&, const Container& container) {
      owned |= container.placement.exclusive;
    });
    // The reserved CPU, and the last shared one.
    EXPECT_LE((all - owned).size(), 2) << owned.ToString();
  }
}

// Containers that carry the claim do not take the CPUs that it could have.
TEST(ClaimsOfPoliciesTest, AClaimThatLostAllCpusGetsOthersWhereThereIsRoom) {
  for (const PolicyFactory& factory : GrantingPolicies()) {
    SCOPED_TRACE(factory.name);
    ClaimedNode node(factory, TwoNodes(), "0", "");
    const ClaimGrant grant = Must(node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}})));
    const ContainerKey carrier = Must(node.CreateCarrier("c", {"a"}));
    ASSERT_TRUE(node.TakeOffline(grant.All()).ok());
    EXPECT_EQ(node.policy().held().Find("a")->Cpus().size(), 4);
    EXPECT_EQ(node.CpusOf(carrier), node.policy().held().Find("a")->Seen().ToString());
  }
}

// A change of the policy that gives a claim more is not a loss.
TEST(ClaimsOfPoliciesTest, AClaimThatLostAllCpusGetsThemByAChangeOfThePolicy) {
  ClaimedNode node(StaticPolicyFactory(), TwoNodes(), "0", "");
  const ClaimGrant grant = Must(node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}})));
  std::vector<ContainerKey> others;
  others.reserve(9);
  for (int i = 0; i < 9; ++i)
    others.push_back(*node.Create("other", QosClass::kGuaranteed, 1000));
  ASSERT_TRUE(node.TakeOffline(grant.All()).ok());
  ASSERT_TRUE(node.policy().held().Find("a")->Cpus().empty());
  for (const ContainerKey other : others)
    node.Remove(other);
  const Status switched = node.Switch(StaticPlusPolicyFactory(), "");
  ASSERT_TRUE(switched.ok()) << switched;
  EXPECT_EQ(node.policy().held().Find("a")->Cpus().size(), 4);
}

// A claim keeps what is online of it, whether its containers saw the lost thread or not.
TEST(ClaimsOfPoliciesTest, AClaimThatAvoidsSiblingsKeepsItsCpusThatAreOnline) {
  for (const PolicyFactory& factory : {TopologyAwarePolicyFactory(), BalloonsPolicyFactory()}) {
    for (const bool seen : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, a thread that is {}", factory.name, seen ? "seen" : "hidden"));
      ClaimedNode node(factory, TwoNodes(2), "0", "");
      const ClaimGrant grant =
          Must(node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}}, {.avoid_siblings = true})));
      (void)Must(node.CreateCarrier("c", {"a"}));
      while (node.Create("other", QosClass::kGuaranteed, 2000).ok()) {
      }
      const CpuSet candidates = seen ? grant.Seen() : grant.All() - grant.Seen();
      const CpuSet gone{candidates.First()};
      ASSERT_TRUE(node.TakeOffline(gone).ok());
      EXPECT_TRUE((grant.All() - gone).IsSubsetOf(node.policy().held().Find("a")->Cpus()))
          << node.policy().held().Find("a")->Cpus().ToString();
    }
  }
}

// Others move while a claim lacks CPUs that are free.
TEST(ClaimsOfPoliciesTest, AClaimThatLostCpusLetsOthersBeRebalanced) {
  for (const PolicyFactory& factory : GrantingPolicies()) {
    SCOPED_TRACE(factory.name);
    const bool hides = factory.name == "topology-aware" || factory.name == "balloons";
    ClaimedNode node(factory, TwoNodes(hides ? 2 : 1), "0", "");
    const ClaimGrant grant =
        Must(node.Reserve(ClaimOf("a", {{.node = 1, .cpus = 4}}, {.avoid_siblings = hides})));
    const ContainerKey carrier = Must(node.CreateCarrier("c", {"a"}));
    std::vector<ContainerKey> others;
    for (auto other = node.Create("other", QosClass::kGuaranteed, 1000); other.ok();
         other = node.Create("other", QosClass::kGuaranteed, 1000))
      others.push_back(*other);
    const CpuSet gone{grant.All().First()};
    ASSERT_TRUE(node.TakeOffline(gone).ok());
    const CpuSet left = grant.All() - gone;
    EXPECT_TRUE(left.IsSubsetOf(node.policy().held().Find("a")->Cpus()));
    const CpuSet held = node.policy().held().Find("a")->Cpus();
    for (size_t i = 0; i < 3; ++i)
      node.Remove(others[i]);
    node.Rebalance();
    EXPECT_EQ(node.policy().held().Find("a")->Cpus(), held);
    EXPECT_EQ(node.CpusOf(carrier), node.policy().held().Find("a")->Seen().ToString());
  }
}

// The node offers the same CPUs to claims of all namespaces.
TEST(ClaimsOfPoliciesTest, ClaimsOfAnyNamespaceAreGranted) {
  for (const PolicyFactory& factory : GrantingPolicies()) {
    for (const std::string_view section :
         {std::string_view(), std::string_view("{ExclusiveCPUs: annotated}")}) {
      if (!section.empty() && factory.name != "static-plus") continue;
      SCOPED_TRACE(factory.name);
      ClaimedNode node(factory, TwoNodes(), "0", section);
      Claim claim = ClaimOf("a", {{.node = 1, .cpus = 4}});
      claim.namespace_name = "kube-system";
      const ClaimGrant grant = Must(node.Reserve(claim));
      EXPECT_EQ(grant.All().size(), 4);
    }
  }
}

}  // namespace
}  // namespace resmgr
