// SPDX-License-Identifier: Apache-2.0
// How the memory of a machine decides between pools.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/topology-aware/testing/topology_node.h"

namespace resmgr {
namespace {

using testing::HasSubstr;
using testing::Not;
using enum QosClass;

// Two packages of eight CPUs with so many GiB.
Machine TwoPackages(const std::vector<int>& gibibytes) {
  Machine::Parts parts = test::PartsOf(test::MakeMachine({.packages = 2, .cores = 8}));
  for (size_t i = 0; i < parts.nodes.size(); ++i)
    parts.nodes[i].memory = Bytes{int64_t{gibibytes[i]} << 30};
  return test::MakeMachine(std::move(parts));
}

class MemoryNode : public test::TopologyNode {
 public:
  explicit MemoryNode(Machine machine) : TopologyNode(std::move(machine), "") {}

  // Runs a container; returns its pool and its memory nodes.
  std::string Run(QosClass qos, int64_t milli_cpu, int64_t memory_limit,
                  std::string_view memory_type = "") {
    Container& container = snapshot().Add("c", qos, milli_cpu);
    container.requirements.cpu_limit = MilliCpu{qos == kGuaranteed ? milli_cpu : 0};
    container.requirements.memory_request = Bytes{int64_t{1} << 30};
    container.requirements.memory_limit = Bytes{memory_limit << 30};
    if (!memory_type.empty()) Annotate(container.key, "memory-type", memory_type);
    const Status placed = Place(container.key).status();
    EXPECT_TRUE(placed.ok()) << placed;
    if (!placed.ok()) return "";
    const Placement& placement = container.placement;
    return placement.pool + ": " + placement.mems.value_or(NodeSet()).ToString();
  }
};

TEST(MemoryRulesTest, APackageWithMemoryComesBeforeOneWithout) {
  MemoryNode node(TwoPackages({0, 64}));
  EXPECT_EQ(node.Run(kGuaranteed, 4000, 1), "socket #1: 1");
  EXPECT_EQ(node.Run(kBurstable, 1000, 1), "socket #1: 1");
  EXPECT_EQ(node.Run(kGuaranteed, 3000, 1), "socket #1: 1");
  EXPECT_EQ(node.Run(kGuaranteed, 4000, 1), "root: 1") << "there is no more room";
}

TEST(MemoryRulesTest, CachesOfANodeWithMemoryComeBeforeThoseOfOneWithout) {
  const Machine machine = test::MakeMachine({.packages = 2, .l3s = 2, .cores = 4});
  Machine::Parts parts = test::PartsOf(machine);
  parts.nodes[0].memory = Bytes{0};
  MemoryNode node(test::MakeMachine(std::move(parts)));
  EXPECT_EQ(node.Run(kGuaranteed, 2000, 1), "L3 cache #2: 1");
  EXPECT_EQ(node.Run(kGuaranteed, 1000, 1), "L3 cache #3: 1");
}

TEST(MemoryRulesTest, ALargerLimitGetsNoLessMemory) {
  int fewest = 0;
  for (const int64_t limit : {1, 14, 16, 20, 40, 1000}) {
    MemoryNode node(TwoPackages({15, 15}));
    const bool both = node.Run(kBurstable, 1000, limit).ends_with("0-1");
    EXPECT_GE(both ? 2 : 1, fewest) << limit;
    fewest = both ? 2 : 1;
  }
  EXPECT_EQ(fewest, 2);
  MemoryNode uneven(TwoPackages({32, 16}));
  EXPECT_EQ(uneven.Run(kGuaranteed, 5000, 1), "socket #0: 0");
  EXPECT_EQ(uneven.Run(kBurstable, 1000, 20), "socket #0: 0") << "more is left there";
}

// Node 3 lies beside node 0, though its number and missing distances would give it to node 1.
TEST(MemoryRulesTest, AMemoryOnlyNodeIsOfThePackageThatItLiesIn) {
  Machine::Parts parts = test::PartsOf(test::MakeMachine({.packages = 2, .cores = 4}).cpus());
  for (NumaNode& node : parts.nodes)
    node.memory = Bytes{int64_t{8} << 30};
  for (const int id : {2, 3}) {
    NumaNode node{.id = id, .memory = Bytes{int64_t{4} << 30}, .type = MemoryType::kHbm};
    node.near = test::Cpus(id == 2 ? "4-7" : "0-3");
    parts.nodes.push_back(std::move(node));
  }
  const Machine machine = test::MakeMachine(std::move(parts));
  const PoolTree tree(machine, machine.online(), {});
  EXPECT_EQ(tree.OwnerOf(3), tree.Find("socket #0"));
  EXPECT_EQ(tree.OwnerOf(2), tree.Find("socket #1"));
  MemoryNode node(machine);
  EXPECT_EQ(node.Run(kGuaranteed, 2000, 1, "hbm"), "socket #0: 3");
}

// The package's own nodes have no memory.
TEST(MemoryRulesTest, AMemoryOnlyNodeWithoutAnOrdinaryOneBesideItIsOfItsCpusAllTheSame) {
  Machine::Parts parts = test::PartsOf(test::MakeMachine({.packages = 2, .cores = 2}).cpus());
  for (int id = 0; id < 2; ++id) {
    NumaNode node{.id = 2 + id, .memory = Bytes{int64_t{1} << 30}, .type = MemoryType::kHbm};
    node.near = test::Cpus(id == 0 ? "2-3" : "0-1");
    parts.nodes[IndexOf(id)].memory = Bytes{0};
    parts.nodes.push_back(std::move(node));
  }
  const Machine machine = test::MakeMachine(std::move(parts));
  const PoolTree tree(machine, machine.online(), {});
  EXPECT_EQ(tree.OwnerOf(2), tree.Find("socket #1"));
  EXPECT_EQ(tree.OwnerOf(3), tree.Find("socket #0"));
}

// The placement of containers with huge pages.

// Two packages of 16 GiB each: the first has ten huge pages of 1 GiB, the second six.
class HugePagesTest : public testing::Test, protected test::TopologyNode {
 protected:
  static constexpr int64_t kGiB = int64_t{1} << 30;

  HugePagesTest() : TopologyNode(MachineWithPages()) {}

  static Machine MachineWithPages() {
    Machine::Parts parts = test::PartsOf(test::MakeMachine({.packages = 2, .cores = 8}));
    for (NumaNode& node : parts.nodes) {
      node.memory = Bytes{16 * kGiB};
      node.huge_pages = {{Bytes{kGiB}, node.id == 0 ? 10 : 6}};
    }
    return test::MakeMachine(std::move(parts));
  }

  // A new daemon, which knows only the snapshot.
  Plan Restart() {
    RestartPolicy();
    return Reconcile();
  }
  ContainerKey Add(std::string_view name, uint64_t gibibytes, int64_t memory = kGiB,
                   const char* page = "1GB") {
    Container& container = snapshot().Add(name, QosClass::kGuaranteed, 1000);
    container.state = ContainerState::kRunning;
    container.requirements.memory_request = container.requirements.memory_limit = Bytes{memory};
    // Kubelets name every size of the node.
    container.requested.hugepage_limits = {{"2MB", 0}};
    container.requested.hugepage_limits[page] = gibibytes * kGiB;
    return container.key;
  }
  // The memory nodes that the container gets.
  std::string Place(ContainerKey key) {
    const Status placed = TopologyNode::Place(key).status();
    return placed.ok() ? Mems(key) : std::string(Message(placed));
  }
  std::string Run(std::string_view name, uint64_t gibibytes) { return Place(Add(name, gibibytes)); }
  std::string Mems(ContainerKey key) {
    return PlacementOf(key).mems.value_or(NodeSet()).ToString();
  }
  const std::string& Reason(ContainerKey key) { return PlacementOf(key).reason; }
};

TEST_F(HugePagesTest, TheyAreNoOrdinaryMemory) {
  EXPECT_EQ(policy().Zones(snapshot()).front().memory_capacity, Bytes{16 * kGiB});
  EXPECT_EQ(Place(Add("a", 0, 7 * kGiB)), "1");
  EXPECT_EQ(Place(Add("b", 0, 6 * kGiB)), "0");
  EXPECT_THAT(Place(Add("c", 0, 4 * kGiB)), HasSubstr("needs 4 GiB of memory, but only 3 of 16"));
}

TEST_F(HugePagesTest, ContainersGoWhereTheyAre) {
  EXPECT_EQ(Run("a", 8), "0");
  EXPECT_EQ(Run("b", 5), "1");
  EXPECT_EQ(Run("c", 2), "0");
  EXPECT_EQ(Run("d", 1), "1");
}

TEST_F(HugePagesTest, ReleasedOnesAreFreeAgain) {
  const ContainerKey first = Add("a", 8);
  EXPECT_EQ(Place(first), "0");
  EXPECT_EQ(Run("b", 6), "1");
  Remove(first);
  EXPECT_EQ(Run("c", 10), "0");
}

TEST_F(HugePagesTest, NobodyIsRefusedForThem) {
  EXPECT_EQ(Run("a", 8), "0");
  EXPECT_EQ(Run("b", 6), "1");
  const ContainerKey late = Add("c", 3);
  EXPECT_EQ(Place(late), "0-1");
  EXPECT_THAT(Reason(late), HasSubstr("huge pages do not count"));
  // Huge pages that do not count take nothing from other containers.
  EXPECT_EQ(Run("d", 2), "0");
  const ContainerKey unknown = Add("e", 1, kGiB, "16GB");
  EXPECT_EQ(Place(unknown), "0-1");
  EXPECT_THAT(Reason(unknown), HasSubstr("huge pages do not count"));
}

TEST_F(HugePagesTest, ThoseThatNoNodeHasAloneComeFromSeveral) {
  const ContainerKey wide = Add("a", 12);
  EXPECT_EQ(Place(wide), "0-1");
  EXPECT_THAT(Reason(wide), Not(HasSubstr("do not count")));
}

TEST_F(HugePagesTest, ARestartCountsThemAndMovesNobody) {
  EXPECT_EQ(Run("a", 8), "0");
  EXPECT_EQ(Run("b", 6), "1");
  const ContainerKey late = Add("c", 3);
  EXPECT_EQ(Place(late), "0-1");
  EXPECT_TRUE(Restart().empty());
  EXPECT_EQ(Mems(late), "0-1");
  EXPECT_EQ(Run("d", 3), "0-1");
  EXPECT_EQ(Run("e", 2), "0");
}

TEST_F(HugePagesTest, ARebalanceLeavesThemTheirNodes) {
  const ContainerKey full = Add("a", 10);
  EXPECT_EQ(Place(full), "0");
  const ContainerKey late = Add("b", 7);
  EXPECT_EQ(Place(late), "0-1");
  EXPECT_TRUE(Rebalance().empty());
}

// Another policy, which binds no memory, was active before.
TEST_F(HugePagesTest, AContainerThatIsTakenOverGetsNodesThatHaveThem) {
  const ContainerKey key = Add("a", 8);
  snapshot().At(key).placement.cpus = test::Cpus("9");
  Restart();
  EXPECT_TRUE(NodeSet{0}.IsSubsetOf(*snapshot().At(key).placement.mems)) << Mems(key);
}

TEST_F(HugePagesTest, BesideThemThereIsNoColdStart) {
  const ContainerKey key = Add("a", 1);
  Annotate(key, "cold-start", "duration: 60s");
  Place(key);
  EXPECT_THAT(Reason(key), HasSubstr("no cold start: it asks for huge pages"));
}

}  // namespace
}  // namespace resmgr
