// SPDX-License-Identifier: Apache-2.0
// The promises of the static policies themselves, over random containers on all machines.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/node_machines.h"
#include "test/integration/brain/policy_node.h"
#include "test/support/sanitizer.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

constexpr int kPolicySteps = 60;

using Placements = std::map<ContainerKey, std::string>;

// One life of a policy on one machine.
class Life : Draws {
 public:
  Life(const PolicyFactory& factory, const Machine& machine, std::string_view section,
       uint64_t seed)
      : Draws(seed),
        reserved_(CpuSet{(machine.online() - machine.isolated()).First()}),
        node_(factory, machine, reserved_.ToString(), section) {}

  void Step() {
    const int64_t what = Number(1, 10);
    if (what <= 2 && !keys_.empty()) {
      node_.Remove(TakeFrom(keys_));
    } else if (what <= 4 && !keys_.empty()) {
      const ContainerKey key = OneOf(keys_);
      const Placements before = All();
      const CpuSet held = node_.PlacementOf(key).exclusive;
      if (!node_.Resize(key, Request()).ok()) {
        EXPECT_EQ(All(), before) << "a refusal changes nothing";
      }
      const CpuSet& now = node_.PlacementOf(key).exclusive;
      if (now.size() >= held.size()) {
        EXPECT_TRUE(held.IsSubsetOf(now)) << held.ToString() << " became " << now.ToString();
      }
    } else {
      const StatusOr<ContainerKey> key = node_.Create("c", Qos(), Request());
      if (key.ok()) keys_.push_back(*key);
    }
  }

  void CheckSharedIsNeverEmpty() {
    for (const ContainerKey key : keys_) {
      const Placement& placement = node_.PlacementOf(key);
      ASSERT_TRUE(placement.cpus && !placement.cpus->empty());
      EXPECT_FALSE(placement.exclusive.Intersects(reserved_));
    }
  }

  void CheckAllocateAndReleaseRestore() {
    const Placements before = All();
    const int64_t request = Request();
    const StatusOr<ContainerKey> key = node_.Create("guest", Qos(), request);
    if (!key.ok()) {
      EXPECT_EQ(All(), before);
      return;
    }
    node_.Remove(*key);
    EXPECT_EQ(All(), before);
  }

  void CheckReconcileChangesNothing() {
    const Placements before = All();
    node_.RestartPolicy();
    EXPECT_TRUE(node_.Reconcile().changes.empty());
    EXPECT_EQ(All(), before);
  }

  void CheckNothingMovesWhenAllIsForgotten() {
    std::map<ContainerKey, std::string> before;
    for (const ContainerKey key : keys_)
      before[key] = node_.CpusOf(key);
    node_.ForgetDecisions();
    node_.Reconcile();
    for (const ContainerKey key : keys_)
      EXPECT_EQ(node_.CpusOf(key), before[key]);
  }

 private:
  QosClass Qos() { return Number(1, 3) == 1 ? QosClass::kBurstable : QosClass::kGuaranteed; }
  int64_t Request() {
    const int64_t whole = 1000 * Number(0, std::max(1, node_.machine().online().size() / 4));
    return Number(1, 2) == 1 ? whole : whole + Number(1, 999);
  }
  Placements All() {
    Placements all;
    for (const ContainerKey key : keys_)
      all[key] =
          node_.CpusOf(key) + " " + node_.ExclusiveOf(key) + " " + node_.PlacementOf(key).pool;
    return all;
  }

  const CpuSet reserved_;
  PolicyNode node_;
  std::vector<ContainerKey> keys_;
};

struct SectionCase {
  const char* name;
  PolicyFactory (*factory)();
  const char* section;
};

constexpr auto kSectionCaseName = [](const testing::TestParamInfo<SectionCase>& tested) {
  return std::string(tested.param.name);
};

class PolicyPropertyTest : public testing::TestWithParam<SectionCase> {};

TEST_P(PolicyPropertyTest, KeepsItsPromises) {
  const uint64_t seed = SeedOr(1);
  SCOPED_TRACE(Repeat(seed));
  for (const auto& [name, machine] : AllMachines()) {
    SCOPED_TRACE(name);
    Life life(GetParam().factory(), machine, GetParam().section, seed);
    for (int step = 0; step < kPolicySteps; ++step) {
      life.Step();
      life.CheckSharedIsNeverEmpty();
      life.CheckAllocateAndReleaseRestore();
      if (step % 10 == 9) life.CheckReconcileChangesNothing();
      if (step % 10 == 4) life.CheckNothingMovesWhenAllIsForgotten();
      ASSERT_FALSE(HasFailure()) << "step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, PolicyPropertyTest,
    testing::Values(SectionCase{"Static", StaticPolicyFactory, ""},
                    SectionCase{"StaticStrict", StaticPolicyFactory,
                                "{Options: {strict-cpu-reservation: true}}"},
                    SectionCase{"StaticFullCores", StaticPolicyFactory,
                                "{Options: {full-pcpus-only: true}}"},
                    SectionCase{"StaticAcrossNuma", StaticPolicyFactory,
                                "{Options: {distribute-cpus-across-numa: true}}"},
                    SectionCase{"StaticUncore", StaticPolicyFactory,
                                "{Options: {prefer-align-cpus-by-uncorecache: true}}"},
                    SectionCase{"StaticPlus", StaticPlusPolicyFactory, ""},
                    SectionCase{"StaticPlusFullCores", StaticPlusPolicyFactory,
                                "{Options: {full-pcpus-only: true}}"},
                    SectionCase{"StaticPlusAcrossCores", StaticPlusPolicyFactory,
                                "{Options: {distribute-cpus-across-cores: true}}"},
                    SectionCase{"StaticPlusGuaranteedOnly", StaticPlusPolicyFactory,
                                "{PreferIsolatedCPUs: false, ExclusiveCPUs: guaranteed}"}),
    kSectionCaseName);

// Numbers of cores, L3 caches, NUMA nodes and packages that a set of CPUs touches.
std::array<int, 4> Touched(const Machine& machine, const CpuSet& cpus) {
  const auto count = [&cpus](const std::vector<CpuSet>& groups) {
    return static_cast<int>(std::ranges::count_if(
        groups, [&cpus](const CpuSet& group) { return group.Intersects(cpus); }));
  };
  return {count(machine.cores()), count(machine.l3_groups()), machine.NodesOf(cpus).size(),
          count(machine.packages())};
}

// Pods with init containers on a node that other pods use in part.
class PodsWithInitContainers : Draws {
 public:
  PodsWithInitContainers(const PolicyFactory& factory, const Machine& machine,
                         std::string_view section, uint64_t seed)
      : Draws(seed),
        node_(factory, machine, CpuSet{(machine.online() - machine.isolated()).First()}.ToString(),
              section) {}

  void Run(int pods) {
    for (int pod = 0; pod < pods && !testing::Test::HasFailure(); ++pod) {
      if (!others_.empty() && Number(1, 3) == 1) node_.Remove(TakeFrom(others_));
      RunPod(static_cast<int>(Number(1, 2)), static_cast<int>(Number(1, 2)));
    }
  }
  int placed() const { return placed_; }

 private:
  int64_t Request() {
    const int most = std::max(1, node_.machine().online().size() / 8);
    return 1000 * Number(1, std::min(most, Number(1, 2) == 1 ? 3 : most));
  }
  void RunPod(int inits, int mains) {
    const StatusOr<ContainerKey> first = node_.Create("init", QosClass::kGuaranteed, Request());
    if (!first.ok()) {
      if (!others_.empty()) node_.Remove(TakeFrom(others_));
      return;
    }
    const Pod pod = node_.snapshot().PodOf(*first);
    node_.Remove(*first);
    for (int i = 1; i < inits; ++i) {
      const std::optional<ContainerKey> init = Create(pod);
      if (init) node_.Remove(*init);
    }
    for (int i = 0; i < mains; ++i) {
      const std::optional<ContainerKey> main = Create(pod);
      if (main) others_.push_back(*main);
    }
  }

  // The CPUs that a container of a pod without a past would get of the same CPUs.
  StatusOr<CpuSet> Fresh(int64_t request) {
    const std::unique_ptr<Policy> policy = node_.policy().Clone();
    const Container& stranger = node_.snapshot().Add("stranger", QosClass::kGuaranteed, request);
    const ContainerKey key = stranger.key;
    const StatusOr<Plan> plan =
        policy->Allocate(node_.snapshot(), node_.snapshot().PodOf(key), stranger, nullptr);
    node_.snapshot().Remove(key);
    if (!plan.ok()) return plan.status();
    return plan->Find(key)->exclusive;
  }

  std::optional<ContainerKey> Create(const Pod& pod) {
    const int64_t request = Request();
    const StatusOr<CpuSet> fresh = Fresh(request);
    const StatusOr<ContainerKey> key = node_.CreateIn(pod, "c", request);
    EXPECT_EQ(key.ok(), fresh.ok());
    if (!key.ok() || !fresh.ok()) return std::nullopt;
    ++placed_;
    const CpuSet& cpus = node_.PlacementOf(*key).exclusive;
    const auto touched = Touched(node_.machine(), cpus);
    const auto needed = Touched(node_.machine(), *fresh);
    for (size_t level = 0; level < touched.size(); ++level) {
      EXPECT_LE(touched[level], needed[level])
          << cpus.ToString() << " and not " << fresh->ToString() << " on level " << level << ": "
          << node_.PlacementOf(*key).reason;
    }
    return *key;
  }

  PolicyNode node_;
  std::vector<ContainerKey> others_;
  int placed_ = 0;
};

class InitContainersTest : public testing::TestWithParam<SectionCase> {};

TEST_P(InitContainersTest, SplitNoContainerThatComesAfterThem) {
  const uint64_t seed = SeedOr(1);
  SCOPED_TRACE(Repeat(seed));
  int placed = 0;
  for (const auto& [name, machine] : AllMachines()) {
    SCOPED_TRACE(name);
    const bool by_socket =
        std::string_view(GetParam().section).find("align-by-socket") != std::string_view::npos;
    if (by_socket && machine.packages().size() > machine.nodes().size()) continue;
    PodsWithInitContainers pods(GetParam().factory(), machine, GetParam().section, seed);
    pods.Run(kSanitized ? 30 : 60);
    placed += pods.placed();
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(placed, kSanitized ? 500 : 1000);
}

INSTANTIATE_TEST_SUITE_P(
    Policies, InitContainersTest,
    testing::Values(
        SectionCase{"Static", StaticPolicyFactory, ""},
        SectionCase{"StaticUncore", StaticPolicyFactory,
                    "{Options: {prefer-align-cpus-by-uncorecache: true}}"},
        SectionCase{"StaticSockets", StaticPolicyFactory, "{Options: {align-by-socket: true}}"},
        SectionCase{"StaticAcrossNuma", StaticPolicyFactory,
                    "{Options: {distribute-cpus-across-numa: true}}"},
        SectionCase{"StaticAcrossCores", StaticPolicyFactory,
                    "{Options: {distribute-cpus-across-cores: true}}"},
        SectionCase{"StaticFullCores", StaticPolicyFactory, "{Options: {full-pcpus-only: true}}"},
        SectionCase{"StaticPlus", StaticPlusPolicyFactory, ""},
        SectionCase{"TopologyAware", TopologyAwarePolicyFactory, ""}),
    kSectionCaseName);

}  // namespace
}  // namespace resmgr::test
