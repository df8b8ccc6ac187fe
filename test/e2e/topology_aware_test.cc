// SPDX-License-Identifier: Apache-2.0
// Real containers under the policy topology-aware: CPUs and memory nodes in cgroupfs, compared with
// the output of cri-resmgr-ctl and with the machine.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/node_fixture.h"

namespace resmgr::test {
namespace {

using Json = nlohmann::json;

class TopologyAwareTest : public NodeTest {
 protected:
  // No CPU is reserved, so that a machine of two has one to grant and one to share.
  void SetUp() override { Open({.policy = "topology-aware", .reserved = ""}); }

  // The entry with this value; null when there is none.
  static Json Find(const Json& list, const char* key, const std::string& value) {
    for (const Json& entry : list) {
      if (entry.value(key, "") == value) return entry;
    }
    return nullptr;
  }
  static CpuSet Set(const Json& entry, const char* key) {
    return CpuSet::Parse(entry.at(key).get<std::string>()).value_or(CpuSet());
  }

  // Expects the container on the CPUs and in the pool that the daemon reports, with the pool's
  // memory. Returns its exclusive CPUs.
  CpuSet ExpectInItsPool(const RunningPod& pod) {
    const Json container = Find(Ctl({"containers"}), "id", pod.container_id);
    EXPECT_TRUE(container.is_object()) << pod.workload.name;
    if (!container.is_object()) return {};
    const Json pool = Find(Ctl({"pools"}), "name", container.at("pool"));
    EXPECT_TRUE(pool.is_object()) << container.at("pool");
    if (!pool.is_object()) return {};
    CpuSet own = Set(container, "exclusive");
    EXPECT_EQ(CpusOf(pod), container.at("cpus"));
    EXPECT_EQ(MemsOf(pod), container.at("mems"));
    EXPECT_EQ(MemsOf(pod), pool.at("mems"));
    EXPECT_TRUE(CpuSetOf(pod).IsSubsetOf(Set(pool, "cpus")));
    EXPECT_TRUE(own.IsSubsetOf(Set(pool, "exclusive")));
    const CpuSet shared = CpuSetOf(pod) - own;
    EXPECT_TRUE(shared.empty() || shared == Set(pool, "shared")) << pool;
    ExpectMemoryBesideCpus(pod, own);
    return own;
  }
  // The node of each of these CPUs, where it has memory, is among the container's.
  void ExpectMemoryBesideCpus(const RunningPod& pod, const CpuSet& own) {
    const StatusOr<NodeSet> mems = NodeSet::Parse(MemsOf(pod));
    ASSERT_TRUE(mems.ok()) << MemsOf(pod);
    for (const NumaNode& numa : TheMachine().nodes()) {
      if (numa.memory.value == 0 || !numa.cpus.Intersects(own)) continue;
      EXPECT_TRUE(mems->Contains(numa.id)) << pod.workload.name << " without node " << numa.id;
    }
  }
};

TEST_F(TopologyAwareTest, ASharedContainerAloneHasTheWholeSharedSet) {
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  EXPECT_TRUE(ExpectInItsPool(shared).empty());
  const Json pools = Ctl({"pools"});
  EXPECT_EQ(Set(Find(pools, "parent", ""), "cpus"), All());
  EXPECT_TRUE(pools.size() > 1 || CpuSetOf(shared) == All()) << CpusOf(shared);
}

TEST_F(TopologyAwareTest, AnExclusiveContainerIsAlone) {
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const CpuSet own = ExpectInItsPool(exclusive);
  EXPECT_EQ(own.size(), 1);
  EXPECT_EQ(CpuSetOf(exclusive), own);
  EXPECT_TRUE(HasQuota(exclusive, -1));
  EXPECT_TRUE(ExpectInItsPool(shared).empty());
  EXPECT_FALSE(CpuSetOf(shared).Intersects(own));
  const bool one_pool = Ctl({"pools"}).size() == 1;
  EXPECT_TRUE(!one_pool || CpuSetOf(shared) == All() - own) << CpusOf(shared);

  Remove(exclusive);
  const CpuSet whole = Set(Find(Ctl({"containers"}), "id", shared.container_id), "cpus");
  ExpectOn(shared, whole);
  EXPECT_TRUE(!one_pool || whole == All()) << whole.ToString();
}

TEST_F(TopologyAwareTest, AMixedContainerHasCpusOfItsOwnAndThoseThatItsPoolShares) {
  const RunningPod shared = Run(BestEffort("shared"));
  const RunningPod mixed = Run(Sized("mixed", {1500}));
  const CpuSet own = ExpectInItsPool(mixed);
  EXPECT_EQ(own.size(), 1);
  EXPECT_GT(CpuSetOf(mixed).size(), 1);
  EXPECT_TRUE(HasShares(mixed, 512)) << "for its fraction alone";
  EXPECT_TRUE(HasQuota(mixed, 150000));
  EXPECT_TRUE(ExpectInItsPool(shared).empty());
  EXPECT_FALSE(CpuSetOf(shared).Intersects(own));
}

TEST_F(TopologyAwareTest, AResizeGivesASharedContainerCpusOfItsOwnAndTakesThemBack) {
  const RunningPod neighbour = Run(Burstable("neighbour", MilliCpu{100}));
  RunningPod pod = Run(Sized("pod", {500}));
  EXPECT_TRUE(ExpectInItsPool(pod).empty());
  for (int round = 0; round < 2; ++round) {
    Resize(Guaranteed("pod", 1), &pod);
    const Status alone = WaitUntil("it is alone", std::chrono::seconds(10), [&] {
      return CpuSetOf(pod).size() == 1 && !CpuSetOf(neighbour).Intersects(CpuSetOf(pod));
    });
    ASSERT_TRUE(alone.ok()) << CpusOf(pod) << " beside " << CpusOf(neighbour);
    EXPECT_EQ(ExpectInItsPool(pod), CpuSetOf(pod));
    EXPECT_TRUE(HasQuota(pod, -1));
    EXPECT_TRUE(HasShares(pod, 1024));
    node().Watch(pod);

    Resize(Sized("pod", {500}), &pod);
    const CpuSet whole = Set(Find(Ctl({"containers"}), "id", neighbour.container_id), "cpus");
    ExpectOn(neighbour, whole);
    EXPECT_TRUE(ExpectInItsPool(pod).empty());
    EXPECT_TRUE(HasQuota(pod, 50000));
    EXPECT_TRUE(HasShares(pod, 512));
  }
}

TEST_F(TopologyAwareTest, AResizeKeepsTheCpusThatItMayKeep) {
  const RunningPod neighbour = Run(BestEffort("neighbour"));
  RunningPod pod = Run(Guaranteed("pod", 1));
  const CpuSet own = ExpectInItsPool(pod);
  // Shares are for the fraction alone.
  for (const int64_t fraction : {500, 250}) {
    Resize(Sized("pod", {1000 + fraction}), &pod);
    EXPECT_EQ(ExpectInItsPool(pod), own);
    EXPECT_GT(CpuSetOf(pod).size(), 1) << "those that its pool shares";
    EXPECT_TRUE(HasShares(pod, fraction * 1024 / 1000));
    EXPECT_TRUE(HasQuota(pod, 100 * (1000 + fraction)));
  }
  Resize(Guaranteed("pod", 1), &pod);
  EXPECT_EQ(ExpectInItsPool(pod), own);
  EXPECT_EQ(CpuSetOf(pod), own);
  EXPECT_TRUE(HasQuota(pod, -1));
  EXPECT_FALSE(CpuSetOf(neighbour).Intersects(own));
  node().Watch(pod);

  const auto places = PlacesOf(pod, neighbour);
  const Status refused = node().Resize(Guaranteed("pod", All().size()), &pod);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << "one CPU stays shared";
  node().Watch(pod);
  EXPECT_EQ(PlacesOf(pod, neighbour), places);
  EXPECT_EQ(ExpectInItsPool(pod), own);
}

TEST_F(TopologyAwareTest, AnExclusiveContainerGrowsAndKeepsItsCpus) {
  if (All().size() < 3) GTEST_SKIP() << "one CPU stays shared, so it takes three to grow";
  const RunningPod neighbour = Run(BestEffort("neighbour"));
  RunningPod pod = Run(Guaranteed("pod", 1));
  const CpuSet own = ExpectInItsPool(pod);
  Resize(Guaranteed("pod", 2), &pod);
  const Status grown = WaitUntil("it has grown", std::chrono::seconds(10), [&] {
    return CpuSetOf(pod).size() == 2 && !CpuSetOf(neighbour).Intersects(CpuSetOf(pod));
  });
  ASSERT_TRUE(grown.ok()) << CpusOf(pod) << " beside " << CpusOf(neighbour);
  EXPECT_TRUE(own.IsSubsetOf(CpuSetOf(pod))) << own.ToString() << " to " << CpusOf(pod);
  EXPECT_EQ(ExpectInItsPool(pod), CpuSetOf(pod));
  node().Watch(pod);
}

TEST_F(TopologyAwareTest, WhatFitsNowhereIsRefusedAndChangesNothing) {
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  const auto places = PlacesOf(shared);
  const size_t updates = containerd().Updates();
  const Workload greedy = Guaranteed("greedy", All().size());
  const auto refused = node().Run(greedy);
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument) << "one CPU stays shared";
  EXPECT_THAT(std::string(Message(refused.status())), ::testing::HasSubstr("greedy/greedy"));
  EXPECT_EQ(PlacesOf(shared), places);
  EXPECT_EQ(containerd().Updates(), updates);
}

}  // namespace
}  // namespace resmgr::test
