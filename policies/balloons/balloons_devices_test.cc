// SPDX-License-Identifier: Apache-2.0
// Devices whose places the kubelet reports (row 24).
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/balloons/testing/balloons_node.h"

namespace resmgr {
namespace {

using test::BalloonsNode;
using test::Cpus;
using testing::Contains;
using testing::HasSubstr;

constexpr std::string_view kDeviceTypes = R"(
reservedResources: {cpu: "cpuset:0"}
balloonTypes:
- {name: nic, preferNewBalloons: true, preferSpreadingPods: true, preferCloseToDevices: ["podresourceapi:telco.com/*"]}
- {name: tpu, preferNewBalloons: true, preferSpreadingPods: true, preferCloseToDevices: ["podresourceapi:tech.com/tpu"]}
)";

// A container of the type with a device near to these nodes, as the kubelet reports it.
ContainerKey RunNear(BalloonsNode& node, std::string_view name, std::string_view type,
                     std::string_view resource, const NodeSet& nodes, int64_t request = 1000) {
  const ContainerKey key = node.Add(name, {.request = request, .type = type});
  node.snapshot().At(key).hints = {
      {.source = "pod-resources podresourceapi:" + std::string(resource),
       .cpus = {},
       .nodes = nodes}};
  EXPECT_TRUE(node.Place(key).ok()) << name;
  return key;
}

TEST(BalloonsDevicesTest, ContainersLandOnTheNodesOfTheirDevices) {
  BalloonsNode node(kDeviceTypes);
  const CpuSet first = node.SetOf(RunNear(node, "a", "nic", "telco.com/nic", {2, 3}));
  const CpuSet second = node.SetOf(RunNear(node, "b", "nic", "telco.com/nic", {2, 3}));
  const CpuSet low = node.SetOf(RunNear(node, "c", "nic", "telco.com/nic", {0, 1}));
  EXPECT_TRUE((first | second).IsSubsetOf(Cpus("8-15")));
  EXPECT_FALSE(first.Intersects(second));
  EXPECT_TRUE(low.IsSubsetOf(Cpus("1-7")));
  for (int of = 0; of < 4; ++of) {
    const std::string name = "tpu" + std::to_string(of);
    const CpuSet cpus = node.SetOf(RunNear(node, name, "tpu", "tech.com/tpu", {of}));
    EXPECT_TRUE(cpus.IsSubsetOf(CpuSet::Range(4 * of, 4 * of + 3))) << cpus.ToString();
  }
}

TEST(BalloonsDevicesTest, OnlyDevicesThatTheTypeNamesCount) {
  BalloonsNode node(kDeviceTypes);
  const CpuSet other = node.SetOf(RunNear(node, "other", "tpu", "telco.com/nic", {3}));
  const CpuSet none = node.SetOf(RunNear(node, "none", "", "tech.com/tpu", {3}));
  EXPECT_FALSE((other | none).Intersects(Cpus("12-15")));
}

TEST(BalloonsDevicesTest, HintWithTooFewCpusIsDroppedAndTold) {
  BalloonsNode node(kDeviceTypes);
  const ContainerKey key = RunNear(node, "large", "tpu", "tech.com/tpu", {3}, 6000);
  EXPECT_EQ(node.SetOf(key).size(), 6);
  EXPECT_THAT(node.policy().Explain(key),
              Contains(HasSubstr("not followed: close to podresourceapi:tech.com/tpu")));
}

TEST(BalloonsDevicesTest, TheSamePlaceOfManyDevicesIsOneHint) {
  BalloonsNode node("balloonTypes: [{name: x, preferCloseToDevices: [\"podresourceapi:*\"]}]");
  ContainerKey last{};
  for (int i = 0; i < 6; ++i)
    last = RunNear(node, fmt::format("c{}", i), "x", fmt::format("tech.com/d{}", i), {3});
  ASSERT_EQ(node.SetOf(last).size(), 6);
  int told = 0;
  for (const std::string& line : node.policy().Explain(last))
    told += line.find("not followed") == std::string::npos ? 0 : 1;
  EXPECT_EQ(told, 1);
}

TEST(BalloonsDevicesTest, KubeletIsAskedForTypesThatNameItsDevices) {
  EXPECT_TRUE(BalloonsNode(kDeviceTypes).policy().WantsPodResources());
  const std::string off = "agent: {podResourceAPI: false}\n" + std::string(kDeviceTypes);
  EXPECT_FALSE(BalloonsNode(off).policy().WantsPodResources());
  EXPECT_FALSE(BalloonsNode("balloonTypes: [{name: a, preferCloseToDevices: [/dev/nvme0]}]")
                   .policy()
                   .WantsPodResources());
}

}  // namespace
}  // namespace resmgr
