// SPDX-License-Identifier: Apache-2.0
// The policy grants all that a scheduler that reads the node's NodeResourceTopology lets pass:
// random states of each policy on machines of many kinds, the object that the agent would write,
// and a model of the scheduler's plugin. RESMGR_SCENARIOS is the number of states, RESMGR_SEED the
// seed.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "agent/topology_object.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/schedview/scheduler_view.h"
#include "policies/balloons/balloons_policy.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/node_machines.h"
#include "test/integration/brain/policy_node.h"
#include "test/integration/brain/scheduler_model.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

// The number of states for one policy, on all machines together.
constexpr uint64_t kUsualStates = 1500;
// Larger machines have no further properties and take longer.
constexpr int kMostCpus = 160;

uint64_t StatesOrUsual() {
  const char* const given = std::getenv("RESMGR_SCENARIOS");
  if (given == nullptr) return kUsualStates;
  const std::optional<uint64_t> count = ParseUint(given);
  EXPECT_TRUE(count.has_value()) << "RESMGR_SCENARIOS=" << given << " is no number";
  return count.value_or(kUsualStates);
}

struct SchedulerCase {
  const char* name;
  PolicyFactory (*factory)();
  const char* section;
  // The policy refuses containers that fit no single NUMA node, so that schedulers may rely on it.
  bool refuses = false;
  // Requests are multiples of the threads of a core.
  bool whole_cores = false;
};

// A node whose containers come and go, and pods that a scheduler would bind to it.
class ScheduledNode {
 public:
  ScheduledNode(const SchedulerCase& tested, const Machine& machine, uint64_t seed)
      : tested_(tested),
        random_(seed),
        reserved_{(machine.online() - machine.isolated()).First()},
        node_(tested.factory(), machine, reserved_.ToString(), tested.section) {}

  void Step() {
    const int64_t what = Number(1, 8);
    if (what <= 3 && !keys_.empty()) {
      const auto at = static_cast<size_t>(Number(0, std::ssize(keys_) - 1));
      node_.Remove(keys_[at]);
      keys_.erase(keys_.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      const bool shares = Number(1, 3) == 1;
      const StatusOr<ContainerKey> key =
          node_.Create("c", shares ? QosClass::kBurstable : QosClass::kGuaranteed,
                       shares ? 100 * Number(1, 40) : WholeRequest());
      if (key.ok()) keys_.push_back(*key);
    }
  }

  // Expects that a pod that the scheduler would bind here is granted. Pods that it would not bind
  // are skipped.
  void TryAPod() {
    const SchedulerView view =
        MakeSchedulerView(node_.machine(), node_.policy(), node_.snapshot(), tested_.refuses);
    EXPECT_EQ(view.refuses, tested_.refuses);
    const ScheduledPod pod = NextPod();
    nlohmann::json topology = agent::TopologyObject("n1", "uid", view);
    // The numbers must hold under the strictest reading by the scheduler.
    topology["attributes"][0]["value"] = "single-numa-node";
    const std::map<std::string, int64_t> allocatable = {
        {"cpu", 1000 * node_.machine().online().size()}, {"memory", int64_t{1} << 50}};
    if (!FilterByTopology(topology, allocatable, pod).empty()) return;
    ++passed_;
    Start(pod, topology);
  }
  int passed() const { return passed_; }

 private:
  int64_t Number(int64_t first, int64_t last) {
    return first + static_cast<int64_t>(random_() % static_cast<uint64_t>(last - first + 1));
  }
  int64_t Threads() const {
    size_t most = 1;
    for (const CpuSet& core : node_.machine().cores())
      most = std::max(most, static_cast<size_t>(core.size()));
    return static_cast<int64_t>(most);
  }
  int64_t WholeRequest() {
    const int64_t most = std::max<int64_t>(1, node_.machine().online().size() / 3);
    const int64_t cpus = Number(1, Number(1, 2) == 1 ? std::min<int64_t>(most, 4) : most);
    const int64_t step = tested_.whole_cores ? Threads() : 1;
    return 1000 * ((cpus + step - 1) / step * step);
  }

  ScheduledPod NextPod() {
    ScheduledPod pod;
    if (Number(1, 4) == 1)
      pod.containers.push_back({.asked = {{"cpu", WholeRequest()}}, .init = true});
    const int64_t count = Number(1, 3);
    for (int64_t i = 0; i < count; ++i)
      pod.containers.push_back({.asked = {{"cpu", WholeRequest()}}});
    return pod;
  }

  // Creates the pod's containers as the kubelet does, and removes them again.
  void Start(const ScheduledPod& scheduled, const nlohmann::json& topology) {
    std::optional<Pod> pod;
    std::vector<ContainerKey> started;
    for (const ScheduledContainer& container : scheduled.containers) {
      const int64_t cpu = container.asked.at("cpu");
      const StatusOr<ContainerKey> key = pod ? node_.CreateIn(*pod, "main", cpu)
                                             : node_.Create("main", QosClass::kGuaranteed, cpu);
      EXPECT_TRUE(key.ok()) << Describe(key.status()) << "\n" << Describe(scheduled, topology);
      if (!key.ok()) break;
      if (!pod) pod = node_.snapshot().PodOf(*key);
      CheckPlace(node_.PlacementOf(*key), cpu);
      if (container.init) {
        node_.Remove(*key);
      } else {
        started.push_back(*key);
      }
    }
    for (const ContainerKey key : started)
      node_.Remove(key);
  }

  void CheckPlace(const Placement& placement, int64_t cpu) {
    if (!tested_.refuses || placement.exclusive.empty()) return;
    EXPECT_EQ(placement.exclusive.size(), cpu / 1000);
    EXPECT_EQ(node_.machine().NodesOf(placement.exclusive).size(), 1)
        << placement.exclusive.ToString() << ": " << placement.reason;
  }

  static std::string Describe(const Status& status) { return std::string(Message(status)); }
  static std::string Describe(const ScheduledPod& pod, const nlohmann::json& topology) {
    std::string text;
    for (const ScheduledContainer& container : pod.containers)
      text += fmt::format("{}{}m ", container.init ? "init " : "", container.asked.at("cpu"));
    for (const nlohmann::json& zone : topology.at("zones"))
      text += fmt::format("\n{}: {}", zone.at("name").get<std::string>(),
                          JsonText(zone.at("resources").at(0)));
    return text;
  }

  const SchedulerCase& tested_;
  std::mt19937_64 random_;
  const CpuSet reserved_;
  PolicyNode node_;
  std::vector<ContainerKey> keys_;
  int passed_ = 0;
};

class SchedulerPropertyTest : public testing::TestWithParam<SchedulerCase> {};

TEST_P(SchedulerPropertyTest, WhatTheSchedulerLetsPassIsGranted) {
  const uint64_t seed = SeedOr(1);
  SCOPED_TRACE(Repeat(seed));
  std::vector<NamedMachine> machines = AllMachines();
  std::erase_if(machines, [](const NamedMachine& one) {
    // With cores of different sizes no number of CPUs is sure to be one of whole cores.
    const auto& cores = one.machine.cores();
    const bool even = std::ranges::all_of(
        cores, [&](const CpuSet& core) { return core.size() == cores[0].size(); });
    return one.machine.online().size() > kMostCpus || (GetParam().whole_cores && !even);
  });
  const uint64_t each = std::max<uint64_t>(1, StatesOrUsual() / machines.size());
  int passed = 0;
  for (const auto& [name, machine] : machines) {
    SCOPED_TRACE(name);
    ScheduledNode node(GetParam(), machine, seed);
    for (uint64_t state = 0; state < each; ++state) {
      node.Step();
      node.TryAPod();
      ASSERT_FALSE(HasFailure()) << "state " << state;
    }
    passed += node.passed();
  }
  RecordProperty("passed", passed);
  EXPECT_GT(passed, static_cast<int>(machines.size())) << "hardly a pod was let pass";
}

INSTANTIATE_TEST_SUITE_P(
    Policies, SchedulerPropertyTest,
    testing::Values(SchedulerCase{"Static", StaticPolicyFactory, ""},
                    SchedulerCase{"StaticAligned", StaticPolicyFactory, "{Alignment: numa}", true},
                    SchedulerCase{"StaticStrict", StaticPolicyFactory,
                                  "{Options: {strict-cpu-reservation: true}}"},
                    SchedulerCase{"StaticFullCores", StaticPolicyFactory,
                                  "{Options: {full-pcpus-only: true}}", false, true},
                    SchedulerCase{"StaticUncore", StaticPolicyFactory,
                                  "{Options: {prefer-align-cpus-by-uncorecache: true}}"},
                    SchedulerCase{"StaticPlus", StaticPlusPolicyFactory, ""},
                    SchedulerCase{"StaticPlusAligned", StaticPlusPolicyFactory, "{Alignment: numa}",
                                  true},
                    SchedulerCase{"TopologyAware", TopologyAwarePolicyFactory, ""},
                    SchedulerCase{"TopologyAwareAligned", TopologyAwarePolicyFactory,
                                  "{Alignment: numa}", true},
                    SchedulerCase{"Balloons", BalloonsPolicyFactory, ""}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace resmgr::test
