// SPDX-License-Identifier: Apache-2.0
// The invariants of pkg/ARCHITECTURE.md over random lives of nodes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/log/log.h"
#include "policies/balloons/balloons_policy.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/node_machines.h"
#include "test/integration/brain/world.h"
#include "test/support/sanitizer.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

// Some 200,000 steps over all cases. Sanitizers need fewer to see every line.
constexpr int kSteps = kSanitized ? 150 : 400;
constexpr int kRounds = kSanitized ? 1 : 3;
constexpr int kMostRounds = kRounds + 20;

struct NodeCase {
  std::string name;
  const NamedMachine* machine = nullptr;
  int reserved = 1;  // number of reserved CPUs
  PolicyFactory factory;
  std::string section;
};

void PrintTo(const NodeCase& c, std::ostream* out) {
  *out << c.name;
}

struct Options {
  std::string_view name;
  std::string_view section;
  int reserved = 1;
};

// Every option of each policy.
constexpr std::array<Options, 9> kStaticOptions = {{
    {"Strict", "{Options: {strict-cpu-reservation: true}}", 2},
    {"FullCores", "{Options: {full-pcpus-only: true, cpu-quota: keep}}"},
    {"FullCoresAcrossNuma",
     "{Options: {full-pcpus-only: true, distribute-cpus-across-numa: true}}"},
    {"AcrossCores", "{Options: {distribute-cpus-across-cores: true}}"},
    {"AcrossNuma", "{Options: {distribute-cpus-across-numa: true}}"},
    {"Uncore", "{Options: {prefer-align-cpus-by-uncorecache: true}}"},
    {"BySocket", "{Options: {align-by-socket: true}}"},
    {"Relaxed", "{RelaxedIsolation: true}", 2},
    {"NoReservation", "", 0},
}};
constexpr std::array<Options, 9> kPlusOptions = {{
    {"Guaranteed", "{ExclusiveCPUs: guaranteed}", 2},
    {"Annotated", "{ExclusiveCPUs: annotated, ReservedPoolNamespaces: ['n*']}"},
    {"FullCores", "{Options: {full-pcpus-only: true, cpu-quota: keep}}"},
    {"AcrossCores", "{Options: {distribute-cpus-across-cores: true}}"},
    {"AcrossNuma", "{Options: {distribute-cpus-across-numa: true}}"},
    {"Uncore", "{Options: {prefer-align-cpus-by-uncorecache: true}}"},
    {"BySocket", "{Options: {align-by-socket: true}}"},
    {"OrdinaryFirst", "{PreferIsolatedCPUs: false, PrivilegedNamespaces: ['*']}"},
    {"NoReservation", "", 0},
}};
constexpr std::array<Options, 6> kTopologyAwareOptions = {{
    {"Shared", "{PreferSharedCPUs: true, PreferIsolatedCPUs: false}", 2},
    {"Reserved", "{ReservedPoolNamespaces: ['n*']}", 2},
    {"Colocated", "{ColocatePods: true, ColocateNamespaces: true, PrivilegedNamespaces: ['*']}"},
    {"KeepQuota", "{CPUQuota: keep, DefaultCPUPriority: high, UnlimitedBurstable: numa}"},
    {"NoMemory", "{PinMemory: false}"},
    {"NoReservation", "", 0},
}};
constexpr std::array<Options, 8> kBalloonsOptions = {{
    {"Own",
     "{balloonTypes: [{name: own, preferNewBalloons: true, preferSpreadingPods: true, "
     "matchExpressions: [{key: qosclass, operator: In, values: [Guaranteed]}]}]}",
     2},
    {"Sharing",
     "{allocatorTopologyBalancing: true, balloonTypes: [{name: a, namespaces: ['n*'], "
     "shareIdleCPUsInSame: numa, hideHyperthreads: true}]}"},
    {"Limited",
     "{whenShort: refuse, moveBudget: 0, balloonTypes: [{name: a, namespaces: ['*'], maxCPUs: 3, "
     "maxPods: 2, preferNewBalloons: true}]}"},
    {"Parts",
     "{balloonTypes: [{name: part}, {name: a, namespaces: ['n*'], components: [{balloonType: "
     "part}, {balloonType: part}]}]}"},
    {"Loads",
     "{preferSpreadOnPhysicalCores: true, loadClasses: [{name: l, level: core}], balloonTypes: "
     "[{name: a, namespaces: ['n*'], loads: [l], preferPerNamespaceBalloon: true, sizeBy: "
     "between}]}"},
    {"Fixed",
     "{balloonTypes: [{name: a, namespaces: ['n*'], minCPUs: 1, minBalloons: 1, fillOrder: packed, "
     "groupBy: '${pod/uid}', maxOvercommit: 300}]}"},
    {"NoPinning", "{pinCPU: false, pinMemory: false}"},
    {"NoReservation", "", 0},
}};
// The machines for policies with options.
constexpr std::array<std::string_view, 5> kOptionMachines = {"S1Ht", "M80", "Hybrid", "IsolatedM80",
                                                             "XmlEpyc2sCcx"};

std::vector<NodeCase> AllCases() {
  std::vector<NodeCase> cases;
  const auto add = [&cases](const NamedMachine& machine, const PolicyFactory& factory,
                            const Options& options) {
    const std::string_view policy = factory.name == "static"        ? "Static"
                                    : factory.name == "static-plus" ? "StaticPlus"
                                    : factory.name == "balloons"    ? "Balloons"
                                                                    : "TopologyAware";
    cases.push_back({fmt::format("{}{}{}", policy, machine.name, options.name), &machine,
                     options.reserved, factory, std::string(options.section)});
  };
  for (const NamedMachine& machine : AllMachines()) {
    add(machine, StaticPolicyFactory(), {});
    add(machine, StaticPlusPolicyFactory(), {});
    add(machine, TopologyAwarePolicyFactory(), {});
    add(machine, BalloonsPolicyFactory(), {});
    const bool with_options = std::find(kOptionMachines.begin(), kOptionMachines.end(),
                                        machine.name) != kOptionMachines.end();
    if (!with_options) continue;
    for (const Options& options : kStaticOptions)
      add(machine, StaticPolicyFactory(), options);
    for (const Options& options : kPlusOptions)
      add(machine, StaticPlusPolicyFactory(), options);
    for (const Options& options : kTopologyAwareOptions)
      add(machine, TopologyAwarePolicyFactory(), options);
    for (const Options& options : kBalloonsOptions)
      add(machine, BalloonsPolicyFactory(), options);
  }
  return cases;
}

template <size_t kCount>
World::Choice ChoiceOf(const PolicyFactory& factory, const std::array<Options, kCount>& options) {
  World::Choice choice{factory, {""}};
  for (const Options& each : options)
    choice.sections.emplace_back(each.section);
  return choice;
}

class BrainPropertyTest : public testing::TestWithParam<NodeCase> {
 protected:
  static void SetUpTestSuite() { SetLogLevel(LogLevel::kError); }

  static World::Setup TheSetup() {
    const NodeCase& param = GetParam();
    const Machine& machine = param.machine->machine;
    CpuSet reserved;
    for (const int cpu : machine.allowed() - machine.isolated()) {
      if (reserved.size() < param.reserved) reserved.Add(cpu);
    }
    World::Setup setup{machine,
                       {param.factory, param.section, machine.allowed(), reserved},
                       {ChoiceOf(StaticPolicyFactory(), kStaticOptions),
                        ChoiceOf(StaticPlusPolicyFactory(), kPlusOptions),
                        ChoiceOf(TopologyAwarePolicyFactory(), kTopologyAwareOptions)}};
    if (param.factory.name == "balloons")
      setup.choices.push_back(ChoiceOf(BalloonsPolicyFactory(), kBalloonsOptions));
    return setup;
  }

  void LivesWell(World& world) {
    for (int step = 0; step < kSteps; ++step) {
      SCOPED_TRACE(testing::Message() << "step " << step);
      world.Step();
      world.Check();
      if (step % 100 == 99) {
        world.Settle();
        world.CheckSettled();
        world.CheckRestartMovesNobody();
      }
      ASSERT_FALSE(HasFailure()) << world.Journal();
    }
    world.End();
    world.CheckSettled();
    ASSERT_FALSE(HasFailure()) << world.Journal();
  }
};

uint64_t Seed() {
  return SeedOr(20'240'000);
}

uint64_t SeedOf(int round) {
  return Seed() + static_cast<uint64_t>(round);
}

TEST_P(BrainPropertyTest, InvariantsHoldThroughARandomLife) {
  constexpr size_t kEnough = size_t{3} * kRounds;
  size_t started = 0;
  // With some seeds the first lives are too quiet to prove anything.
  for (int round = 0; round < kRounds || (started <= kEnough && round < kMostRounds); ++round) {
    SCOPED_TRACE(Repeat(Seed()) << " round " << round);
    World world(TheSetup(), SeedOf(round));
    LivesWell(world);
    if (HasFatalFailure()) return;
    started += world.started();
  }
  EXPECT_GT(started, kEnough) << "too quiet to prove anything";
}

TEST_P(BrainPropertyTest, InvariantsHoldThroughALifeWithAMemory) {
  World::Setup setup = TheSetup();
  setup.keeps_state = true;
  SCOPED_TRACE(Repeat(Seed()));
  World world(setup, SeedOf(kRounds));
  LivesWell(world);
}

TEST_P(BrainPropertyTest, InvariantsHoldWhileCpusGoOfflineAndComeBack) {
  World::Setup setup = TheSetup();
  setup.keeps_state = true;
  setup.cpus_go_offline = true;
  SCOPED_TRACE(Repeat(Seed()));
  World world(setup, SeedOf(kRounds + 1));
  LivesWell(world);
}

TEST_P(BrainPropertyTest, TheSameInputsGiveTheSamePlacements) {
  SCOPED_TRACE(Repeat(Seed()));
  const auto live = [] {
    World world(TheSetup(), SeedOf(7));
    for (int step = 0; step < kSteps; ++step)
      world.Step();
    std::vector<std::string> life = world.history();
    life.push_back(world.Journal());
    return life;
  };
  const std::vector<std::string> first = live();
  EXPECT_FALSE(first.back().empty());
  EXPECT_EQ(live(), first);
}

// Every second case, alternately for each policy from one machine to the next.
std::vector<NodeCase> HalfOfCases(size_t half) {
  constexpr size_t kPolicies = 4;
  const std::vector<NodeCase> all = AllCases();
  std::vector<NodeCase> cases;
  for (size_t i = 0; i < all.size(); ++i)
    if ((i + i / kPolicies) % 2 == half) cases.push_back(all[i]);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Machines, BrainPropertyTest, testing::ValuesIn(HalfOfCases(0)),
                         [](const auto& param_info) { return param_info.param.name; });
INSTANTIATE_TEST_SUITE_P(Long, BrainPropertyTest, testing::ValuesIn(HalfOfCases(1)),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace resmgr::test
