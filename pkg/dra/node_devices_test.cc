// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/node_devices.h"

#include <gtest/gtest.h>

#include "test/support/machines/machines.h"

namespace resmgr::dra {
namespace {

ViewZone ZoneWith(int numa_id, int64_t available) {
  return {.numa_id = numa_id,
          .amounts = {{.name = "memory", .capacity = 99, .allocatable = 99, .available = 99},
                      {.name = "cpu", .capacity = 8, .allocatable = 8, .available = available}}};
}

class NodeDevicesTest : public testing::Test {
 protected:
  // Two packages with one NUMA node of four cores with two threads each.
  const Machine machine_ =
      resmgr::test::MakeMachine({.packages = 2, .cores = 4, .threads = 2, .siblings_apart = false});
  CpuSet Of(size_t node, int cpus) const {
    CpuSet chosen;
    for (const int cpu : machine_.nodes()[node].cpus)
      if (chosen.size() < cpus) chosen.Add(cpu);
    return chosen;
  }
};

TEST_F(NodeDevicesTest, AreTheNumaNodesWithWhatThePolicyWouldGrant) {
  SchedulerView view;
  view.zones = {ZoneWith(0, 7), ZoneWith(1, 8)};
  EXPECT_EQ(
      NodeDevices(view, {}, machine_, 1),
      (std::vector<NodeDevice>{{.node = 0, .package = 0, .cpus = 7, .step = 1, .smt = true},
                               {.node = 1, .package = 1, .cpus = 8, .step = 1, .smt = true}}));
}

// The scheduler subtracts what claims consume.
TEST_F(NodeDevicesTest, WhatClaimsHoldStaysInTheCapacity) {
  SchedulerView view;
  view.zones = {ZoneWith(0, 4), ZoneWith(1, 5)};
  const auto devices = NodeDevices(
      view, {{.uid = "a", .cpus = {Of(0, 2), Of(1, 1)}}, {.uid = "b", .cpus = {Of(1, 2)}}},
      machine_, 1);
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0].cpus, 6);
  EXPECT_EQ(devices[1].cpus, 7) << "CPUs of two claims that overlap would count once";
}

TEST_F(NodeDevicesTest, D13WhatOthersHaveForThemselvesIsNotInTheCapacity) {
  SchedulerView view;
  view.zones = {ZoneWith(0, 6), ZoneWith(1, 0)};
  const auto devices = NodeDevices(view, {}, machine_, 1);
  ASSERT_EQ(devices.size(), 1U) << "a device of nothing is not published";
  EXPECT_EQ(devices[0].cpus, 6);
}

TEST_F(NodeDevicesTest, WholeCoresComeInSteps) {
  SchedulerView view;
  view.zones = {ZoneWith(0, 7), ZoneWith(1, 1)};
  const auto devices = NodeDevices(view, {}, machine_, 2);
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].cpus, 6);
  EXPECT_EQ(devices[0].step, 2);
}

}  // namespace
}  // namespace resmgr::dra
