// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/claims/claim_place.h"
#include "pkg/dra/device_health.h"
#include "pkg/dra/driver.h"
#include "test/support/machines/machines.h"

namespace resmgr::dra {
namespace {

using testing::ElementsAre;

const Driver kDriver{.name = "cpu.example.com"};

// Adds a claim with one part that holds these CPUs of the device.
void Hold(HeldClaims& held, const std::string& device, const CpuSet& cpus, const Machine& machine) {
  HeldClaim& claim = held.Add({.uid = device,
                               .namespace_name = "default",
                               .name = device,
                               .parts = {{.device = device, .cpus = cpus.size()}}});
  held.AddPart(claim, machine).placement.exclusive = cpus;
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
  std::vector<NodeDevice> DevicesWith(const std::vector<int>& grantable, int step = 1,
                                      const HeldClaims& held = {}) const {
    return NodeDevices(kDriver, DevicePlaces(machine_, DraDevices::kNuma), grantable, held,
                       machine_, step);
  }
};

TEST_F(NodeDevicesTest, AreTheNumaNodesWithWhatThePolicyWouldGrant) {
  EXPECT_EQ(
      DevicesWith({7, 8}),
      (std::vector<NodeDevice>{
          {.node = 0, .package = 0, .cpus = 7, .step = 1, .smt = true, .kind = CoreKind::kNormal},
          {.node = 1,
           .package = 1,
           .cpus = 8,
           .step = 1,
           .smt = true,
           .kind = CoreKind::kNormal}}));
}

// The scheduler subtracts what claims consume.
TEST_F(NodeDevicesTest, WhatClaimsHoldStaysInTheCapacity) {
  HeldClaims held;
  HeldClaim& claim = held.Add({.uid = "a",
                               .namespace_name = "default",
                               .name = "a",
                               .parts = {{.device = "cpu-numa-0", .node = 0, .cpus = 2},
                                         {.device = "cpu-numa-1", .node = 1, .cpus = 1}}});
  held.AddPart(claim, machine_).placement.exclusive = Of(0, 2);
  held.AddPart(claim, machine_).placement.exclusive = Of(1, 1);
  Hold(held, "cpu-numa-1", Of(1, 3) - Of(1, 1), machine_);
  const auto devices = DevicesWith({4, 5}, 1, held);
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0].cpus, 6);
  EXPECT_EQ(devices[1].cpus, 8);
}

// The scheduler subtracts a claim from the device that it was allocated to, and from no other.
TEST_F(NodeDevicesTest, CpusOfClaimsOfOtherDevicesAreNotInTheCapacity) {
  HeldClaims held;
  Hold(held, "cpu-l3-0", Of(0, 3), machine_);
  Hold(held, "cpudevnuma001", Of(1, 2), machine_);
  Hold(held, "cpu-numa-1", Of(0, 5) - Of(0, 4), machine_);
  const auto devices = DevicesWith({4, 6}, 1, held);
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0].cpus, 4);
  EXPECT_EQ(devices[1].cpus, 7) << "wherever the policy has put it since";
}

// Names of devices stay the same when the name of the driver changes.
TEST_F(NodeDevicesTest, CpusOfClaimsOfAnotherDriverAreNotInTheCapacity) {
  HeldClaims held;
  for (const char* const driver : {"", "cpu.example.com", "former.example.com"}) {
    HeldClaim& claim = held.Add({.uid = driver,
                                 .namespace_name = "default",
                                 .name = "c",
                                 .parts = {{.device = "cpu-numa-0", .node = 0, .cpus = 1}},
                                 .driver = driver});
    held.AddPart(claim, machine_).placement.exclusive = Of(0, 1);
  }
  EXPECT_EQ(DevicesWith({4, 8}, 1, held)[0].cpus, 6)
      << "its own one, and one of which the driver is not known";
}

TEST_F(NodeDevicesTest, D13WhatOthersHaveForThemselvesIsNotInTheCapacity) {
  const auto devices = DevicesWith({6, 0});
  ASSERT_EQ(devices.size(), 1U) << "a device of nothing is not published";
  EXPECT_EQ(devices[0].cpus, 6);
}

TEST_F(NodeDevicesTest, WholeCoresComeInSteps) {
  const auto devices = DevicesWith({7, 1}, 2);
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].cpus, 6);
  EXPECT_EQ(devices[0].step, 2);
}

TEST(DevicePlacesTest, CachesAreDevicesWhereANodeHasSeveral) {
  const Machine machine = resmgr::test::U16TwoNodes();
  const std::vector<ClaimPart> places = DevicePlaces(machine, DraDevices::kL3);
  ASSERT_EQ(places.size(), 4U);
  for (size_t at = 0; at < places.size(); ++at) {
    EXPECT_EQ(places[at].l3_of, 4 * static_cast<int>(at));
    EXPECT_EQ(places[at].node, std::nullopt) << "no CPU is in two devices";
  }
  const std::vector<int> grantable = {3, 4, 4, 0};
  HeldClaims held;
  Hold(held, "cpu-l3-12", {12, 13}, machine);
  const auto devices = NodeDevices(kDriver, places, grantable, held, machine, 1);
  ASSERT_EQ(devices.size(), 4U);
  EXPECT_EQ(devices[0].cpus, 3);
  EXPECT_EQ(devices[2].node, 1);
  EXPECT_EQ(devices[3].cpus, 2) << "the claim's own";
  EXPECT_EQ(devices[3].l3_of, 12);
  EXPECT_EQ(DevicePlaces(machine, DraDevices::kNuma).size(), 2U);
}

// S2NoHt has one cache in each node; the caches of F80 lie in several nodes, or in none.
TEST(DevicePlacesTest, OtherNodesAreDevicesThemselves) {
  for (const Machine& machine :
       {resmgr::test::S2NoHt(), resmgr::test::F80(), resmgr::test::M80(), resmgr::test::Hybrid()}) {
    CpuSet all;
    for (const ClaimPart& place : DevicePlaces(machine, DraDevices::kL3)) {
      const auto found = PlaceOf(place, machine);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_FALSE(all.Intersects(found->cpus));
      all |= found->cpus;
    }
    EXPECT_EQ(all, machine.online());
  }
  EXPECT_TRUE(DevicePlaces(resmgr::test::S2NoHt(), DraDevices::kL3)[0].node);
}

// Claims that were allocated before find it, and their CPUs stay in its capacity.
TEST(DevicePlacesTest, ACacheKeepsItsNameWhileItsLowestCpuIsOffline) {
  Machine::Parts parts = resmgr::test::PartsOf(resmgr::test::U16TwoNodes().cpus());
  parts.cpus[12].online = false;
  const Machine machine = resmgr::test::MakeMachine(std::move(parts));
  const std::vector<ClaimPart> places = DevicePlaces(machine, DraDevices::kL3);
  ASSERT_EQ(places.size(), 4U);
  EXPECT_EQ(places[3].l3_of, 12);
  HeldClaims held;
  Hold(held, "cpu-l3-12", {13}, machine);
  const auto devices = NodeDevices(kDriver, places, std::vector<int>{4, 4, 4, 2}, held, machine, 1);
  ASSERT_EQ(devices.size(), 4U);
  EXPECT_EQ(devices[3].l3_of, 12);
  EXPECT_EQ(devices[3].node, 1);
  EXPECT_EQ(devices[3].cpus, 3);
}

TEST(DevicePlacesTest, TellsHowManyAPoolHasNoRoomFor) {
  const Machine few = resmgr::test::U16TwoNodes();
  EXPECT_EQ(DevicesLeftOut(few, DraDevices::kL3), 0U);
  const Machine many = resmgr::test::MakeMachine({.packages = 2, .nodes = 5, .l3s = 7, .cores = 7});
  EXPECT_EQ(DevicePlaces(many, DraDevices::kL3).size(), 64U);
  EXPECT_EQ(DevicesLeftOut(many, DraDevices::kL3), 6U);
  EXPECT_EQ(DevicesLeftOut(many, DraDevices::kNuma), 0U);
}

TEST(DevicePlacesTest, TheKindOfCoresIsToldWhereAllAreAlike) {
  const Machine machine = resmgr::test::Hybrid();
  const std::vector<ClaimPart> places = DevicePlaces(machine, DraDevices::kNuma);
  const std::vector<int> grantable(places.size(), 1);
  EXPECT_EQ(NodeDevices(kDriver, places, grantable, {}, machine, 1)[0].kind, std::nullopt);
}

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
