// SPDX-License-Identifier: Apache-2.0
#include "pkg/schedview/scheduler_view.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "test/integration/brain/policy_node.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

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

// Capacity, allocatable and available CPUs of a zone.
std::vector<int64_t> CpuNumbers(const ViewZone& zone) {
  const ViewAmount& cpu = zone.amounts.at(0);
  EXPECT_EQ(cpu.name, "cpu");
  return {cpu.capacity, cpu.allocatable, cpu.available};
}

class SchedulerViewTest : public testing::Test {
 protected:
  test::PolicyNode node_{StaticPolicyFactory(), ViewedMachine(), "0", ""};
};

// Row N1 of the acceptance table.
TEST_F(SchedulerViewTest, ShowsAnIdleNode) {
  const SchedulerView view = ViewOf(node_);
  ASSERT_EQ(view.zones.size(), 2U);
  EXPECT_THAT(CpuNumbers(view.zones[0]), ElementsAre(8, 7, 7));
  EXPECT_THAT(CpuNumbers(view.zones[1]), ElementsAre(8, 8, 8));
  EXPECT_THAT(view.zones[0].distances, ElementsAre(10, 21));
  EXPECT_THAT(view.zones[1].distances, ElementsAre(21, 10));
  EXPECT_FALSE(view.refuses);
  EXPECT_THAT(view.pods, IsEmpty());
  EXPECT_EQ(view.zones[0].amounts.at(1), (ViewAmount{.name = "memory",
                                                     .capacity = int64_t{32} << 30,
                                                     .allocatable = int64_t{32} << 30,
                                                     .available = int64_t{32} << 30}));
}

// Rows N2 and N3.
TEST_F(SchedulerViewTest, NamesThePodsThatItContains) {
  const auto burstable = node_.Create("shares", QosClass::kBurstable, 500);
  ASSERT_TRUE(burstable.ok());
  EXPECT_THAT(ViewOf(node_).pods, IsEmpty()) << "its resources are not exclusive";
  const auto full = node_.Create("full", QosClass::kGuaranteed, 8000);
  ASSERT_TRUE(full.ok());
  node_.Remove(*full);
  const auto key = node_.Create("pod0", QosClass::kGuaranteed, 3000);
  ASSERT_TRUE(key.ok());
  node_.snapshot().PodOf(*key).namespace_name = "default";
  const SchedulerView view = ViewOf(node_);
  EXPECT_THAT(view.pods, ElementsAre(PodName{"default", "pod0"}));
  EXPECT_EQ(PodFingerprint(view.pods), "pfp0v00110399bf9eea6fbd3");
  const size_t zone = view.zones[0].exclusive.empty() ? 1 : 0;
  EXPECT_EQ(view.zones[zone].exclusive.size(), 3);
  EXPECT_EQ(view.zones[zone].amounts[0].available, view.zones[zone].amounts[0].allocatable - 3);
}

TEST_F(SchedulerViewTest, APodCountsUntilItsLastContainerIsRemoved) {
  const auto key = node_.Create("pod0", QosClass::kGuaranteed, 3000);
  ASSERT_TRUE(key.ok());
  node_.snapshot().At(*key).state = ContainerState::kExited;
  ASSERT_TRUE(node_.policy().Release(node_.snapshot(), *key).ok());
  const SchedulerView view = ViewOf(node_);
  EXPECT_THAT(view.pods, ElementsAre(PodName{"ns", "pod0"})) << "its phase is Succeeded or Failed";
  EXPECT_THAT(CpuNumbers(view.zones[1]), ElementsAre(8, 8, 8)) << "and its CPUs are free";
}

// Row N4: of seven free CPUs, the sibling of the reserved one cannot be granted.
TEST(SchedulerViewRowsTest, WholeCoresAlone) {
  test::PolicyNode node(StaticPolicyFactory(), ViewedMachine(2), "0",
                        "{Options: {full-pcpus-only: true}}");
  EXPECT_THAT(CpuNumbers(ViewOf(node).zones[0]), ElementsAre(8, 7, 6));
}

// Row N5: one CPU of node 0 stays for those that share, whatever their requests.
TEST(SchedulerViewRowsTest, LeavesWhatThePolicyLeavesToSharedContainers) {
  test::PolicyNode node(StaticPlusPolicyFactory(), ViewedMachine(), "", "");
  ASSERT_TRUE(node.Create("shares", QosClass::kBurstable, 2500).ok());
  ASSERT_TRUE(node.Create("all", QosClass::kGuaranteed, 8000).ok());
  const SchedulerView view = ViewOf(node);
  const int64_t first = view.zones[0].amounts[0].available;
  const int64_t second = view.zones[1].amounts[0].available;
  // The fraction's container has two CPUs of its own, since it asks for 2500m.
  const int64_t free = 16 - 8 - 2;
  EXPECT_EQ(first + second, free - 1);
}

// Row N6.
TEST(SchedulerViewRowsTest, KeepsTheNumbersOfNodesWithGaps) {
  test::PolicyNode node(StaticPolicyFactory(), ViewedMachine(1, 2), "0", "");
  const SchedulerView view = ViewOf(node);
  ASSERT_EQ(view.zones.size(), 2U);
  EXPECT_EQ(view.zones[0].numa_id, 0);
  EXPECT_EQ(view.zones[1].numa_id, 2);
  EXPECT_THAT(view.zones[1].distances, ElementsAre(21, 10));
}

TEST(SchedulerViewRowsTest, RefusesOnlyWhereThePolicyDoes) {
  test::PolicyNode splits(StaticPolicyFactory(), ViewedMachine(), "0", "");
  EXPECT_FALSE(ViewOf(splits, true).refuses);
  test::PolicyNode aligns(StaticPolicyFactory(), ViewedMachine(), "0", "{Alignment: numa}");
  EXPECT_TRUE(ViewOf(aligns, true).refuses);
  EXPECT_FALSE(ViewOf(aligns, false).refuses) << "as configured";
}

TEST_F(SchedulerViewTest, MemoryThatIsBoundIsNotAvailable) {
  const auto key = node_.Create("a", QosClass::kGuaranteed, 1000);
  ASSERT_TRUE(key.ok());
  Container& container = node_.snapshot().At(*key);
  container.requirements.memory_request = Bytes{int64_t{4} << 30};
  container.placement.mems = NodeSet{0};
  EXPECT_EQ(ViewOf(node_).zones[0].amounts[1].available, int64_t{28} << 30);
  container.placement.mems = NodeSet{0, 1};
  EXPECT_EQ(ViewOf(node_).zones[0].amounts[1].available, int64_t{30} << 30);
  EXPECT_EQ(ViewOf(node_).zones[1].amounts[1].available, int64_t{30} << 30);
  container.placement.mems.reset();
  EXPECT_EQ(ViewOf(node_).zones[0].amounts[1].available, int64_t{32} << 30);
}

TEST_F(SchedulerViewTest, HugePagesAreAResourceOfTheirOwn) {
  const Machine plain = ViewedMachine();
  Machine::Parts parts{.cpus = plain.cpus(), .nodes = plain.nodes(), .allowed = plain.allowed()};
  parts.nodes[0].huge_pages = {{.size = Bytes{1 << 21}, .count = 512},
                               {.size = Bytes{1 << 30}, .count = 0}};
  test::PolicyNode node(StaticPolicyFactory(), test::MakeMachine(std::move(parts)), "0", "");
  const auto key = node.Create("a", QosClass::kGuaranteed, 1000);
  ASSERT_TRUE(key.ok());
  node.snapshot().At(*key).requested.hugepage_limits["2MB"] = 64 << 20;
  node.snapshot().At(*key).placement.mems = NodeSet{0};
  const SchedulerView view = ViewOf(node);
  ASSERT_EQ(view.zones[0].amounts.size(), 3U);
  EXPECT_EQ(view.zones[0].amounts[1].capacity, (int64_t{32} << 30) - (int64_t{1} << 30));
  EXPECT_EQ(view.zones[0].amounts[2], (ViewAmount{.name = "hugepages-2Mi",
                                                  .capacity = int64_t{1} << 30,
                                                  .allocatable = int64_t{1} << 30,
                                                  .available = (1024 - 64) << 20}));
}

TEST_F(SchedulerViewTest, TheSequenceIsNoContent) {
  SchedulerView first = ViewOf(node_);
  SchedulerView second = first;
  second.sequence = 7;
  EXPECT_TRUE(first.SameContent(second));
  second.zones[1].amounts[0].available = 3;
  EXPECT_FALSE(first.SameContent(second));
}

}  // namespace
}  // namespace resmgr
