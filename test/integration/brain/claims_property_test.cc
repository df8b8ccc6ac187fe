// SPDX-License-Identifier: Apache-2.0
// Rules that always hold for claims, over random streams of containers and claims on machines of
// many kinds, for each policy that gives exclusive CPUs. RESMGR_SEED repeats a failure.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/allocator/alignment.h"
#include "pkg/claims/claim_place.h"
#include "pkg/schedview/placeable.h"
#include "policies/balloons/balloons_policy.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/claimed_node.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

constexpr int kSteps = 120;

struct ClaimsCase {
  const char* name;
  PolicyFactory (*factory)();
  const char* section;
  bool counts_requests = false;  // of shared containers, against exclusive grants
};

// Guaranteed containers apart, others sharing idle CPUs.
constexpr const char* kBalloonsOfKinds =
    "{balloonTypes: ["
    "{name: apart, matchExpressions: [{key: qosclass, operator: Equals, values: [Guaranteed]}], "
    "preferNewBalloons: true}, "
    "{name: rest, namespaces: ['*'], shareIdleCPUsInSame: package, maxCPUs: 4}]}";

std::vector<Machine> Machines() {
  std::vector<Machine> machines;
  for (const Machine& machine :
       {S1Ht(), S2Ht(), S2NoHt(), M80(), F80(), U16Smt(), U16TwoNodes(), Hybrid()})
    machines.push_back(machine);
  return machines;
}

class ClaimsStream : Draws {
 public:
  ClaimsStream(const ClaimsCase& tested, const Machine& machine, uint64_t seed)
      : Draws(seed),
        counts_requests_(tested.counts_requests),
        node_(tested.factory(), machine, CpuSet{machine.online().First()}.ToString(),
              tested.section) {}

  void Step() {
    const int64_t what = Number(1, 13);
    if (what <= 3) {
      Create();
    } else if (what <= 5) {
      RemoveOne();
    } else if (what <= 8) {
      ReserveOne();
    } else if (what <= 9) {
      GiveBackOne();
    } else if (what <= 11) {
      CarryOne();
    } else if (what <= 12) {
      Restart();
    } else {
      node_.Rebalance();
    }
    node_.Check();
  }
  // The same with CPUs that go offline and come back, containers that grow and shrink, and
  // containers of several claims.
  void StepOffline() {
    const int64_t what = Number(1, 8);
    if (what <= 4) return Step();
    if (what <= 5) return ToggleCpus();
    if (what <= 6) return CarrySeveral();
    if (keys_.empty()) return;
    const Status resized = node_.Resize(OneOf(keys_), MilliCpu{1000 * Number(1, 4)});
    EXPECT_NE(resized.code(), StatusCode::kInternal) << resized;
  }
  // All claims are given back: their CPUs serve others again.
  void End() {
    while (!uids_.empty())
      GiveBackOne();
    while (!keys_.empty())
      RemoveOne();
    EXPECT_TRUE(node_.policy().held().empty());
    for (const Zone& zone : node_.policy().Zones(node_.snapshot()))
      EXPECT_TRUE(zone.exclusive.empty()) << zone.name;
  }
  ClaimedNode& node() { return node_; }
  int granted() const { return granted_; }

 private:
  void Create() {
    const bool shares = Number(1, 2) == 1;
    const auto key = node_.Create("c", shares ? QosClass::kBurstable : QosClass::kGuaranteed,
                                  shares ? 100 * Number(1, 20) : 1000 * Number(1, 3));
    if (key.ok()) keys_.push_back(*key);
  }
  void RemoveOne() {
    if (keys_.empty()) return;
    node_.Remove(TakeFrom(keys_));
  }

  Claim NextClaim() {
    const Machine& machine = node_.machine();
    std::vector<ClaimPart> parts;
    for (int64_t part = Number(1, 5) == 1 ? 2 : 1; part > 0; --part) {
      ClaimPart& one = parts.emplace_back();
      one.device = "cpu";
      if (Number(1, 4) > 1) {
        one.node = OneOf(machine.nodes()).id;
      } else if (!machine.l3_groups().empty() && Number(1, 3) > 1) {
        one.l3_of = OneOf(machine.l3_groups()).First();
      }
      const int64_t most = std::max<int64_t>(1, machine.online().size() / 4);
      one.cpus = static_cast<int>(Number(1, most));
    }
    return ClaimOf("claim-" + std::to_string(++made_), std::move(parts), NextOptions());
  }
  ClaimOptions NextOptions() {
    ClaimOptions options{.whole_cores = Number(1, 4) == 1,
                         .share_within_pod = Number(1, 4) == 1,
                         .l3 = Number(1, 6) == 1,
                         .avoid_siblings = Number(1, 6) == 1};
    if (Number(1, 6) == 1) {
      constexpr CoreKind kKinds[] = {CoreKind::kNormal, CoreKind::kPerformance,
                                     CoreKind::kEfficient};
      options.core_type = kKinds[Number(0, 2)];
    }
    return options;
  }

  void ReserveOne() {
    const Claim claim = NextClaim();
    const std::string before = node_.State();
    const StatusOr<ClaimGrant> grant = node_.Reserve(claim);
    if (!grant.ok()) {
      CheckRefusal(claim);
      const bool hides = claim.options.avoid_siblings;
      EXPECT_TRUE(grant.status().code() == StatusCode::kResourceExhausted ||
                  grant.status().code() == StatusCode::kInvalidArgument ||
                  (hides && grant.status().code() == StatusCode::kFailedPrecondition))
          << grant.status();
      EXPECT_EQ(node_.State(), before) << grant.status();
      return;
    }
    ++granted_;
    uids_.push_back(claim.uid);
    const Machine& machine = node_.machine();
    ASSERT_EQ(grant->cpus.size(), claim.parts.size());
    for (size_t part = 0; part < claim.parts.size(); ++part) {
      EXPECT_EQ(grant->cpus[part].size(), claim.parts[part].cpus);
      const auto place = PlaceOf(claim.parts[part], claim.options, machine);
      ASSERT_TRUE(place.ok()) << place.status();
      EXPECT_TRUE(grant->cpus[part].IsSubsetOf(place->cpus)) << place->name;
      if (claim.options.WholeCores()) {
        EXPECT_EQ(machine.WithSiblings(grant->cpus[part]), grant->cpus[part]);
      }
      if (claim.options.l3) {
        EXPECT_TRUE(AlignedPlaces(machine).IsAligned(Alignment::kL3, grant->cpus[part]));
      }
      if (!claim.options.avoid_siblings) continue;
      EXPECT_EQ(machine.WithSiblings(grant->seen[part]), grant->cpus[part]);
      for (const CpuSet& core : machine.cores())
        EXPECT_LE(grant->seen[part].CountCommon(core), 1);
    }
    const auto shares = node_.Create("probe", QosClass::kBestEffort, 0);
    ASSERT_TRUE(shares.ok()) << "nothing is left to share: " << shares.status();
    node_.Remove(*shares);
  }
  // Policies that count no requests of shared containers give all but the last shared CPU.
  void CheckRefusal(const Claim& claim) {
    const ClaimPart& part = claim.parts[0];
    const ClaimOptions any{.share_within_pod = claim.options.share_within_pod};
    if (counts_requests_ || claim.parts.size() > 1 || !part.node || claim.options != any) {
      return;
    }
    CpuSet free = node_.machine().FindNode(*part.node)->cpus - node_.policy().held().Cpus();
    free.Remove(node_.machine().online().First());
    free -= offline_;
    node_.snapshot().ForEachContainer(
        [&free](const Pod&, const Container& container) { free -= container.placement.exclusive; });
    EXPECT_LE(free.size(), part.cpus);
  }
  void GiveBackOne() {
    if (uids_.empty()) return;
    const std::string uid = TakeFrom(uids_);
    node_.GiveBack(uid);
    EXPECT_EQ(node_.policy().held().Find(uid), nullptr);
  }
  void CarryOne() {
    if (uids_.empty()) return;
    const auto key = node_.CreateCarrier("carrier", {OneOf(uids_)});
    if (key.ok()) keys_.push_back(*key);
  }
  void CarrySeveral() {
    std::set<std::string> some;
    for (int64_t left = Number(1, 3); left > 0 && !uids_.empty(); --left)
      some.insert(OneOf(uids_));
    if (some.empty()) return;
    const auto key = node_.CreateCarrier("carrier", {some.begin(), some.end()});
    if (key.ok()) keys_.push_back(*key);
  }
  // The reserved CPU and some others stay online.
  void ToggleCpus() {
    const Machine& machine = node_.machine();
    if (offline_.empty() || Number(1, 2) == 1) {
      for (int64_t left = Number(1, 4); left > 0; --left)
        offline_.Add(OneOf(machine.cpus()).id);
      offline_.Remove(machine.online().First());
      if (offline_.size() > machine.online().size() / 2) offline_ = CpuSet();
    } else {
      offline_ = CpuSet();
    }
    ASSERT_EQ(node_.TakeOverOn(machine.allowed() - offline_), OkStatus());
    EXPECT_FALSE(node_.policy().held().Cpus().Intersects(offline_));
  }
  void Restart() {
    // A claim that has lost its CPUs may get others.
    if (!offline_.empty() || node_.policy().held().Lost() > 0) return;
    const std::string before = node_.State();
    node_.Restart();
    const StatusOr<Plan> plan = node_.Reconcile();
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(node_.State(), before);
  }

  const bool counts_requests_;
  ClaimedNode node_;
  std::vector<ContainerKey> keys_;
  std::vector<std::string> uids_;
  CpuSet offline_;
  int made_ = 0;
  int granted_ = 0;
};

class ClaimsPropertyTest : public testing::TestWithParam<ClaimsCase> {};

TEST_P(ClaimsPropertyTest, ClaimsHoldTheirCpusAlone) {
  const uint64_t seed = SeedOr(42);
  SCOPED_TRACE(Repeat(seed));
  int granted = 0;
  for (const Machine& machine : Machines()) {
    SCOPED_TRACE(machine.online().ToString());
    ClaimsStream stream(GetParam(), machine, seed);
    for (int step = 0; step < kSteps; ++step) {
      stream.Step();
      ASSERT_FALSE(HasFailure()) << "step " << step;
    }
    stream.End();
    granted += stream.granted();
  }
  EXPECT_GT(granted, 3 * std::ssize(Machines()));
}

TEST_P(ClaimsPropertyTest, ClaimsHoldTheirCpusAloneWhileOthersGoOffline) {
  const uint64_t seed = SeedOr(45);
  SCOPED_TRACE(Repeat(seed));
  for (const Machine& machine : Machines()) {
    SCOPED_TRACE(machine.online().ToString());
    ClaimsStream stream(GetParam(), machine, seed);
    for (int step = 0; step < kSteps; ++step) {
      stream.StepOffline();
      ASSERT_FALSE(HasFailure()) << "step " << step;
    }
    stream.End();
  }
}

TEST_P(ClaimsPropertyTest, TheSameOrderGivesTheSameResult) {
  const uint64_t seed = SeedOr(43);
  SCOPED_TRACE(Repeat(seed));
  for (const Machine& machine : {S2Ht(), M80()}) {
    ClaimsStream one(GetParam(), machine, seed);
    ClaimsStream other(GetParam(), machine, seed);
    for (int step = 0; step < kSteps; ++step) {
      one.Step();
      other.Step();
      ASSERT_EQ(one.node().State(), other.node().State()) << "step " << step;
    }
  }
}

// A claim fits wherever its NUMA node has room and others keep a CPU.
TEST_P(ClaimsPropertyTest, AnIdleNodeGrantsAllOfEachNumaNode) {
  for (const Machine& machine : {S2NoHt(), M80(), U16TwoNodes()}) {
    for (const NumaNode& numa : machine.nodes()) {
      ClaimedNode node(GetParam().factory(), machine, CpuSet{machine.online().First()}.ToString(),
                       GetParam().section);
      CpuSet free = numa.cpus;
      for (const CpuSet& core : machine.cores())
        if (core.Contains(machine.online().First())) free -= core;
      const auto grant = node.Reserve(ClaimOf("a", {{.node = numa.id, .cpus = free.size()}}));
      ASSERT_TRUE(grant.ok()) << grant.status();
      EXPECT_TRUE(grant->All().IsSubsetOf(numa.cpus));
    }
  }
}

// One that is offline, or that the configuration leaves out, keeps no claim from the others.
TEST_P(ClaimsPropertyTest, ACpuThatIsNotAvailableKeepsNoClaimFromItsPlace) {
  for (const Machine& machine : {S2NoHt(), U16TwoNodes()}) {
    const CpuSet reserved{machine.online().First()};
    std::vector<ClaimPart> places;
    for (const NumaNode& numa : machine.nodes())
      places.push_back({.node = numa.id});
    for (const CpuSet& cache : machine.l3_groups())
      places.push_back({.l3_of = cache.First()});
    for (ClaimPart& place : places) {
      const CpuSet cpus = PlaceOf(place, machine)->cpus;
      const auto elsewhere = std::ranges::find_if(
          machine.nodes(), [&cpus](const NumaNode& numa) { return !numa.cpus.Intersects(cpus); });
      for (const int missing : cpus - reserved) {
        const CpuSet available = machine.allowed() - CpuSet{missing};
        ClaimedNode node(GetParam().factory(), machine, reserved.ToString(), GetParam().section,
                         available);
        place.cpus = ((cpus & available) - reserved).size();
        const auto grant = node.Reserve(ClaimOf("a", {{.node = elsewhere->id, .cpus = 1}, place}));
        ASSERT_TRUE(grant.ok()) << "without CPU " << missing << ": " << grant.status();
        EXPECT_EQ(grant->cpus[1], (cpus & available) - reserved);
      }
    }
  }
}

// The numbers that are published can be granted, in any order of the places.
TEST_P(ClaimsPropertyTest, WhatIsClaimableIsGranted) {
  const uint64_t seed = SeedOr(44);
  SCOPED_TRACE(Repeat(seed));
  for (const Machine& machine : {S2Ht(), U16TwoNodes(), U16Smt()}) {
    std::vector<ClaimPart> nodes;
    std::vector<ClaimPart> caches;
    for (const NumaNode& numa : machine.nodes())
      nodes.push_back({.node = numa.id});
    for (const CpuSet& cache : machine.l3_groups())
      caches.push_back({.l3_of = cache.First()});
    for (const std::vector<ClaimPart>& places : {nodes, caches}) {
      ClaimsStream stream(GetParam(), machine, seed);
      for (int step = 0; step < kSteps / 4; ++step)
        stream.Step();
      ClaimedNode& node = stream.node();
      const std::vector<int> found =
          ClaimableCpus(node.policy(), node.snapshot(), places, machine, {});
      for (size_t at = places.size(); at-- > 0;) {
        if (found[at] == 0) continue;
        ClaimPart part = places[at];
        part.cpus = found[at];
        const auto grant = node.Reserve(ClaimOf("last-" + std::to_string(at), {part}));
        EXPECT_TRUE(grant.ok()) << grant.status();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, ClaimsPropertyTest,
    testing::Values(ClaimsCase{"Balloons", BalloonsPolicyFactory, "", true},
                    ClaimsCase{"BalloonsOfKinds", BalloonsPolicyFactory, kBalloonsOfKinds, true},
                    ClaimsCase{"Static", StaticPolicyFactory, ""},
                    ClaimsCase{"StaticStrict", StaticPolicyFactory,
                               "{Options: {strict-cpu-reservation: true}}"},
                    ClaimsCase{"StaticUncore", StaticPolicyFactory,
                               "{Options: {prefer-align-cpus-by-uncorecache: true}}"},
                    ClaimsCase{"StaticSpread", StaticPolicyFactory,
                               "{Options: {distribute-cpus-across-numa: true}}"},
                    ClaimsCase{"StaticPlus", StaticPlusPolicyFactory, ""},
                    ClaimsCase{"StaticPlusAligned", StaticPlusPolicyFactory, "{Alignment: numa}"},
                    ClaimsCase{"TopologyAware", TopologyAwarePolicyFactory, "", true},
                    ClaimsCase{"TopologyAwareColocated", TopologyAwarePolicyFactory,
                               "{ColocatePods: true}", true},
                    ClaimsCase{"TopologyAwareAligned", TopologyAwarePolicyFactory,
                               "{Alignment: numa}", true}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace resmgr::test
