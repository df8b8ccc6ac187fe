// SPDX-License-Identifier: Apache-2.0
// The node grants all that schedulers bind to it by the objects that it publishes: random states of
// each policy with random options on random machines, the objects that the agent writes, and a
// model of the schedulers (test/support/scheduler_model). RESMGR_SCENARIOS is the number of states
// for each policy, RESMGR_SEED the seed; RESMGR_NODE repeats only this node of a run that failed.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "test/integration/brain/node_machines.h"
#include "test/integration/brain/random_policies.h"
#include "test/integration/brain/random_requests.h"
#include "test/integration/brain/scheduled_node.h"
#include "test/support/sanitizer.h"
#include "test/support/scheduler_model/device_allocator.h"
#include "test/support/scheduler_model/topology_match.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

using nlohmann::json;

constexpr uint64_t kUsualStates = kSanitized ? 150 : 600;
// Larger machines have no further properties and take longer.
constexpr int kMostCpus = 160;
constexpr int kStatesOfNode = 25;
// A run tells the first failures of so many nodes.
constexpr int kMostFailedNodes = 8;

// nullopt: the variable is not set.
std::optional<uint64_t> NumberIn(const char* variable) {
  const char* const given = std::getenv(variable);
  if (given == nullptr) return std::nullopt;
  const std::optional<uint64_t> number = ParseUint(given);
  EXPECT_TRUE(number.has_value()) << variable << "=" << given << " is no number";
  return number;
}

int Failures() {
  const testing::TestResult& result =
      *testing::UnitTest::GetInstance()->current_test_info()->result();
  return result.total_part_count();
}

// Enough to make a random machine by hand.
std::string DescribeMachine(const Machine& machine) {
  std::string text = "a random machine";
  for (const NumaNode& node : machine.nodes())
    text += fmt::format(", node {}: {}", node.id, node.cpus.ToString());
  for (const CpuSet& cache : machine.l3_groups())
    text += fmt::format(", L3 {}", cache.ToString());
  return text + fmt::format(", isolated {}, cores of {}", machine.isolated().ToString(),
                            machine.cores().front().ToString());
}

struct PropertyFigures {
  int states = 0;
  int pods = 0;
  int passed = 0;         // by the plugin, with the policy that the object names or the strictest
  int passed_in_one = 0;  // of these, where the object says that the node refuses others
  int claims = 0;
  int allocated = 0;
};

// A node whose pods and claims come and go as schedulers bind them.
class PropertyRun {
 public:
  PropertyRun(const std::string& policy, Machine machine, const RandomPolicy& made, uint64_t seed)
      : random_(seed),
        shares_alone_(policy == "static-plus" || policy == "balloons"),
        refuses_when_short_(made.refuses_when_short),
        node_(made.factory, std::move(machine), made.reserved, made.section,
              {.name = "cpu.cri-resmgr.intel.com", .compatible = RandomOnce(random_, 4)}, true) {}

  // Whether all was well.
  bool State(PropertyFigures& figures) {
    const int failures = Failures();
    ++figures.states;
    for (int64_t steps = RandomNumber(random_, 0, 2); steps > 0; --steps)
      Step();
    published_ = node_.Publish();
    EXPECT_TRUE(TopologyFaults(published_.topology).empty())
        << TopologyFaults(published_.topology).front() << "\n"
        << JsonText(published_.topology, 1);
    EXPECT_TRUE(SliceFaults(published_.slices).empty())
        << SliceFaults(published_.slices).front() << "\n"
        << JsonText(published_.slices, 1);
    if (Failures() > failures) return false;
    if (RandomOnce(random_, 2)) {
      TryPods(figures);
    } else {
      TryClaims(figures);
    }
    return Failures() == failures;
  }

 private:
  // Changes that no scheduler knows of.
  void Step() {
    switch (RandomNumber(random_, 1, 9)) {
      case 1:
      case 2:
      case 3:
        if (!node_.pods().empty()) node_.End(SomePod());
        break;
      case 4:
      case 5:
        if (!claims_.empty()) EndClaim();
        break;
      case 6:
        Resize();
        break;
      case 7:
        Carry();
        break;
      case 8:
        node_.SwitchDevices();
        break;
      default:
        if (RandomOnce(random_, 2)) {
          node_.Rebalance();
        } else {
          node_.Restart();
          EXPECT_TRUE(node_.Reconcile().ok());
        }
    }
  }

  std::string SomePod() {
    auto pod = node_.pods().begin();
    std::advance(pod, RandomNumber(random_, 0, std::ssize(node_.pods()) - 1));
    return pod->first;
  }

  // Its containers end before, as the kubelet sees to.
  void EndClaim() {
    const int64_t at = RandomNumber(random_, 0, std::ssize(claims_) - 1);
    const json claim = claims_[static_cast<size_t>(at)];
    for (const ContainerKey key : carriers_[claim.at("metadata").at("uid")])
      node_.Remove(key);
    carriers_.erase(claim.at("metadata").at("uid"));
    node_.Unprepare(claim);
    claims_.erase(static_cast<size_t>(at));
  }

  void Resize() {
    if (node_.pods().empty()) return;
    const std::string pod = SomePod();
    const std::vector<ContainerKey>& keys = node_.pods().at(pod);
    if (keys.empty()) return;
    const MilliCpu now = node_.snapshot().At(keys.front()).requirements.cpu_request;
    if (!now.IsWhole()) return;
    node_.Resize(pod, MilliCpu{1000 * RandomNumber(random_, 1, now.Whole() + 2)});
  }

  // A container on the CPUs of a claim. A claim that another container has is refused.
  void Carry() {
    if (claims_.empty()) return;
    const auto at = static_cast<size_t>(RandomNumber(random_, 0, std::ssize(claims_) - 1));
    const std::string uid = claims_[at].at("metadata").at("uid");
    const StatusOr<ContainerKey> key = node_.CreateCarrier("carrier", {uid});
    if (key.ok()) carriers_[uid].push_back(*key);
  }

  void TryPods(PropertyFigures& figures) {
    TopologyView topology = TopologyViewOf(published_.topology);
    const bool refuses = topology.policy == ManagerPolicy::kSingleNumaNode;
    // The numbers hold under the strictest reading by the scheduler: a NUMA node with room for all
    // containers has it. By the scope of containers the plugin assumes the first node that fits for
    // each, where the policy may choose another one (docs/scheduler.md).
    topology.policy = ManagerPolicy::kSingleNumaNode;
    topology.scope = ManagerScope::kPod;
    // Pods that are bound before the object is written again, by the plugin's over-reserve cache.
    const int64_t pods = RandomOnce(random_, 3) ? 3 : 1;
    std::string bound;
    for (int64_t i = 0; i < pods; ++i) {
      ++figures.pods;
      const json pod =
          RandomRequests(random_, published_, shares_alone_).Pod("pod-" + std::to_string(++made_));
      const PodView view = PodViewOf(pod);
      const SchedulerNode seen{
          .allocatable = node_.allocatable(), .topology = &topology, .fresh = true};
      const FilterAnswer answer =
          FilterByTopology(seen, refuses_when_short_ ? AsCompared(view) : view);
      EXPECT_NE(answer.verdict, FilterVerdict::kPanics);
      if (answer.verdict != FilterVerdict::kPasses || !node_.HasRoomFor(view)) continue;
      ++figures.passed;
      if (refuses) ++figures.passed_in_one;
      CheckScore(seen, view);
      SCOPED_TRACE("pod " + JsonText(pod) + "\nafter these: " + bound + "\nobject " +
                   JsonText(published_.topology, 1));
      bound += "\n" + JsonText(pod);
      const int failures = Failures();
      node_.Start(pod, refuses);
      if (Failures() > failures) return;
      OverReserve(topology, view.effective);
      if (!RandomOnce(random_, 3)) node_.End(pod["metadata"]["name"]);
    }
  }

  // A node that passes the filter is not at the end of the list. Zones without one of the
  // resources, and init containers, whose requests only the score subtracts, are the plugin's own
  // reasons for it.
  static void CheckScore(const SchedulerNode& node, const PodView& pod) {
    const int score = LeastNumaNodesScore(node, pod);
    EXPECT_LE(score, 100);
    const bool listed = std::ranges::all_of(node.topology->zones, [&pod](const ZoneView& zone) {
      return std::ranges::all_of(pod.effective, [&zone](const auto& request) {
        return zone.available.contains(request.first);
      });
    });
    const bool has_init =
        std::ranges::any_of(pod.containers, [](const SchedulerContainer& container) {
          return container.kind == SchedulerContainerKind::kInit;
        });
    if (listed && !has_init && pod.qos == PodQos::kGuaranteed) EXPECT_GT(score, 0);
  }

  void TryClaims(PropertyFigures& figures) {
    AllocatorInput input{.slices = published_.slices,
                         .claims = claims_,
                         .classes = RandomRequests::Classes(node_.driver()),
                         .node = std::string(kPublishedNode),
                         .shuffle = random_(),
                         .short_names = RandomOnce(random_, 4)};
    // Claims that are allocated before the slices are written again, and prepared in any order.
    std::vector<json> allocated;
    for (int64_t count = RandomNumber(random_, 1, 3); count > 0; --count) {
      ++figures.claims;
      const json claim =
          RandomRequests(random_, published_, shares_alone_).Claim(++made_, node_.driver());
      const AllocationAnswer answer = AllocateClaim(input, claim);
      if (!answer.claim) continue;
      ++figures.allocated;
      input.claims.push_back(*answer.claim);
      allocated.push_back(*answer.claim);
    }
    std::shuffle(allocated.begin(), allocated.end(), random_);
    for (const json& claim : allocated) {
      SCOPED_TRACE("claim " + JsonText(claim) + "\nslices " + JsonText(published_.slices, 1));
      const int failures = Failures();
      node_.Prepare(claim);
      if (Failures() > failures) return;
      claims_.push_back(claim);
      if (RandomOnce(random_, 2)) EndClaim();
    }
  }

  RandomEngine random_;
  const bool shares_alone_;
  const bool refuses_when_short_;
  ScheduledNode node_;
  PublishedObjects published_;
  json claims_ = json::array();                                // those that are prepared
  std::map<std::string, std::vector<ContainerKey>> carriers_;  // by the claim's uid
  uint64_t made_ = 0;
};

class SchedulerPropertyTest : public testing::TestWithParam<const char*> {};

TEST_P(SchedulerPropertyTest, WhatSchedulersBindHereIsGranted) {
  const std::string policy = GetParam();
  const uint64_t seed = SeedOr(1);
  SCOPED_TRACE(Repeat(seed));
  std::vector<NamedMachine> machines = AllMachines();
  std::erase_if(machines,
                [](const NamedMachine& one) { return one.machine.online().size() > kMostCpus; });
  RandomEngine random(seed);
  PropertyFigures figures;
  int failed = 0;
  const std::optional<uint64_t> only = NumberIn("RESMGR_NODE");
  const auto states = static_cast<int>(NumberIn("RESMGR_SCENARIOS").value_or(kUsualStates));
  for (size_t nodes = 0; only ? nodes <= *only : figures.states < states; ++nodes) {
    // Every other machine is a known one.
    const NamedMachine& known = machines[nodes / 2 % machines.size()];
    const bool is_known = nodes % 2 == 1;
    const Machine machine = is_known ? known.machine : RandomMachine(random);
    const std::optional<RandomPolicy> made = RandomPolicyFor(policy, machine, random);
    if (!made) continue;
    SCOPED_TRACE(fmt::format("node {} on {}, {} reserved: {}", nodes,
                             is_known ? known.name : DescribeMachine(machine), made->reserved,
                             made->section));
    const uint64_t node_seed = random();
    if (only && nodes != *only) continue;
    PropertyRun run(policy, machine, *made, node_seed);
    int state = 0;
    while (state < kStatesOfNode && run.State(figures))
      ++state;
    if (state == kStatesOfNode) continue;
    ADD_FAILURE() << "in state " << state;
    ASSERT_LT(++failed, kMostFailedNodes);
  }
  std::cout << fmt::format(
      "{}: {} states, {} nodes failed; {} of {} pods pass, {} of them in one NUMA node by "
      "contract; {} of {} claims are allocated\n",
      policy, figures.states, failed, figures.passed, figures.pods, figures.passed_in_one,
      figures.allocated, figures.claims);
  if (!only) EXPECT_GT(figures.passed, figures.pods / 10) << "hardly a pod was let pass";
}

INSTANTIATE_TEST_SUITE_P(Policies, SchedulerPropertyTest,
                         testing::Values("static", "static-plus", "topology-aware", "balloons"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace resmgr::test
