// SPDX-License-Identifier: Apache-2.0
#include "test/support/scheduler_model/device_pools.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/scheduler_model/device_samples.h"
#include "test/support/scheduler_model/device_selectors.h"

namespace resmgr::test {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

ExactQuantity Cpus(int64_t cpus) {
  return ExactQuantity(cpus);
}

TEST(DevicePoolsTest, ReadsDevicesWithTheDomainsOfTheirNames) {
  json slices = SampleSlices(WholeCpus());
  slices[0]["spec"]["devices"][0]["capacity"] = {{"cpu", {{"value", "6"}}}};
  const std::vector<DevicePool> pools = CompletePools(slices, "worker-1");
  ASSERT_THAT(pools, SizeIs(1));
  ASSERT_THAT(pools[0].devices, SizeIs(2));
  EXPECT_EQ(pools[0].devices[0].capacities.at("dra.cpu/cpu").value, Cpus(6));
  EXPECT_EQ(pools[0].devices[1].capacities.at("dra.cpu/cpu").value, Cpus(8));
  EXPECT_TRUE(pools[0].devices[0].attributes.contains("resource.kubernetes.io/numaNode"));
  EXPECT_THAT(CompletePools(slices, "worker-2"), IsEmpty());
}

TEST(DevicePoolsTest, OnlyTheHighestGenerationCountsOnceItIsComplete) {
  json slices = json::array();
  slices.push_back(SampleSlice(json::array({SampleDevice("old", 0, "6", nullptr)}), 1, 1));
  slices.push_back(SampleSlice(json::array({SampleDevice("new", 0, "5", nullptr)}), 2, 2));
  EXPECT_THAT(CompletePools(slices, "worker-1"), IsEmpty());
  slices.push_back(SampleSlice(json::array({SampleDevice("other", 1, "8", nullptr)}), 2, 2));
  const std::vector<DevicePool> pools = CompletePools(slices, "worker-1");
  ASSERT_THAT(pools, SizeIs(1));
  ASSERT_THAT(pools[0].devices, SizeIs(2));
  EXPECT_EQ(pools[0].devices[0].name, "new");
  EXPECT_EQ(pools[0].generation, 2);
}

TEST(DeviceCapacityTest, WithoutAPolicyAClaimTakesWhatItNamesOrAll) {
  const DeviceCapacity capacity{.value = Cpus(8), .policy = std::nullopt};
  EXPECT_EQ(Consumed(capacity, std::nullopt), Cpus(8));
  EXPECT_EQ(Consumed(capacity, ExactQuantity::Parse("1500m")), ExactQuantity::Parse("1500m"));
}

TEST(DeviceCapacityTest, ARangeRoundsUpToItsNextStep) {
  DeviceCapacity capacity{.value = Cpus(8), .policy = RequestPolicy()};
  capacity.policy->fallback = Cpus(2);
  capacity.policy->min = Cpus(2);
  EXPECT_EQ(Consumed(capacity, std::nullopt), Cpus(2));
  EXPECT_EQ(Consumed(capacity, Cpus(1)), Cpus(2));
  EXPECT_EQ(Consumed(capacity, Cpus(3)), Cpus(3));
  capacity.policy->step = Cpus(2);
  EXPECT_EQ(Consumed(capacity, Cpus(3)), Cpus(4));
  EXPECT_EQ(Consumed(capacity, ExactQuantity::Parse("4001m")), Cpus(6));
  EXPECT_EQ(Consumed(capacity, Cpus(4)), Cpus(4));
  capacity.policy->max = Cpus(6);
  EXPECT_EQ(Consumed(capacity, Cpus(7)), std::nullopt);
}

TEST(DeviceCapacityTest, ValidValuesRoundUpToTheNext) {
  DeviceCapacity capacity{.value = Cpus(8), .policy = RequestPolicy()};
  capacity.policy->fallback = Cpus(1);
  capacity.policy->valid_values = {Cpus(1), Cpus(4)};
  EXPECT_EQ(Consumed(capacity, std::nullopt), Cpus(1));
  EXPECT_EQ(Consumed(capacity, Cpus(2)), Cpus(4));
  EXPECT_EQ(Consumed(capacity, Cpus(5)), std::nullopt);
}

TEST(SliceFaultsTest, SoundSlicesHaveNone) {
  EXPECT_THAT(SliceFaults(SampleSlices(WholeCpus())), IsEmpty());
  EXPECT_THAT(SliceFaults(SampleSlices(nullptr)), IsEmpty());
}

// Faults of slices whose first device has this capacity and policy.
std::vector<std::string> FaultsOfPolicy(const char* cpus, const json& policy) {
  return SliceFaults(
      json::array({SampleSlice(json::array({SampleDevice("cpudevnuma000", 0, cpus, policy)}))}));
}

TEST(SliceFaultsTest, FindsPoliciesThatTheServerRefuses) {
  EXPECT_THAT(FaultsOfPolicy("1", WholeCpus()), ElementsAre(HasSubstr("min + step")));
  EXPECT_THAT(FaultsOfPolicy("1", {{"default", "1"}, {"validValues", {"1"}}}), IsEmpty());
  EXPECT_THAT(
      FaultsOfPolicy("4", {{"default", "1"}, {"validRange", {{"min", "2"}, {"step", "2"}}}}),
      ElementsAre(HasSubstr("the default is not valid")));
  EXPECT_THAT(FaultsOfPolicy("4", {{"default", "1"}, {"validValues", {"2", "1"}}}),
              Contains(HasSubstr("do not ascend")));
  EXPECT_THAT(FaultsOfPolicy("4", {{"validRange", {{"min", "1"}}}}),
              ElementsAre(HasSubstr("no default")));
  json slices = SampleSlices(WholeCpus());
  slices[0]["spec"]["devices"][0].erase("allowMultipleAllocations");
  EXPECT_THAT(SliceFaults(slices), ElementsAre(HasSubstr("without allowMultipleAllocations")));
}

TEST(SliceFaultsTest, FindsNamesAndNumbersBeyondTheLimits) {
  json slices = SampleSlices(nullptr);
  slices[0]["spec"]["devices"][1]["name"] = "Cpu_1";
  EXPECT_THAT(SliceFaults(slices), ElementsAre("device name Cpu_1"));
  slices = SampleSlices(nullptr);
  slices[0]["spec"]["devices"][1]["name"] = "cpudevnuma000";
  EXPECT_THAT(SliceFaults(slices), ElementsAre("cpudevnuma000 twice"));
  slices = SampleSlices(nullptr);
  slices[0]["spec"]["devices"][0]["attributes"]["dra.cpu/socket-id"] = {{"int", 0}};
  EXPECT_THAT(SliceFaults(slices), ElementsAre(HasSubstr("socket-id")));
  json devices = json::array();
  for (int i = 0; i < 65; ++i)
    devices.push_back(SampleDevice("d" + std::to_string(i), 0, "1", nullptr));
  EXPECT_THAT(SliceFaults(json::array({SampleSlice(devices)})), IsEmpty());
  devices[0]["taints"] = json::array({{{"key", "k"}, {"effect", "NoSchedule"}}});
  EXPECT_THAT(SliceFaults(json::array({SampleSlice(devices)})),
              ElementsAre(HasSubstr("65 devices")));
}

TEST(SliceFaultsTest, FindsPoolsThatStayIncomplete) {
  json slices = SampleSlices(nullptr);
  slices[0]["spec"]["pool"]["resourceSliceCount"] = 2;
  EXPECT_THAT(SliceFaults(slices), ElementsAre("a pool lacks slices"));
}

TEST(SliceFaultsTest, FindsCountersThatNoSetHas) {
  json slices = SampleSlices(nullptr);
  slices[0]["spec"]["pool"]["resourceSliceCount"] = 2;
  slices.push_back(slices[0]);
  slices[1]["spec"].erase("devices");
  slices[1]["spec"]["sharedCounters"] =
      json::array({{{"name", "numa0"}, {"counters", {{"cpus", {{"value", "6"}}}}}}});
  json& device = slices[0]["spec"]["devices"][0];
  device["consumesCounters"] =
      json::array({{{"counterSet", "numa0"}, {"counters", {{"cpus", {{"value", "6"}}}}}}});
  EXPECT_THAT(SliceFaults(slices), IsEmpty());
  device["consumesCounters"][0]["counterSet"] = "numa1";
  EXPECT_THAT(SliceFaults(slices), ElementsAre("cpudevnuma000: no counter numa1/cpus"));
}

TEST(DeviceSelectorsTest, ComparesDriverAndAttributes) {
  PoolDevice device;
  device.driver = "dra.cpu";
  device.attributes["resource.kubernetes.io/numaNode"] = {{"int", 1}};
  device.attributes["dra.cpu/coreType"] = {{"string", "standard"}};
  EXPECT_TRUE(MatchesSelector(device, "device.driver == \"dra.cpu\""));
  EXPECT_FALSE(MatchesSelector(device, "device.driver == \"gpu\""));
  EXPECT_TRUE(MatchesSelector(device,
                              "device.driver == \"dra.cpu\" && "
                              "device.attributes[\"resource.kubernetes.io\"].numaNode == 1"));
  EXPECT_FALSE(
      MatchesSelector(device, "device.attributes[\"resource.kubernetes.io\"].numaNode == 0"));
  EXPECT_TRUE(MatchesSelector(device, "device.attributes[\"dra.cpu\"].coreType == \"standard\""));
  EXPECT_FALSE(MatchesSelector(device, "device.attributes[\"dra.cpu\"].smtEnabled == true"));
  EXPECT_THROW(MatchesSelector(device, "device.capacity[\"dra.cpu\"].cpu > 1"),
               std::invalid_argument);
}

}  // namespace
}  // namespace resmgr::test
