// SPDX-License-Identifier: Apache-2.0
// Resizes in place, and updates that ask for nothing new.
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/topology-aware/testing/topology_node.h"

namespace resmgr {
namespace {

using testing::HasSubstr;
using enum QosClass;

// NUMA nodes 0-7 and 8-15 of 16 GiB; CPU 0 is reserved.
class ResizeTest : public testing::Test, protected test::TopologyNode {
 protected:
  static constexpr int64_t kGibi = int64_t{1} << 30;

  ResizeTest() : TopologyNode(test::U16TwoNodes()) {}

  ContainerKey Add(std::string_view name, QosClass qos, int64_t milli_cpu, int64_t memory = 0) {
    Container& container = snapshot().Add(name, qos, milli_cpu);
    container.requirements.memory_request.value = memory;
    container.state = ContainerState::kRunning;
    return container.key;
  }
  ContainerKey Run(std::string_view name, QosClass qos, int64_t milli_cpu, int64_t memory = 0) {
    const ContainerKey key = Add(name, qos, milli_cpu, memory);
    EXPECT_TRUE(Place(key).ok());
    return key;
  }
  ContainerKey RunSystem(std::string_view name, int64_t milli_cpu, int64_t memory = 0) {
    const ContainerKey key = Add(name, kBurstable, milli_cpu, memory);
    snapshot().PodOf(key).namespace_name = "kube-system";
    EXPECT_TRUE(Place(key).ok());
    return key;
  }
  std::string MemsOf(ContainerKey key) {
    return PlacementOf(key).mems.value_or(NodeSet()).ToString();
  }
};

TEST_F(ResizeTest, AContainerThatMovedUpWithoutItsMemoryKeepsThat) {
  const ContainerKey own = Run("own", kGuaranteed, 7000, kGibi);
  ASSERT_EQ(MemsOf(own), "1");
  const ContainerKey sharer = Run("sharer", kGuaranteed, 500, kGibi);
  ASSERT_EQ(MemsOf(sharer), "0");
  Run("other", kGuaranteed, 7000);
  ASSERT_EQ(PlacementOf(sharer).pool, "socket #0");
  ASSERT_EQ(MemsOf(sharer), "0");
  ASSERT_TRUE(Resize(sharer, 400).ok());
  EXPECT_EQ(MemsOf(sharer), "0");
  snapshot().At(sharer).requirements.memory_request.value = 20 * kGibi;
  ASSERT_TRUE(Update(sharer).ok());
  EXPECT_EQ(MemsOf(sharer), "0-1") << "it does not fit in one";
}

TEST_F(ResizeTest, AContainerThatAsksForNoMoreStaysInAnOverfullPool) {
  std::vector<ContainerKey> found;
  for (const char* const name : {"a", "b"}) {
    const ContainerKey key = Add(name, kBurstable, 6000, kGibi);
    snapshot().At(key).placement.cpus = test::Cpus("8-15");
    snapshot().At(key).placement.mems = NodeSet{1};
    found.push_back(key);
  }
  Reconcile();
  for (const int64_t request : {6000, 5000}) {
    ASSERT_TRUE(Resize(found[0], request).ok());
    EXPECT_EQ(PlacementOf(found[0]).pool, "NUMA node #1") << request;
    EXPECT_EQ(MemsOf(found[0]), "1") << request;
  }
  ASSERT_TRUE(Resize(found[0], 5500).ok());
  EXPECT_EQ(PlacementOf(found[0]).pool, "socket #0") << "more than before";
}

TEST_F(ResizeTest, ASystemContainerThatAsksForNoMoreStaysOnReservedCpus) {
  std::vector<ContainerKey> found;
  for (const char* const name : {"a", "b"}) {
    const ContainerKey key = Add(name, kBurstable, 800);
    snapshot().PodOf(key).namespace_name = "kube-system";
    snapshot().At(key).placement.cpus = test::Cpus("0");
    found.push_back(key);
  }
  Reconcile();
  ASSERT_TRUE(Resize(found[0], 700).ok());
  EXPECT_EQ(PlacementOf(found[0]).pool, "reserved");
  ASSERT_TRUE(Resize(found[0], 900).ok());
  EXPECT_EQ(PlacementOf(found[0]).pool, "socket #0");
}

TEST_F(ResizeTest, IsNotRefusedForMemoryThatTheContainerHas) {
  const ContainerKey sharer = Run("sharer", kBurstable, 1000, 20 * kGibi);
  const ContainerKey own = Run("own", kGuaranteed, 2000, 6 * kGibi);
  RunSystem("system", 100, 20 * kGibi);
  EXPECT_TRUE(Resize(sharer, 500).ok());
  EXPECT_TRUE(Resize(own, 3000).ok());
  EXPECT_TRUE(Resize(own, 2500).ok());
  snapshot().At(sharer).requirements.memory_request.value = 19 * kGibi;
  EXPECT_TRUE(Update(sharer).ok()) << "less";
  snapshot().At(sharer).requirements.memory_request.value = 21 * kGibi;
  EXPECT_THAT(std::string(Message(Update(sharer))), HasSubstr("needs 21 GiB of memory"));
}

// There are none on this machine.
TEST_F(ResizeTest, AReasonTellsOnceThatHugePagesDoNotCount) {
  RunSystem("system", 1000);
  const ContainerKey key = Add("more", kBurstable, 500);
  snapshot().PodOf(key).namespace_name = "kube-system";
  snapshot().At(key).requested.hugepage_limits["2MB"] = uint64_t{64} << 20;
  ASSERT_TRUE(Place(key).ok());
  const std::string& reason = PlacementOf(key).reason;
  const size_t first = reason.find("huge pages do not count");
  ASSERT_NE(first, std::string::npos) << reason;
  EXPECT_EQ(reason.find("huge pages do not count", first + 1), std::string::npos) << reason;
}

}  // namespace
}  // namespace resmgr
