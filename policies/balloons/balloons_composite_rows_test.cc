// SPDX-License-Identifier: Apache-2.0
// Rows of composite balloons, named as in balloons_rows_test.cc.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/balloons/testing/balloons_node.h"
#include "policies/balloons/testing/row_configs.h"

namespace resmgr {
namespace {

using test::Apart;
using test::BalloonsNode;
using test::Cpus;

constexpr std::string_view kNodes = R"(
balloonTypes:
- {name: node0, preferCloseToDevices: [/sys/devices/system/node/node0]}
- {name: node1, preferCloseToDevices: [/sys/devices/system/node/node1]}
- {name: node2, preferCloseToDevices: [/sys/devices/system/node/node2]}
- {name: node3, preferCloseToDevices: [/sys/devices/system/node/node3]}
- name: all
  minCPUs: 4
  components: [{balloonType: node0}, {balloonType: node1}, {balloonType: node2}, {balloonType: node3}]
- name: one-of
  preferNewBalloons: true
  componentCreation: balance-balloons
  components: [{balloonType: node2}, {balloonType: node3}, {balloonType: node0}, {balloonType: node1}]
)";

TEST(BalloonsRowsTest, Test16CompositeBalloons) {
  BalloonsNode node(kNodes);
  const ContainerKey a = *node.Run("a", {.request = 500, .type = "all"});
  const ContainerKey b = *node.CreateIn(a, "b", 500);
  const auto each = [&](int count) {
    for (const NumaNode& its : node.machine().nodes())
      EXPECT_EQ(node.SetOf(a).CountCommon(its.cpus), count) << its.id;
  };
  EXPECT_EQ(node.SetOf(a), node.SetOf(b));
  each(1);
  const ContainerKey nine = *node.CreateIn(a, "nine", 9000);
  each(3);
  node.Remove(nine);
  each(1);
  EXPECT_TRUE(node.Reconcile().empty()) << "it is found again";
}

TEST(BalloonsRowsTest, Test16TheComponentWithTheFewestInstances) {
  BalloonsNode node(kNodes);
  std::vector<ContainerKey> keys;
  for (const int expected : {2, 3, 0, 1}) {
    keys.push_back(*node.Run("c" + std::to_string(expected), {.request = 1000, .type = "one-of"}));
    EXPECT_EQ(node.machine().NodesOf(node.SetOf(keys.back())), NodeSet{expected});
  }
  node.Remove(keys[1]);
  EXPECT_EQ(node.machine().NodesOf(node.SetOf(*node.Run("n", {.request = 1000, .type = "one-of"}))),
            NodeSet{3});
}

TEST(BalloonsRowsTest, Test16ReservedIsAComposite) {
  BalloonsNode node(R"(
reservedResources: {cpu: "2"}
balloonTypes:
- {name: near6, preferCloseToDevices: [/sys/devices/system/cpu/cpu6/cache/index0]}
- {name: reserved, components: [{balloonType: near6}]}
)");
  EXPECT_TRUE(node.SetOf(*node.Run("k", {.namespace_name = "kube-system", .request = 100}))
                  .IsSubsetOf(Cpus("6-7")));
}

TEST(BalloonsRowsTest, Test16TwoNodesOfAPackage) {
  BalloonsNode node(R"(
balloonTypes:
- {name: node2, preferCloseToDevices: [/sys/devices/system/node/node2]}
- {name: node3, preferCloseToDevices: [/sys/devices/system/node/node3]}
- {name: pkg1, preferNewBalloons: true, components: [{balloonType: node2}, {balloonType: node3}]}
)");
  const auto on = [&](ContainerKey key, int id) {
    return node.SetOf(key).CountCommon(node.machine().FindNode(id)->cpus);
  };
  const ContainerKey one = *node.Run("one", {.request = 1000, .type = "pkg1"});
  EXPECT_EQ(std::pair(on(one, 2), on(one, 3)), std::pair(1, 1));
  const ContainerKey four = *node.Run("four", {.request = 4000, .type = "pkg1"});
  EXPECT_EQ(std::pair(on(four, 2), on(four, 3)), std::pair(2, 2));
  EXPECT_TRUE(Apart(node.SetOf(one), node.SetOf(four)));
}

TEST(BalloonsRowsTest, Test16ComponentsOfComponentsCount) {
  BalloonsNode node(test::kPackagesOfNodes);
  ASSERT_TRUE(node.Run("n", {.request = 1000, .type = "node1"}).ok());
  for (const int package : {1, 0, 1}) {
    const CpuSet cpus = node.SetOf(*node.Run(fmt::format("a{}{}", package, node.snapshot().size()),
                                             {.request = 2000, .type = "any"}));
    EXPECT_TRUE(cpus.IsSubsetOf(node.machine().packages()[static_cast<size_t>(package)]))
        << cpus.ToString();
  }
}

}  // namespace
}  // namespace resmgr
