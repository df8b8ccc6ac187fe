// SPDX-License-Identifier: Apache-2.0
#include "pkg/schedview/scheduler_view.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/kube/pod_fingerprint.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "test/integration/brain/policy_node.h"
#include "test/support/machines/machines.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using resmgr::test::Must;
using testing::ElementsAre;
using testing::IsEmpty;

// Two NUMA nodes with these numbers, of eight CPUs each.
Machine ViewedMachine(int threads = 1, int second_node = 1) {
  const Machine plain = test::MakeMachine(
      {.packages = 2, .cores = 8 / threads, .threads = threads, .siblings_apart = false});
  Machine::Parts parts{.cpus = plain.cpus(), .nodes = plain.nodes(), .allowed = plain.allowed()};
  for (Cpu& cpu : parts.cpus)
    if (cpu.numa == 1) cpu.numa = second_node;
  parts.nodes[1].id = second_node;
  parts.nodes[0].memory = parts.nodes[1].memory = Bytes{int64_t{32} << 30};
  parts.nodes[0].distances = {10, 21};
  parts.nodes[1].distances = {21, 10};
  return test::MakeMachine(std::move(parts));
}

SchedulerView ViewOf(test::PolicyNode& node, bool refuse = false) {
  return MakeSchedulerView(node.machine(), node.policy(), node.snapshot(), refuse);
}

// Capacity, allocatable and available of a resource.
std::vector<int64_t> Numbers(const cri_resmgr::v1::TopologyAmount& amount) {
  return {amount.capacity(), amount.allocatable(), amount.available()};
}

std::vector<int64_t> CpuNumbers(const cri_resmgr::v1::TopologyZone& zone) {
  EXPECT_EQ(zone.amounts(0).name(), "cpu");
  return Numbers(zone.amounts(0));
}

std::vector<PodName> PodsOf(const SchedulerView& view) {
  std::vector<PodName> pods;
  for (const auto& pod : view.pods())
    pods.push_back({pod.pod_namespace(), pod.pod()});
  return pods;
}

class SchedulerViewTest : public testing::Test {
 protected:
  test::PolicyNode node_{StaticPolicyFactory(), ViewedMachine(), "0", ""};
};

// Row N1 of the acceptance table.
TEST_F(SchedulerViewTest, ShowsAnIdleNode) {
  const SchedulerView view = ViewOf(node_);
  ASSERT_EQ(view.zones_size(), 2);
  EXPECT_THAT(CpuNumbers(view.zones(0)), ElementsAre(8, 7, 7));
  EXPECT_THAT(CpuNumbers(view.zones(1)), ElementsAre(8, 8, 8));
  EXPECT_THAT(view.zones(0).distances(), ElementsAre(10, 21));
  EXPECT_THAT(view.zones(1).distances(), ElementsAre(21, 10));
  EXPECT_FALSE(view.refuses());
  EXPECT_THAT(PodsOf(view), IsEmpty());
  EXPECT_EQ(view.zones(0).cpus(), "1-7");
  EXPECT_EQ(view.zones(1).cpus(), "8-15");
  EXPECT_EQ(view.zones(0).amounts(1).name(), "memory");
  constexpr int64_t kMemory = int64_t{32} << 30;
  EXPECT_THAT(Numbers(view.zones(0).amounts(1)), ElementsAre(kMemory, kMemory, kMemory));
}

// Rows N2 and N3.
TEST_F(SchedulerViewTest, NamesThePodsThatItContains) {
  Must(node_.Create("shares", QosClass::kBurstable, 500));
  EXPECT_THAT(PodsOf(ViewOf(node_)), IsEmpty()) << "its resources are not exclusive";
  EXPECT_EQ(PodFingerprint(PodsOf(ViewOf(node_))), "pfp0v001ef46db3751d8e999");
  // So the pod gets its CPUs in node 1.
  const auto full = Must(node_.Create("full", QosClass::kGuaranteed, 7000));
  const auto key = Must(node_.Create("pod0", QosClass::kGuaranteed, 3000));
  node_.Remove(full);
  node_.snapshot().PodOf(key).namespace_name = "default";
  const SchedulerView view = ViewOf(node_);
  EXPECT_THAT(PodsOf(view), ElementsAre(PodName{"default", "pod0"}));
  EXPECT_EQ(PodFingerprint(PodsOf(view)), "pfp0v00110399bf9eea6fbd3");
  EXPECT_EQ(view.zones(0).exclusive(), "");
  EXPECT_EQ(CpuSet::Parse(view.zones(1).exclusive()).value().size(), 3);
  EXPECT_THAT(CpuNumbers(view.zones(0)), ElementsAre(8, 7, 7));
  EXPECT_THAT(CpuNumbers(view.zones(1)), ElementsAre(8, 8, 5));
}

TEST_F(SchedulerViewTest, APodCountsUntilItsLastContainerIsRemoved) {
  const auto key = Must(node_.Create("pod0", QosClass::kGuaranteed, 3000));
  node_.snapshot().At(key).state = ContainerState::kExited;
  ASSERT_TRUE(node_.policy().Release(node_.snapshot(), key).ok());
  const SchedulerView view = ViewOf(node_);
  EXPECT_THAT(PodsOf(view), ElementsAre(PodName{"ns", "pod0"}))
      << "its phase is Succeeded or Failed";
  EXPECT_THAT(CpuNumbers(view.zones(1)), ElementsAre(8, 8, 8)) << "and its CPUs are free";
}

// The phase of a pod is Pending while its init containers run.
TEST_F(SchedulerViewTest, APodThatRunsItsInitContainersDoesNotCount) {
  const auto init = Must(node_.Create("setup", QosClass::kGuaranteed, 1000));
  node_.snapshot().PodOf(init).annotations.Set(
      "intel.com/resources", R"({"initContainers": {"setup": {}}, "containers": {"main": {}}})");
  EXPECT_THAT(PodsOf(ViewOf(node_)), IsEmpty());
  node_.Remove(init);
  Must(node_.Create("main", QosClass::kGuaranteed, 1000));
  EXPECT_THAT(PodsOf(ViewOf(node_)), ElementsAre(PodName{"ns", "main"}));
}

// Row N4: of seven free CPUs, the sibling of the reserved one cannot be granted.
TEST(SchedulerViewRowsTest, WholeCoresAlone) {
  test::PolicyNode node(StaticPolicyFactory(), ViewedMachine(2), "0",
                        "{Options: {full-pcpus-only: true}}");
  EXPECT_THAT(CpuNumbers(ViewOf(node).zones(0)), ElementsAre(8, 7, 6));
}

// Row N5: one CPU of node 0 stays for those that share, whatever their requests.
TEST(SchedulerViewRowsTest, LeavesWhatThePolicyLeavesToSharedContainers) {
  test::PolicyNode node(StaticPlusPolicyFactory(), ViewedMachine(), "", "");
  for (const char* const name : {"a", "b", "c", "d", "e"})
    ASSERT_TRUE(node.Create(name, QosClass::kBurstable, 500).ok());
  ASSERT_TRUE(node.Create("all", QosClass::kGuaranteed, 8000).ok());
  const SchedulerView view = ViewOf(node);
  EXPECT_THAT((std::vector<int64_t>{view.zones(0).amounts(0).available(),
                                    view.zones(1).amounts(0).available()}),
              testing::UnorderedElementsAre(0, 8 - 1));
}

// Row N6.
TEST(SchedulerViewRowsTest, KeepsTheNumbersOfNodesWithGaps) {
  test::PolicyNode node(StaticPolicyFactory(), ViewedMachine(1, 2), "0", "");
  const SchedulerView view = ViewOf(node);
  ASSERT_EQ(view.zones_size(), 2);
  EXPECT_EQ(view.zones(0).numa_id(), 0);
  EXPECT_EQ(view.zones(1).numa_id(), 2);
  EXPECT_THAT(view.zones(1).distances(), ElementsAre(21, 10));
}

TEST(SchedulerViewRowsTest, ZonesAreTheFirst64NodesWithCpus) {
  const Machine plain = test::MakeMachine({.packages = 66, .cores = 1});
  Machine::Parts parts{.cpus = plain.cpus(), .nodes = plain.nodes(), .allowed = plain.allowed()};
  // A node of memory alone comes first.
  for (Cpu& cpu : parts.cpus)
    ++cpu.numa;
  for (NumaNode& node : parts.nodes)
    node = {.id = node.id + 1};
  parts.nodes.insert(parts.nodes.begin(), NumaNode{.id = 0, .memory = Bytes{1 << 30}});
  test::PolicyNode node(StaticPolicyFactory(), test::MakeMachine(std::move(parts)), "0", "");
  const SchedulerView view = ViewOf(node);
  ASSERT_EQ(view.zones_size(), 64);
  EXPECT_EQ(view.zones(0).numa_id(), 1);
  EXPECT_EQ(view.zones(63).numa_id(), 64);
  EXPECT_EQ(view.zones(63).distances_size(), 64);
}

// Has pools, and grants nothing.
class PoolsPolicy : public Policy {
 public:
  std::vector<Zone> zones;

  std::string_view name() const override { return "pools"; }
  std::unique_ptr<Policy> Clone() const override { return std::make_unique<PoolsPolicy>(*this); }
  StatusOr<Plan> Reconcile(const Snapshot&) override { return Plan(); }
  StatusOr<Plan> Allocate(const Snapshot&, const Pod&, const Container&,
                          const Container*) override {
    return Plan();
  }
  StatusOr<Plan> Update(const Snapshot&, const Pod&, const Container&) override { return Plan(); }
  StatusOr<Plan> Release(const Snapshot&, ContainerKey) override { return Plan(); }
  std::vector<Zone> Zones(const Snapshot&) const override { return zones; }
};

TEST_F(SchedulerViewTest, PoolsAreTheFirst256WithCpusOnceEach) {
  PoolsPolicy policy;
  policy.zones = {
      {.name = "empty"}, {.name = "twice", .cpus = {1}}, {.name = "twice", .cpus = {2}}};
  for (int pool = 0; pool < 300; ++pool)
    policy.zones.push_back({.name = "pool" + std::to_string(pool), .cpus = {3}});
  SchedulerView view;
  AddViewPools(policy, node_.snapshot(), view);
  ASSERT_EQ(view.pools_size(), 256);
  EXPECT_EQ(view.pools(0).name(), "twice");
  EXPECT_EQ(view.pools(0).cpus(), "1");
  EXPECT_EQ(view.pools(0).exclusive(), "");
  EXPECT_EQ(view.pools(255).name(), "pool254");
}

TEST(SchedulerViewRowsTest, RefusesOnlyWhereThePolicyDoes) {
  test::PolicyNode splits(StaticPolicyFactory(), ViewedMachine(), "0", "");
  EXPECT_FALSE(ViewOf(splits, true).refuses());
  test::PolicyNode aligns(StaticPolicyFactory(), ViewedMachine(), "0", "{Alignment: numa}");
  EXPECT_TRUE(ViewOf(aligns, true).refuses());
  EXPECT_FALSE(ViewOf(aligns, false).refuses()) << "as configured";
}

TEST_F(SchedulerViewTest, MemoryThatIsBoundIsNotAvailable) {
  const auto key = Must(node_.Create("a", QosClass::kGuaranteed, 1000));
  Container& container = node_.snapshot().At(key);
  container.requirements.memory_request = Bytes{int64_t{4} << 30};
  container.placement.mems = NodeSet{0};
  EXPECT_EQ(ViewOf(node_).zones(0).amounts(1).available(), int64_t{28} << 30);
  container.placement.mems = NodeSet{0, 1};
  EXPECT_EQ(ViewOf(node_).zones(0).amounts(1).available(), int64_t{30} << 30);
  EXPECT_EQ(ViewOf(node_).zones(1).amounts(1).available(), int64_t{30} << 30);
  container.placement.mems.reset();
  EXPECT_EQ(ViewOf(node_).zones(0).amounts(1).available(), int64_t{32} << 30);
}

TEST_F(SchedulerViewTest, RequestsOfAnySizeTakeAllThatThereIs) {
  for (const char* const name : {"a", "b"}) {
    const auto key = Must(node_.Create(name, QosClass::kGuaranteed, 1000));
    Container& container = node_.snapshot().At(key);
    container.requirements.memory_request = Bytes{std::numeric_limits<int64_t>::max()};
    container.placement.mems = NodeSet{0, 1};
  }
  const SchedulerView view = ViewOf(node_);
  for (const auto& zone : view.zones())
    EXPECT_EQ(zone.amounts(1).available(), 0);
}

TEST_F(SchedulerViewTest, HugePagesAreAResourceOfTheirOwn) {
  const Machine plain = ViewedMachine();
  Machine::Parts parts{.cpus = plain.cpus(), .nodes = plain.nodes(), .allowed = plain.allowed()};
  parts.nodes[0].huge_pages = {{.size = Bytes{1 << 21}, .count = 512},
                               {.size = Bytes{1 << 30}, .count = 0}};
  test::PolicyNode node(StaticPolicyFactory(), test::MakeMachine(std::move(parts)), "0", "");
  const auto key = Must(node.Create("a", QosClass::kGuaranteed, 1000));
  node.snapshot().At(key).requested.hugepage_limits["2MB"] = 64 << 20;
  node.snapshot().At(key).placement.mems = NodeSet{0};
  const SchedulerView view = ViewOf(node);
  ASSERT_EQ(view.zones(0).amounts_size(), 3);
  EXPECT_EQ(view.zones(0).amounts(1).capacity(), (int64_t{32} << 30) - (int64_t{1} << 30));
  EXPECT_EQ(view.zones(0).amounts(2).name(), "hugepages-2Mi");
  EXPECT_THAT(Numbers(view.zones(0).amounts(2)),
              ElementsAre(int64_t{1} << 30, int64_t{1} << 30, (1024 - 64) << 20));
  node.snapshot().At(key).placement.mems = NodeSet{0, 1};
  for (const uint64_t limit : {uint64_t{1} << 63, std::numeric_limits<uint64_t>::max()}) {
    node.snapshot().At(key).requested.hugepage_limits["2MB"] = limit;
    EXPECT_EQ(ViewOf(node).zones(0).amounts(2).available(), 0) << limit;
  }
  node.snapshot().PodOf(key).annotations.Set(
      "intel.com/resources",
      R"({"containers": {"a": {"limits": {"hugepages-2Mi": "9223372036854775807"}}}})");
  EXPECT_EQ(ViewOf(node).zones(0).amounts(2).available(), 0);
}

}  // namespace
}  // namespace resmgr
