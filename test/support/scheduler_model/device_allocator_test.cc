// SPDX-License-Identifier: Apache-2.0
#include "test/support/scheduler_model/device_allocator.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/scheduler_model/device_pools.h"

namespace resmgr::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

using nlohmann::json;

constexpr char kSampleDriver[] = "dra.cpu";

// A device of CPUs that claims share; `policy` may be null.
json SampleDevice(const std::string& name, int numa, const std::string& cpus, const json& policy) {
  json device = {{"name", name}, {"allowMultipleAllocations", true}};
  device["attributes"]["resource.kubernetes.io/numaNode"] = {{"int", numa}};
  device["attributes"]["dra.cpu/socketID"] = {{"int", 0}};
  device["capacity"]["dra.cpu/cpu"]["value"] = cpus;
  if (!policy.is_null()) device["capacity"]["dra.cpu/cpu"]["requestPolicy"] = policy;
  return device;
}

json SampleSlice(json devices, int generation = 1, int count = 1) {
  return {
      {"apiVersion", "resource.k8s.io/v1"},
      {"kind", "ResourceSlice"},
      {"spec",
       {{"driver", kSampleDriver},
        {"nodeName", "worker-1"},
        {"pool", {{"name", "worker-1"}, {"generation", generation}, {"resourceSliceCount", count}}},
        {"devices", std::move(devices)}}}};
}

// Whole CPUs from 1 on.
json WholeCpus() {
  return {{"default", "1"}, {"validRange", {{"min", "1"}, {"step", "1"}}}};
}

// Two NUMA nodes of eight CPUs, two of which are reserved.
json SampleSlices(const json& policy) {
  return json::array({SampleSlice(json::array({SampleDevice("cpudevnuma000", 0, "6", policy),
                                               SampleDevice("cpudevnuma001", 1, "8", policy)}))});
}

json SampleClasses() {
  const json selector = {{"cel", {{"expression", "device.driver == \"dra.cpu\""}}}};
  const json sample = {{"metadata", {{"name", kSampleDriver}}},
                       {"spec", {{"selectors", json::array({selector})}}}};
  return json::array({sample});
}

// A request for `count` devices with `cpus` each; an empty text: no quantity.
json SampleRequest(const std::string& name, const std::string& cpus, int count = 1,
                   const std::string& capacity = "dra.cpu/cpu") {
  json exactly = {
      {"deviceClassName", kSampleDriver}, {"allocationMode", "ExactCount"}, {"count", count}};
  if (!cpus.empty()) exactly["capacity"]["requests"][capacity] = cpus;
  return {{"name", name}, {"exactly", exactly}};
}

json SampleClaim(const std::string& name, std::vector<json> requests) {
  return {
      {"metadata",
       {{"namespace", "default"}, {"name", name}, {"uid", "8ec6fd12-bb08-4936-a857-866f50153c21"}}},
      {"spec", {{"devices", {{"requests", std::move(requests)}}}}}};
}

// A node with two devices, and its claims.
struct ClaimedSample {
  explicit ClaimedSample(const json& policy) {
    input.slices = SampleSlices(policy);
    input.classes = SampleClasses();
    input.node = "worker-1";
  }

  // Devices and quantities, "DEVICE:QUANTITY", or the obstacle. The allocation stays.
  std::vector<std::string> Allocate(const json& claim) {
    const AllocationAnswer answer = AllocateClaim(input, claim);
    if (!answer.claim) return {answer.reason};
    input.claims.push_back(*answer.claim);
    std::vector<std::string> texts;
    for (const json& result :
         answer.claim->at("status").at("allocation").at("devices").at("results")) {
      std::string text = result.at("device");
      if (result.contains("consumedCapacity")) {
        for (const auto& [name, quantity] : result.at("consumedCapacity").items()) {
          text += ":" + quantity.get<std::string>();
        }
      }
      texts.push_back(text);
    }
    return texts;
  }

  AllocatorInput input;
};

TEST(DeviceAllocatorTest, WritesTheResultIntoTheClaim) {
  ClaimedSample sample(WholeCpus());
  json claim = SampleClaim("c4", {SampleRequest("cpus", "4")});
  claim["spec"]["devices"]["config"] =
      json::array({{{"opaque", {{"driver", kSampleDriver}, {"parameters", json::object()}}}}});
  const AllocationAnswer answer = AllocateClaim(sample.input, claim);
  ASSERT_TRUE(answer.claim.has_value());
  const json& devices = answer.claim->at("status").at("allocation").at("devices");
  const json& result = devices.at("results").at(0);
  EXPECT_EQ(result.at("request"), "cpus");
  EXPECT_EQ(result.at("driver"), kSampleDriver);
  EXPECT_EQ(result.at("pool"), "worker-1");
  EXPECT_EQ(result.at("device"), "cpudevnuma000");
  EXPECT_EQ(result.at("consumedCapacity"), json({{"dra.cpu/cpu", "4"}}));
  EXPECT_EQ(result.at("shareID").get<std::string>().size(),
            claim["metadata"]["uid"].get<std::string>().size());
  EXPECT_EQ(devices.at("config").at(0).at("source"), "FromClaim");
}

TEST(DeviceAllocatorTest, ClaimsShareADeviceUntilItIsUsedUp) {
  ClaimedSample sample(WholeCpus());
  EXPECT_THAT(sample.Allocate(SampleClaim("a", {SampleRequest("cpus", "4")})),
              ElementsAre("cpudevnuma000:4"));
  EXPECT_THAT(sample.Allocate(SampleClaim("b", {SampleRequest("cpus", "2")})),
              ElementsAre("cpudevnuma000:2"));
  EXPECT_THAT(sample.Allocate(SampleClaim("c", {SampleRequest("cpus", "1")})),
              ElementsAre("cpudevnuma001:1"));
  EXPECT_THAT(sample.Allocate(SampleClaim("d", {SampleRequest("cpus", "8")})),
              ElementsAre("no device for cpus"));
  EXPECT_EQ(RemainingCapacity(sample.input).at("dra.cpu/worker-1/cpudevnuma001").at("dra.cpu/cpu"),
            ExactQuantity(7));
}

TEST(DeviceAllocatorTest, ThePolicyRoundsUpAndHasADefault) {
  ClaimedSample sample(WholeCpus());
  EXPECT_THAT(sample.Allocate(SampleClaim("a", {SampleRequest("cpus", "1500m")})),
              ElementsAre("cpudevnuma000:2"));
  EXPECT_THAT(sample.Allocate(SampleClaim("b", {SampleRequest("cpus", "")})),
              ElementsAre("cpudevnuma000:1"));
  EXPECT_THAT(sample.Allocate(SampleClaim("c", {SampleRequest("cpus", "3", 1, "cpu")})),
              ElementsAre("cpudevnuma000:3"));
  EXPECT_THAT(sample.Allocate(SampleClaim("d", {SampleRequest("cpus", "1", 1, "memory")})),
              ElementsAre("no device for cpus"));
}

TEST(DeviceAllocatorTest, WithoutAPolicyAClaimWithoutQuantityTakesTheWholeDevice) {
  ClaimedSample sample(nullptr);
  EXPECT_THAT(sample.Allocate(SampleClaim("a", {SampleRequest("cpus", "")})),
              ElementsAre("cpudevnuma000:6"));
  EXPECT_THAT(sample.Allocate(SampleClaim("b", {SampleRequest("cpus", "1500m")})),
              ElementsAre("cpudevnuma001:1500000000n"));
}

TEST(DeviceAllocatorTest, SeveralRequestsAndDevicesFitTogetherOrNotAtAll) {
  ClaimedSample sample(WholeCpus());
  EXPECT_THAT(sample.Allocate(SampleClaim("a", {SampleRequest("x", "5", 2)})),
              ElementsAre("cpudevnuma000:5", "cpudevnuma001:5"));
  sample.input.claims.clear();
  // The first request has to leave the first device to the second one only where it is in the way.
  EXPECT_THAT(sample.Allocate(SampleClaim("b", {SampleRequest("x", "6"), SampleRequest("y", "8")})),
              ElementsAre("cpudevnuma000:6", "cpudevnuma001:8"));
  sample.input.claims.clear();
  EXPECT_THAT(sample.Allocate(SampleClaim("c", {SampleRequest("x", "2"), SampleRequest("y", "6")})),
              ElementsAre("cpudevnuma000:2", "cpudevnuma001:6"));
  sample.input.claims.clear();
  EXPECT_THAT(sample.Allocate(SampleClaim("d", {SampleRequest("x", "7", 2)})),
              ElementsAre("no device for x"));
}

TEST(DeviceAllocatorTest, ConstraintsCompareAttributes) {
  ClaimedSample sample(WholeCpus());
  json claim = SampleClaim("a", {SampleRequest("x", "3"), SampleRequest("y", "4")});
  claim["spec"]["devices"]["constraints"] =
      json::array({{{"matchAttribute", "resource.kubernetes.io/numaNode"}}});
  EXPECT_THAT(sample.Allocate(claim), ElementsAre("cpudevnuma001:3", "cpudevnuma001:4"));
  claim["spec"]["devices"]["constraints"] =
      json::array({{{"distinctAttribute", "resource.kubernetes.io/numaNode"},
                    {"requests", json::array({"x", "y"})}}});
  EXPECT_THAT(sample.Allocate(claim), ElementsAre("no device for x"));
  sample.input.claims.clear();
  EXPECT_THAT(sample.Allocate(claim), ElementsAre("cpudevnuma000:3", "cpudevnuma001:4"));
}

TEST(DeviceAllocatorTest, TheFirstAlternativeThatFitsIsNamed) {
  ClaimedSample sample(WholeCpus());
  json eight = SampleRequest("eight", "9")["exactly"];
  eight["name"] = "nine";
  json two = SampleRequest("two", "2")["exactly"];
  two["name"] = "two";
  const json request = {{"name", "cpus"}, {"firstAvailable", json::array({eight, two})}};
  const AllocationAnswer answer = AllocateClaim(sample.input, SampleClaim("a", {request}));
  ASSERT_TRUE(answer.claim.has_value());
  EXPECT_EQ(answer.claim->at(json::json_pointer("/status/allocation/devices/results/0/request")),
            "cpus/two");
}

TEST(DeviceAllocatorTest, AllTakesEveryDeviceOfTheClass) {
  ClaimedSample sample(WholeCpus());
  json request = SampleRequest("cpus", "6");
  request["exactly"]["allocationMode"] = "All";
  EXPECT_THAT(sample.Allocate(SampleClaim("a", {request})),
              ElementsAre("cpudevnuma000:6", "cpudevnuma001:6"));
  EXPECT_THAT(sample.Allocate(SampleClaim("b", {request})),
              ElementsAre("not all devices for cpus"));
}

TEST(DeviceAllocatorTest, DevicesThatAreNotSharedServeOneClaim) {
  ClaimedSample sample(nullptr);
  for (json& device : sample.input.slices[0]["spec"]["devices"]) {
    device.erase("allowMultipleAllocations");
  }
  EXPECT_THAT(sample.Allocate(SampleClaim("a", {SampleRequest("cpus", "7")})),
              ElementsAre("cpudevnuma001"));
  EXPECT_THAT(sample.Allocate(SampleClaim("b", {SampleRequest("cpus", "7")})),
              ElementsAre("no device for cpus"));
  EXPECT_THAT(sample.Allocate(SampleClaim("c", {SampleRequest("cpus", "")})),
              ElementsAre("cpudevnuma000"));
}

TEST(DeviceAllocatorTest, TaintedDevicesNeedAToleration) {
  ClaimedSample sample(WholeCpus());
  sample.input.slices[0]["spec"]["devices"][0]["taints"] =
      json::array({{{"key", "dra.cpu/held"}, {"effect", "NoSchedule"}}});
  EXPECT_THAT(sample.Allocate(SampleClaim("a", {SampleRequest("cpus", "1")})),
              ElementsAre("cpudevnuma001:1"));
  json request = SampleRequest("cpus", "1");
  request["exactly"]["tolerations"] =
      json::array({{{"key", "dra.cpu/held"}, {"operator", "Exists"}}});
  EXPECT_THAT(sample.Allocate(SampleClaim("b", {request})), ElementsAre("cpudevnuma000:1"));
}

// Two L3 groups and the NUMA node that they are in, with a budget of six CPUs.
json PartitionedSlices() {
  json groups = json::array();
  const std::pair<const char*, const char*> kDevices[] = {
      {"numa0", "6"}, {"l3-0", "3"}, {"l3-1", "4"}};
  for (const auto& [name, cpus] : kDevices) {
    json device = SampleDevice(name, 0, cpus, nullptr);
    device["consumesCounters"] =
        json::array({{{"counterSet", "cpus"}, {"counters", {{"numa0", {{"value", cpus}}}}}}});
    groups.push_back(device);
  }
  json counters = SampleSlice(json::array(), 1, 2);
  counters["spec"].erase("devices");
  counters["spec"]["sharedCounters"] =
      json::array({{{"name", "cpus"}, {"counters", {{"numa0", {{"value", "6"}}}}}}});
  return json::array({SampleSlice(groups, 1, 2), counters});
}

TEST(DeviceAllocatorTest, DevicesThatOverlapShareTheirCounters) {
  ClaimedSample sample(nullptr);
  sample.input.slices = PartitionedSlices();
  ASSERT_THAT(SliceFaults(sample.input.slices), ElementsAre());
  EXPECT_THAT(sample.Allocate(SampleClaim("a", {SampleRequest("cpus", "4")})),
              ElementsAre("numa0:4"));
  // The device that is in use serves more claims; the others have no counters left.
  EXPECT_THAT(sample.Allocate(SampleClaim("b", {SampleRequest("cpus", "2")})),
              ElementsAre("numa0:2"));
  EXPECT_THAT(sample.Allocate(SampleClaim("c", {SampleRequest("cpus", "1")})),
              ElementsAre("no device for cpus"));
  sample.input.claims.clear();
  json on_group = SampleRequest("cpus", "3");
  on_group["exactly"]["selectors"] =
      json::array({{{"cel", {{"expression", "device.attributes[\"dra.cpu\"].group == 0"}}}}});
  sample.input.slices[0]["spec"]["devices"][1]["attributes"]["dra.cpu/group"] = {{"int", 0}};
  EXPECT_THAT(sample.Allocate(SampleClaim("d", {on_group})), ElementsAre("l3-0:3"));
  // 3 of 6 are left: neither the whole node nor the group of 4 has its counters.
  EXPECT_THAT(sample.Allocate(SampleClaim("e", {SampleRequest("cpus", "1")})),
              ElementsAre("no device for cpus"));
}

TEST(DeviceAllocatorTest, ShortNamesAndOtherOrdersAreTheSchedulersChoice) {
  ClaimedSample sample(WholeCpus());
  sample.input.short_names = true;
  std::set<std::string> devices;
  for (uint64_t shuffle = 1; shuffle <= 16; ++shuffle) {
    sample.input.shuffle = shuffle;
    const AllocationAnswer answer =
        AllocateClaim(sample.input, SampleClaim("a", {SampleRequest("cpus", "2")}));
    ASSERT_TRUE(answer.claim.has_value());
    const json& result =
        answer.claim->at(json::json_pointer("/status/allocation/devices/results/0"));
    devices.insert(result.at("device"));
    EXPECT_EQ(result.at("consumedCapacity"), json({{"cpu", "2"}}));
  }
  EXPECT_THAT(devices, UnorderedElementsAre("cpudevnuma000", "cpudevnuma001"));
  // "cpu" counts like "dra.cpu/cpu".
  sample.input.shuffle = 0;
  sample.Allocate(SampleClaim("b", {SampleRequest("cpus", "5")}));
  EXPECT_THAT(sample.Allocate(SampleClaim("c", {SampleRequest("cpus", "2")})),
              ElementsAre("cpudevnuma001:2"));
}

TEST(DeviceAllocatorTest, LessCapacityThanClaimsHoldGivesNothing) {
  ClaimedSample sample(WholeCpus());
  sample.Allocate(SampleClaim("a", {SampleRequest("cpus", "6")}));
  sample.input.slices[0]["spec"]["devices"][0]["capacity"]["dra.cpu/cpu"]["value"] = "4";
  EXPECT_THAT(sample.Allocate(SampleClaim("b", {SampleRequest("cpus", "1")})),
              ElementsAre("cpudevnuma001:1"));
}

TEST(DeviceAllocatorTest, AdminAccessIsNotModelled) {
  ClaimedSample sample(WholeCpus());
  json request = SampleRequest("cpus", "1");
  request["exactly"]["adminAccess"] = true;
  EXPECT_THROW(sample.Allocate(SampleClaim("a", {request})), std::invalid_argument);
}

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
