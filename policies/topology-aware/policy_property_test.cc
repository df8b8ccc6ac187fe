// SPDX-License-Identifier: Apache-2.0
// Random lives of a node under the policy alone, over many machines.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/policy/plan_check.h"
#include "pkg/policy/testing/test_snapshot.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/support/machines/machines.h"
#include "test/support/seed.h"

namespace resmgr {
namespace {

constexpr int kSteps = 300;
constexpr int kRounds = 4;

struct Case {
  const char* name;
  Machine (*machine)();
  const char* reserved;
  const char* section;
  int64_t unreserved = 0;  // in milli-CPUs, of the reserved CPUs
};

Machine Changed(const Machine& machine, std::string_view isolated, bool small_memory) {
  Machine::Parts parts = test::PartsOf(machine);
  for (Cpu& cpu : parts.cpus)
    cpu.isolated = test::Cpus(isolated).Contains(cpu.id);
  int nodes = 0;
  for (NumaNode& node : parts.nodes) {
    if (small_memory) node.memory = Bytes{(int64_t{8} + 4 * nodes++) << 30};
    node.distances.clear();
  }
  return test::MakeMachine(std::move(parts));
}

Machine ManyCaches() {
  return test::MakeMachine({.packages = 2, .nodes = 2, .l3s = 4, .cores = 16, .threads = 2});
}

// Two packages with a DRAM node, a PMEM node and, in the second one, HBM.
Machine ManyMemories() {
  Machine machine = test::MakeMachine({.packages = 2, .cores = 4, .threads = 2});
  Machine::Parts parts{.cpus = machine.cpus(), .nodes = {}, .allowed = machine.allowed()};
  for (int id = 0; id < 5; ++id) {
    NumaNode node;
    node.id = id;
    node.type = id < 2 ? MemoryType::kDram : id < 4 ? MemoryType::kPmem : MemoryType::kHbm;
    node.memory = Bytes{int64_t{id < 2 ? 8 : 16} << 30};
    for (int other = 0; other < 5; ++other)
      node.distances.push_back(id == other ? 10 : id % 2 == other % 2 ? 15 : 21);
    parts.nodes.push_back(std::move(node));
  }
  return test::MakeMachine(std::move(parts));
}

// Some annotations have an effect for pods of privileged namespaces only, so all namespaces are
// privileged here.
constexpr const char* kAnyNamespace = "{PrivilegedNamespaces: ['*']}";

// Huge pages of two sizes on some of the nodes, fewer than are asked for in all.
Machine HugePagesHereAndThere() {
  const Machine machine = test::M80();
  Machine::Parts parts = test::PartsOf(machine);
  parts.nodes[0].huge_pages = {{Bytes{2 << 20}, 1024}, {Bytes{1 << 30}, 4}};
  parts.nodes[1].huge_pages = {{Bytes{2 << 20}, 1024}};
  parts.nodes[3].huge_pages = {{Bytes{1 << 30}, 8}};
  return test::MakeMachine(std::move(parts));
}

constexpr Case kCases[] = {
    {"S1Ht", test::S1Ht, "0", kAnyNamespace},
    {"S1HtAllReserved", test::S1Ht, "0-7", kAnyNamespace, 500},
    {"S2HtNoReservation", test::S2Ht, "", ""},
    {"M80", test::M80, "0,40", kAnyNamespace},
    {"M80Fraction", test::M80, "0,40", kAnyNamespace, 650},
    {"M80SmallMemory", [] { return Changed(test::M80(), "", true); }, "0", ""},
    {"M80Isolated", [] { return Changed(test::M80(), "10-19,50-59", false); }, "0", ""},
    {"U16SmtIsolated", [] { return Changed(test::U16Smt(), "2-6,18-22,31", false); }, "0", ""},
    {"F80", test::F80, "79", "{UnlimitedBurstable: numa}"},
    {"Q288", test::Q288, "0-3", kAnyNamespace},
    {"U16Smt", test::U16Smt, "0", "{ColocatePods: true}"},
    {"U16TwoNodes", test::U16TwoNodes, "0", "{PreferSharedCPUs: true}"},
    {"Hybrid", test::Hybrid, "7", "{DefaultCPUPriority: high}"},
    {"ManyCaches", ManyCaches, "0,64", kAnyNamespace},
    {"ManyMemories", ManyMemories, "0", kAnyNamespace},
    {"HugePages", HugePagesHereAndThere, "0", ""},
    {"NoMemoryPinning", test::M80, "0", "{PinMemory: false}"},
    {"NoCpuPinning", test::M80, "0", "{PinCPU: false}"},
};

class Life {
 public:
  Life(const Case& c, uint64_t seed) : case_(c), machine_(c.machine()), random_(seed) {
    MakePolicy();
  }

  void Step() {
    const int64_t what = Number(0, 99);
    if (what < 45) {
      Create();
    } else if (what < 65) {
      Remove();
    } else if (what < 80) {
      Resize();
    } else if (what < 90) {
      Again();
    } else if (what < 94) {
      Restart();
    } else if (what < 96) {
      RestartForgetting();
    } else if (what < 98) {
      EndColdStart();
    } else {
      Rebalance();
    }
  }

  void Check() {
    CpuSet exclusive;
    const CpuSet reserved = test::Cpus(case_.reserved);
    snapshot_.ForEachContainer([&](const Pod&, const Container& container) {
      EXPECT_FALSE(container.placement.exclusive.Intersects(exclusive | reserved));
      exclusive |= container.placement.exclusive;
    });
    snapshot_.ForEachContainer([&](const Pod&, const Container& container) {
      const Placement& placement = container.placement;
      EXPECT_FALSE(placement.reason.empty());
      EXPECT_FALSE(placement.pool.empty());
      if (placement.look_again_after.count() > 0) CheckCold(placement);
      if (!placement.cpus) return;
      EXPECT_FALSE((*placement.cpus - placement.exclusive).Intersects(exclusive));
    });
    CheckHugePages();
    for (const Zone& zone : policy_->Zones(snapshot_)) {
      EXPECT_FALSE(zone.shared.Intersects(zone.exclusive)) << zone.name;
      EXPECT_GE(zone.containers, 0) << zone.name;
      // System pods get their memory in any case.
      if (AnySystemPod()) continue;
      EXPECT_LE(zone.memory_used, zone.memory_capacity) << zone.name;
    }
  }

  // No node has more containers that have to find their huge pages there than it has pages. One
  // whose huge pages do not count may find them on any node.
  void CheckHugePages() {
    for (const NumaNode& node : machine_.nodes()) {
      for (const auto& [size, name] :
           {std::pair(Bytes{2 << 20}, "2MB"), std::pair(Bytes{1 << 30}, "1GB")}) {
        int64_t asked = 0;
        snapshot_.ForEachContainer([&, &page = name](const Pod&, const Container& container) {
          const auto& limits = container.requested.hugepage_limits;
          if (container.placement.mems != NodeSet{node.id} || !limits.contains(page)) return;
          asked += static_cast<int64_t>(limits.at(page));
        });
        int64_t there = 0;
        for (const HugePages& pages : node.huge_pages)
          there += pages.size == size ? pages.Total().value : 0;
        EXPECT_LE(asked, there) << "node " << node.id << ", pages of " << name;
      }
    }
  }

  // Removes all containers; no grant may be left.
  void End() {
    while (!keys_.empty())
      Remove();
    for (const Zone& zone : policy_->Zones(snapshot_)) {
      EXPECT_TRUE(zone.exclusive.empty()) << zone.name;
      EXPECT_EQ(zone.containers, 0) << zone.name;
      EXPECT_EQ(zone.shared_request.value, 0) << zone.name;
      EXPECT_EQ(zone.memory_used.value, 0) << zone.name;
    }
  }

  const std::vector<std::string>& log() const { return log_; }

 private:
  void CheckCold(const Placement& placement) {
    ASSERT_TRUE(placement.mems && !placement.mems->empty());
    for (const NumaNode& node : machine_.nodes()) {
      if (!placement.mems->Contains(node.id)) continue;
      EXPECT_EQ(node.type, MemoryType::kPmem) << Text(placement);
    }
  }

  // Ends the cold start of any container: only a cold one changes, and only its memory.
  void EndColdStart() {
    if (keys_.empty()) return;
    const ContainerKey key = keys_[SomeIndex()];
    const Placement before = snapshot_.At(key).placement;
    const std::string state = State();
    const StatusOr<Plan> plan = policy_->LookAgain(snapshot_, key);
    ASSERT_TRUE(plan.ok()) << plan.status();
    Apply("end cold start", *plan);
    EXPECT_EQ(State(), state);
    const Placement& now = snapshot_.At(key).placement;
    EXPECT_EQ(now.look_again_after.count(), 0);
    if (before.look_again_after.count() == 0) {
      EXPECT_TRUE(plan->empty());
      return;
    }
    EXPECT_EQ(plan->changes.size(), 1U) << "it counted with all of its memory before";
    EXPECT_TRUE(before.mems->IsSubsetOf(*now.mems) && *before.mems != *now.mems);
  }

  void MakePolicy() {
    const StatusOr<ConfigNode> config = ParseYaml(case_.section, "test.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    StatusOr<std::unique_ptr<Policy>> policy =
        TopologyAwarePolicy::Create({.machine = machine_,
                                     .available = machine_.allowed(),
                                     .reserved = test::Cpus(case_.reserved),
                                     .section = &*config,
                                     .unreserved = MilliCpu{case_.unreserved}});
    EXPECT_TRUE(policy.ok()) << policy.status();
    policy_ = *std::move(policy);
  }

  bool AnySystemPod() {
    bool any = false;
    for (const ContainerKey key : keys_) {
      const Pod& pod = snapshot_.PodOf(key);
      any |= pod.namespace_name == "kube-system" ||
             pod.annotations.contains("prefer-reserved-cpus.resource-policy.nri.io");
    }
    return any;
  }

  int64_t Number(int64_t first, int64_t last) {
    return std::uniform_int_distribution<int64_t>(first, last)(random_);
  }
  bool Chance(int percent) { return Number(1, 100) <= percent; }
  size_t SomeIndex() { return static_cast<size_t>(Number(0, std::ssize(keys_) - 1)); }

  void Randomize(Pod& pod, Container& container) {
    Requirements& needs = container.requirements;
    const int64_t whole = Chance(80) ? Number(1, 4) : Number(1, machine_.online().size());
    needs.cpu_request.value = Chance(60) ? whole * 1000 : Number(0, 40) * 100;
    needs.cpu_limit = needs.cpu_request;
    needs.memory_request.value = Number(0, 3) << 30;
    needs.memory_limit = needs.memory_request;
    if (pod.qos == QosClass::kBestEffort) needs = {};
    if (pod.qos != QosClass::kBurstable) return;
    needs.cpu_limit.value = Chance(50) ? 0 : needs.cpu_request.value + 2000;
    needs.memory_limit.value *= 2;
  }

  void Annotate(Pod& pod) {
    constexpr const char* kKeys[] = {"prefer-shared-cpus",    "prefer-isolated-cpus",
                                     "prefer-reserved-cpus",  "hide-hyperthreads",
                                     "require-isolated-cpus", "allow-rebalance",
                                     "cpu.preserve",          "memory.preserve"};
    for (const char* const key : kKeys) {
      if (!Chance(8)) continue;
      pod.annotations.Set(std::string(key) + ".resource-policy.nri.io",
                          Chance(60) ? "true" : "false");
    }
    if (Chance(10))
      pod.annotations.Set("memory-type.resource-policy.nri.io", Chance(50) ? "dram" : "pmem,hbm");
    if (Chance(20)) pod.annotations.Set("cold-start.resource-policy.nri.io", "duration: 60s");
    if (Chance(10)) {
      pod.annotations.Set(
          "resource-policy.nri.io/affinity",
          fmt::format(
              "{}: [{{scope: {{key: namespace, operator: Exists}}, match: {{key: name, operator: "
              "Matches, values: ['*{}']}}, weight: {}}}]",
              pod.name, Number(0, 9), Number(-5, 5)));
    }
  }

  void AskForHugePages(Container& container) {
    const bool any = std::ranges::any_of(
        machine_.nodes(), [](const NumaNode& node) { return !node.huge_pages.empty(); });
    if (!any || !Chance(30)) return;
    auto& limits = container.requested.hugepage_limits;
    limits["2MB"] = Chance(50) ? uint64_t{64} << 20 : 0;
    limits["1GB"] = Chance(50) ? static_cast<uint64_t>(Number(1, 3)) << 30 : 0;
  }

  void Create() {
    const auto qos = static_cast<QosClass>(Number(0, 2));
    Container& container = snapshot_.Add(fmt::format("c{}", ++names_), qos, 0);
    container.state = ContainerState::kRunning;
    Pod& pod = snapshot_.PodOf(container.key);
    if (Chance(10)) pod.namespace_name = "kube-system";
    Randomize(pod, container);
    AskForHugePages(container);
    Annotate(pod);
    if (Chance(15)) {
      container.hints.push_back({"device /dev/x", {}, NodeSet{machine_.node_ids().First()}});
      container.hints.push_back({"mount /data", machine_.packages().back(), {}});
    }
    Place(container.key, nullptr);
  }

  void Place(ContainerKey key, const Container* predecessor) {
    const std::string before = State();
    const StatusOr<Plan> plan =
        policy_->Allocate(snapshot_, snapshot_.PodOf(key), snapshot_.At(key), predecessor);
    if (!plan.ok()) {
      EXPECT_NE(plan.status().code(), StatusCode::kInternal) << plan.status();
      snapshot_.Remove(key);
      EXPECT_EQ(State(), before) << plan.status();
      Note(fmt::format("refused {}", Message(plan.status())));
      if (predecessor != nullptr) Release(predecessor->key);
      return;
    }
    EXPECT_NE(plan->Find(key), nullptr);
    Apply("create", *plan);
    keys_.push_back(key);
    if (predecessor == nullptr && Chance(20)) CheckReleaseGivesBack(key, before);
  }

  // Memory zones may stay wide, so it is the CPUs that must be as before.
  void CheckReleaseGivesBack(ContainerKey key, const std::string& before) {
    snapshot_.Remove(key);
    keys_.pop_back();
    Release(key);
    EXPECT_EQ(State(), before);
  }

  // CPUs of everything.
  std::string State() {
    std::string state;
    for (const Zone& zone : policy_->Zones(snapshot_)) {
      state += fmt::format("{}: exclusive {} shared {} request {} containers {}\n", zone.name,
                           zone.exclusive.ToString(), zone.shared.ToString(),
                           zone.shared_request.value, zone.containers);
    }
    snapshot_.ForEachContainer([&](const Pod&, const Container& container) {
      if (!container.placement.cpus) return;
      state += fmt::format("{} {}\n", container.name, container.placement.cpus->ToString());
    });
    return state;
  }

  void Release(ContainerKey key) {
    const StatusOr<Plan> plan = policy_->Release(snapshot_, key);
    ASSERT_TRUE(plan.ok()) << plan.status();
    Apply("release", *plan);
  }

  void Remove() {
    if (keys_.empty()) return;
    const size_t index = SomeIndex();
    const ContainerKey key = keys_[index];
    keys_.erase(keys_.begin() + static_cast<std::ptrdiff_t>(index));
    snapshot_.Remove(key);
    Release(key);
  }

  void Resize() {
    if (keys_.empty()) return;
    const ContainerKey key = keys_[SomeIndex()];
    Container& container = snapshot_.At(key);
    const Requirements before = container.requirements;
    const std::string state = State();
    const CpuSet held = container.placement.exclusive;
    const std::string pool = container.placement.pool;
    const std::optional<NodeSet> mems = container.placement.mems;
    Randomize(snapshot_.PodOf(key), container);
    const StatusOr<Plan> plan = policy_->Update(snapshot_, snapshot_.PodOf(key), container);
    if (!plan.ok()) {
      container.requirements = before;
      EXPECT_EQ(State(), state) << plan.status();
      return;
    }
    Apply("resize", *plan);
    CheckKeepsWhatItHolds(container.placement, held, mems);
    // In the same pool the container keeps all CPUs that it may keep.
    const CpuSet now = container.placement.exclusive;
    if (container.placement.pool == pool && !now.empty() && !held.empty() &&
        snapshot_.PodOf(key).annotations.empty()) {
      EXPECT_TRUE(now.IsSubsetOf(held) || held.IsSubsetOf(now))
          << held.ToString() << " became " << now.ToString();
    }
  }

  // A container that grows in place stays on its CPUs and its memory, whatever other containers
  // request.
  static void CheckKeepsWhatItHolds(const Placement& now, const CpuSet& held,
                                    const std::optional<NodeSet>& mems) {
    if (now.exclusive.size() >= held.size()) {
      EXPECT_TRUE(held.IsSubsetOf(now.exclusive))
          << held.ToString() << " became " << now.exclusive.ToString();
    }
    if (!mems || !now.mems) return;
    EXPECT_TRUE(mems->IsSubsetOf(*now.mems))
        << mems->ToString() << " became " << now.mems->ToString();
  }

  void Again() {
    if (keys_.empty()) return;
    const size_t index = SomeIndex();
    const Container former = snapshot_.At(keys_[index]);
    const Pod pod = snapshot_.PodOf(keys_[index]);
    snapshot_.Remove(keys_[index]);
    keys_.erase(keys_.begin() + static_cast<std::ptrdiff_t>(index));
    Container& container = snapshot_.Add(former.name, pod.qos, 0);
    snapshot_.PodOf(container.key).annotations = pod.annotations;
    snapshot_.PodOf(container.key).namespace_name = pod.namespace_name;
    container.state = ContainerState::kRunning;
    container.requirements = former.requirements;
    container.requested = former.requested;
    container.hints = former.hints;
    const ContainerKey key = container.key;
    Place(key, &former);
    if (former.placement.exclusive.empty() || snapshot_.FindContainer(key) == nullptr) return;
    EXPECT_EQ(snapshot_.At(key).placement.exclusive, former.placement.exclusive);
  }

  void Restart() {
    MakePolicy();
    const StatusOr<Plan> plan = policy_->Reconcile(snapshot_);
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (const PlacementChange& change : plan->changes) {
      const Container& container = snapshot_.At(change.key);
      ADD_FAILURE() << "a restart changed " << container.name << " from "
                    << Text(container.placement) << " to " << Text(change.placement);
    }
    Note("restart");
  }

  // Forgets all but the runtime's report.
  void RestartForgetting() {
    MakePolicy();
    std::map<ContainerKey, Placement> before;
    for (const ContainerKey key : keys_) {
      Placement& placement = snapshot_.At(key).placement;
      before[key] = placement;
      placement = {};
      placement.cpus = before[key].cpus;
      placement.mems = before[key].mems;
    }
    const StatusOr<Plan> plan = policy_->Reconcile(snapshot_);
    ASSERT_TRUE(plan.ok()) << plan.status();
    Apply("forget", *plan);
    for (const ContainerKey key : keys_) {
      // Hidden CPUs of a mixed container are not visible from outside.
      if (snapshot_.PodOf(key).annotations.contains("hide-hyperthreads.resource-policy.nri.io"))
        return;
    }
    // If neither shows the place of a container, its memory may be counted elsewhere.
    bool memory_is_known = true;
    for (const ContainerKey key : keys_) {
      const Placement& known = before.at(key);
      memory_is_known &= known.cpus || known.mems;
    }
    for (const auto& [key, placement] : before) {
      const Container& container = snapshot_.At(key);
      EXPECT_EQ(container.placement.cpus, placement.cpus)
          << container.name << " " << Text(placement) << " became " << Text(container.placement);
      if (!memory_is_known) continue;
      EXPECT_EQ(container.placement.mems, placement.mems)
          << container.name << " " << Text(placement) << " became " << Text(container.placement);
    }
  }

  void Rebalance() {
    for (int pass = 0; pass < 20; ++pass) {
      std::map<ContainerKey, CpuSet> exclusive;
      for (const ContainerKey key : keys_)
        exclusive[key] = snapshot_.At(key).placement.exclusive;
      const StatusOr<Plan> plan = policy_->Rebalance(snapshot_);
      ASSERT_TRUE(plan.ok()) << plan.status();
      Apply("rebalance", *plan);
      for (const ContainerKey key : keys_) {
        const bool may =
            snapshot_.PodOf(key).annotations.contains("allow-rebalance.resource-policy.nri.io");
        if (!may && !exclusive[key].empty()) {
          EXPECT_EQ(snapshot_.At(key).placement.exclusive, exclusive[key]);
        }
      }
      if (plan->empty()) return;
    }
    ADD_FAILURE() << "rebalancing does not come to rest";
  }

  void Apply(std::string_view what, const Plan& plan) {
    const Status status = CheckPlan(machine_, snapshot_, plan);
    EXPECT_TRUE(status.ok()) << what << ": " << status;
    snapshot_.Apply(plan);
    for (const PlacementChange& change : plan.changes)
      Note(
          fmt::format("{} {} {}", what, static_cast<uint64_t>(change.key), Text(change.placement)));
    for (const SharedChange& change : plan.shared)
      Note(fmt::format("{} {} share {}", what, change.containers.size(), change.cpus.ToString()));
  }

  static std::string Text(const Placement& placement) {
    return fmt::format("[{} | {} | {} | {} | {}]", placement.pool,
                       placement.cpus.value_or(CpuSet()).ToString(), placement.exclusive.ToString(),
                       placement.mems.value_or(NodeSet()).ToString(), placement.reason);
  }
  void Note(std::string line) { log_.push_back(std::move(line)); }

  const Case& case_;
  const Machine machine_;
  std::mt19937_64 random_;
  std::unique_ptr<Policy> policy_;
  test::TestSnapshot snapshot_;
  std::vector<ContainerKey> keys_;
  std::vector<std::string> log_;
  int names_ = 0;
};

uint64_t Seed() {
  return test::SeedOr(4'711);
}

uint64_t SeedOf(int round) {
  return Seed() + static_cast<uint64_t>(round);
}

class TopologyAwarePropertyTest : public testing::TestWithParam<Case> {};

TEST_P(TopologyAwarePropertyTest, InvariantsHoldThroughARandomLife) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(test::Repeat(Seed()) << " round " << round);
    Life life(GetParam(), SeedOf(round));
    for (int step = 0; step < kSteps; ++step) {
      SCOPED_TRACE(testing::Message() << "step " << step);
      life.Step();
      life.Check();
      ASSERT_FALSE(HasFailure());
    }
    life.End();
    ASSERT_FALSE(HasFailure());
  }
}

TEST_P(TopologyAwarePropertyTest, TheSameInputsGiveTheSamePlacements) {
  SCOPED_TRACE(test::Repeat(Seed()));
  const auto live = [] {
    Life life(GetParam(), SeedOf(0));
    for (int step = 0; step < kSteps; ++step)
      life.Step();
    return life.log();
  };
  EXPECT_EQ(live(), live());
}

INSTANTIATE_TEST_SUITE_P(Machines, TopologyAwarePropertyTest, testing::ValuesIn(kCases),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace resmgr
