// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/device_states.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/dra/node_devices.h"
#include "test/support/machines/machines.h"

namespace resmgr::dra {
namespace {

using testing::ElementsAre;

class DeviceStatesTest : public testing::Test {
 protected:
  // L3 groups 0-3, 4-7, 8-11, 12-15, in nodes 0-7 and 8-15.
  const Machine machine_ = resmgr::test::U16TwoNodes();
  const Driver driver_{.name = "cpu.example.com"};
  HeldClaims held_;

  void Hold(const ClaimPart& part, const CpuSet& cpus) {
    HeldClaim& claim =
        held_.Add({.uid = part.device, .namespace_name = "default", .name = "c", .parts = {part}});
    held_.AddPart(claim, machine_).placement.exclusive = cpus;
  }
  std::vector<DeviceState> States(DraDevices devices, const CpuSet& offline) const {
    return DeviceStates(driver_, DevicePlaces(machine_, devices), held_, machine_, offline);
  }
};

TEST_F(DeviceStatesTest, D14ADeviceIsUnhealthyWhileAllOfItsCpusAreOffline) {
  EXPECT_THAT(States(DraDevices::kL3, resmgr::test::Cpus("4,8-11")),
              ElementsAre(DeviceState{.device = "cpu-l3-0"}, DeviceState{.device = "cpu-l3-4"},
                          DeviceState{.device = "cpu-l3-8",
                                      .trouble = "all of its CPUs (8-11) are offline"},
                          DeviceState{.device = "cpu-l3-12"}));
}

// Else the kubelet would take the devices of these pods for unknown after a while.
TEST_F(DeviceStatesTest, DevicesOfAFormerConfigurationAreToldAsLongAsClaimsHaveThem) {
  Hold({.device = "cpu-l3-4", .cpus = 2, .l3_of = 4}, {5, 6});
  Hold({.device = "cpu-l3-8", .cpus = 1, .l3_of = 8}, {9});
  Hold({.device = "cpu-numa-1", .node = 1, .cpus = 1}, {15});
  EXPECT_THAT(States(DraDevices::kNuma, resmgr::test::Cpus("8-11")),
              ElementsAre(DeviceState{.device = "cpu-numa-0"}, DeviceState{.device = "cpu-numa-1"},
                          DeviceState{.device = "cpu-l3-4"},
                          DeviceState{.device = "cpu-l3-8",
                                      .trouble = "all of its CPUs (8-11) are offline"}));
}

TEST_F(DeviceStatesTest, DevicesOfAnotherDriverAreNotTold) {
  HeldClaim& claim = held_.Add({.uid = "u",
                                .namespace_name = "default",
                                .name = "c",
                                .parts = {{.device = "cpu-l3-4", .cpus = 1, .l3_of = 4}},
                                .driver = "former.example.com"});
  held_.AddPart(claim, machine_).placement.exclusive = {5};
  EXPECT_EQ(States(DraDevices::kNuma, {}).size(), 2U);
}

// The lowest CPU of a cache, by which it is named, was offline when the daemon started.
TEST_F(DeviceStatesTest, ADeviceThatIsNotFoundIsAsWellAsItsClaim) {
  Hold({.device = "cpu-l3-20", .cpus = 1, .l3_of = 20}, {9});
  Hold({.device = "cpu-l3-30", .cpus = 1, .l3_of = 30}, {});
  const std::vector<DeviceState> states = States(DraDevices::kNuma, {});
  ASSERT_EQ(states.size(), 4U);
  EXPECT_EQ(states[2], DeviceState{.device = "cpu-l3-20"});
  EXPECT_EQ(states[3].device, "cpu-l3-30");
  EXPECT_NE(states[3].trouble, "");
}

}  // namespace
}  // namespace resmgr::dra
