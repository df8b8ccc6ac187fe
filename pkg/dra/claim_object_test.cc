// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/claim_object.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/base/json.h"
#include "test/support/status_matchers.h"

namespace resmgr::dra {
namespace {

using Json = nlohmann::json;
using resmgr::test::Must;
using testing::HasSubstr;

const Driver kPeer{.name = "dra.cpu", .compatible = true};
const Driver kOwn{.name = "cpu.cri-resmgr.intel.com"};
const ClaimName kAsked{.uid = "8ec6fd12-bb08", .namespace_name = "default", .name = "c4"};

Json Result(const std::string& driver, const std::string& device, const Json& consumed) {
  return {{"request", "cpus"}, {"driver", driver},  {"pool", "worker-1"},
          {"device", device},  {"shareID", "5f0c"}, {"consumedCapacity", consumed}};
}

// A list of one element would else be that element.
using JsonList = std::vector<Json>;

Json Object(const JsonList& results) {
  return {{"metadata", {{"namespace", "default"}, {"name", "c4"}, {"uid", "8ec6fd12-bb08"}}},
          {"status", {{"allocation", {{"devices", {{"results", Json(results)}}}}}}}};
}

StatusOr<AllocatedClaim> Parse(const Json& object, const Driver& driver = kPeer) {
  return ParseClaimObject(JsonText(object), kAsked, driver);
}

std::string Refusal(const Json& object, const Driver& driver = kPeer) {
  return std::string(Message(Parse(object, driver).status()));
}

TEST(ClaimObjectTest, ReadsTheSampleOfThePeer) {
  const AllocatedClaim claim =
      Must(Parse(Object({Result("dra.cpu", "cpudevnuma001", {{"dra.cpu/cpu", "4"}})})));
  EXPECT_EQ(claim.claim,
            (Claim{.uid = "8ec6fd12-bb08",
                   .namespace_name = "default",
                   .name = "c4",
                   .parts = {{.request = "cpus", .device = "cpudevnuma001", .node = 1, .cpus = 4}},
                   .driver = "dra.cpu",
                   .pools = {"worker-1"}}));
  EXPECT_EQ(
      claim.devices,
      (std::vector<ClaimDeviceRef>{{.request = "cpus", .pool = "worker-1", .share_id = "5f0c"}}));
}

TEST(ClaimObjectTest, ReadsThePodsThatItIsReservedFor) {
  Json object = Object({Result("dra.cpu", "cpudevnuma001", {{"cpu", "4"}})});
  object["status"]["reservedFor"] = JsonList{
      {{"resource", "pods"}, {"name", "b"}, {"uid", "pod-b"}},
      {{"resource", "pods"}, {"name", "a"}, {"uid", "pod-a"}},
      {{"resource", "jobs"}, {"apiGroup", "batch"}, {"name", "j"}, {"uid", "job"}},
      {{"resource", "pods"}, {"name", "c"}, {"uid", "../c"}},
      {{"resource", "pods"}, {"name", "d"}},
  };
  const AllocatedClaim claim = Must(Parse(object));
  EXPECT_THAT(claim.claim.pods, testing::ElementsAre("pod-a", "pod-b"));
  EXPECT_TRUE(claim.claim.IsFor("pod-a"));
  EXPECT_FALSE(claim.claim.IsFor("pod-c"));
}

TEST(ClaimObjectTest, OwnDevicesHaveNamesOfTheirOwn) {
  const auto claim = Must(Parse(
      Object({Result(kOwn.name, "cpu-numa-2", {{"cpu.cri-resmgr.intel.com/cpu", "2"}})}), kOwn));
  EXPECT_EQ(claim.claim.parts.at(0).node, 2);
  EXPECT_THAT(Refusal(Object({Result(kOwn.name, "cpudevnuma002", {{"cpu", "2"}})}), kOwn),
              HasSubstr("\"cpudevnuma002\" is no device of cpu.cri-resmgr.intel.com"));
}

TEST(ClaimObjectTest, D5AReplacedClaimIsRefused) {
  Json object = Object({Result("dra.cpu", "cpudevnuma001", {{"cpu", "4"}})});
  object["metadata"]["uid"] = "other";
  EXPECT_EQ(Parse(object).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Refusal(object), HasSubstr("was replaced"));
}

TEST(ClaimObjectTest, D6ResultsOfOtherDriversAreLeftOut) {
  const auto both = Must(Parse(Object({Result("gpu.example.com", "gpu-0", Json::object()),
                                       Result("dra.cpu", "cpudevnuma000", {{"cpu", "1"}})})));
  EXPECT_EQ(both.claim.parts.size(), 1U);
  const auto none = Must(Parse(Object({Result("gpu.example.com", "gpu-0", Json::object())})));
  EXPECT_TRUE(none.claim.parts.empty());
}

TEST(ClaimObjectTest, D7TheCapacityMayLackTheDomain) {
  for (const char* const key : {"cpu", "dra.cpu/cpu"}) {
    const auto claim = Must(Parse(Object({Result("dra.cpu", "cpudevnuma001", {{key, "4"}})})));
    EXPECT_EQ(claim.claim.parts.at(0).cpus, 4) << key;
  }
  EXPECT_THAT(Refusal(Object({Result("dra.cpu", "cpudevnuma001", {{"other/cpu", "4"}})})),
              HasSubstr("DRAConsumableCapacity"));
}

TEST(ClaimObjectTest, OnlyWholeCpusAreTaken) {
  for (const Json& amount : {Json("1500m"), Json("0"), Json("-1"), Json("8193"), Json("x"),
                             Json(1.5), Json::array(), Json(nullptr)})
    EXPECT_FALSE(Parse(Object({Result("dra.cpu", "cpudevnuma001", {{"cpu", amount}})})).ok())
        << amount;
  for (const Json& amount : {Json("3"), Json("3000m"), Json(3)}) {
    const auto claim = Must(Parse(Object({Result("dra.cpu", "cpudevnuma001", {{"cpu", amount}})})));
    EXPECT_EQ(claim.claim.parts.at(0).cpus, 3);
  }
}

TEST(ClaimObjectTest, ASubRequestCountsAsItsMainRequest) {
  Json result = Result("dra.cpu", "cpudevnuma001", {{"cpu", "4"}});
  result["request"] = "cpus/small";
  EXPECT_EQ(Parse(Object({result}))->claim.parts.at(0).request, "cpus");
}

TEST(ClaimObjectTest, WithoutAllocationItIsRefused) {
  Json object = Object({});
  object.erase("status");
  EXPECT_THAT(Refusal(object), HasSubstr("has no allocation"));
  object["status"] = {{"allocation", nullptr}};
  EXPECT_THAT(Refusal(object), HasSubstr("has no allocation"));
}

Json WithConfig(const JsonList& configs) {
  Json object = Object({Result("dra.cpu", "cpudevnuma001", {{"cpu", "4"}})});
  object["status"]["allocation"]["devices"]["config"] = Json(configs);
  return object;
}

Json Config(const std::string& source, Json parameters) {
  parameters["apiVersion"] = kParametersVersion;
  parameters["kind"] = kParametersKind;
  return {{"source", source},
          {"requests", Json::array({"cpus"})},
          {"opaque", {{"driver", "dra.cpu"}, {"parameters", std::move(parameters)}}}};
}

TEST(ClaimObjectTest, ParametersOfTheClaimOverrideThoseOfTheClass) {
  const auto claim = Must(
      Parse(WithConfig({Config("FromClaim", {{"wholeCores", false}}),
                        Config("FromClass", {{"wholeCores", true}, {"shareWithin", "pod"}})})));
  EXPECT_EQ(claim.claim.options, (ClaimOptions{.whole_cores = false, .share_within_pod = true}));
}

// A policy decides about a claim as a whole.
TEST(ClaimObjectTest, RequestsOfOneClaimHaveTheSameParameters) {
  Json fast = Result("dra.cpu", "cpudevnuma000", {{"cpu", "4"}});
  Json slow = Result("dra.cpu", "cpudevnuma001", {{"cpu", "4"}});
  fast["request"] = "fast";
  slow["request"] = "slow/small";
  Json object = Object({fast, slow});
  Json& configs = object["status"]["allocation"]["devices"]["config"];
  const auto with = [&](const char* request, const char* type) {
    Json config = Config("FromClaim", {{"coreType", type}});
    config["requests"] = Json::array({request});
    return config;
  };
  configs = Json::array({with("fast", "p-core"), with("slow", "e-core")});
  EXPECT_THAT(Refusal(object), HasSubstr("requests fast and slow/small have different parameters"));
  // It is for another subrequest than the one that was allocated.
  configs = Json::array({with("slow/large", "e-core")});
  EXPECT_EQ(Parse(object)->claim.options, ClaimOptions());
  configs = Json::array({with("fast", "e-core"), with("slow", "e-core")});
  EXPECT_EQ(Parse(object)->claim.options, ClaimOptions{.core_type = CoreKind::kEfficient});
  configs = Json::array({with("fast", "e-core"), with("slow/small", "e-core")});
  EXPECT_EQ(Parse(object)->claim.options, ClaimOptions{.core_type = CoreKind::kEfficient});
}

TEST(ClaimObjectTest, ReadsTheParametersThatChooseCores) {
  const auto claim = Must(Parse(WithConfig(
      {Config("FromClass", {{"coreType", "p-core"}, {"l3", true}, {"avoidSiblings", true}}),
       Config("FromClaim", {{"coreType", "e-core"}, {"l3", false}})})));
  EXPECT_EQ(claim.claim.options,
            (ClaimOptions{.core_type = CoreKind::kEfficient, .avoid_siblings = true}));
}

TEST(ClaimObjectTest, ReadsItsNameInThePodWhoseTemplateItWasMadeFrom) {
  Json object = Object({Result("dra.cpu", "cpudevnuma001", {{"cpu", "4"}})});
  const std::string key = "resource.kubernetes.io/pod-claim-name";
  object["metadata"]["annotations"][key] = "cpus";
  EXPECT_EQ(Parse(object)->claim.pod_claim, "cpus");
  // It becomes a part of a path.
  object["metadata"]["annotations"][key] = "../cpus";
  EXPECT_EQ(Parse(object)->claim.pod_claim, "");
}

TEST(ClaimObjectTest, ParametersForOthersAreLeftAlone) {
  Json other = Config("FromClaim", {{"wholeCores", true}});
  other["requests"] = Json::array({"gpus"});
  Json foreign = Config("FromClaim", {{"x", 1}});
  foreign["opaque"]["driver"] = "gpu.example.com";
  const auto claim = Must(Parse(WithConfig({other, foreign})));
  EXPECT_EQ(claim.claim.options, ClaimOptions());
}

// A container that relies on a parameter must not run without it.
TEST(ClaimObjectTest, UnknownParametersAreRefused) {
  for (const Json& parameters :
       {Json{{"coreType", "fast"}}, Json{{"coreType", true}}, Json{{"wholeCores", "yes"}},
        Json{{"l3", "L3"}}, Json{{"avoidSiblings", 1}}, Json{{"shareWithin", "x"}},
        Json{{"cores", true}}})
    EXPECT_THAT(Refusal(WithConfig({Config("FromClaim", parameters)})),
                HasSubstr("is not supported"));
  Json kind = Config("FromClaim", Json::object());
  kind["opaque"]["parameters"]["kind"] = "Other";
  EXPECT_THAT(Refusal(WithConfig({kind})), HasSubstr("CpuClaim"));
}

// It consumes nothing: the advice about a feature gate would be wrong.
TEST(ClaimObjectTest, AdminAccessIsRefusedByItsName) {
  Json result = Result("dra.cpu", "cpudevnuma001", Json::object());
  result.erase("consumedCapacity");
  result["adminAccess"] = true;
  EXPECT_THAT(Refusal(Object({result})), HasSubstr("adminAccess"));
}

TEST(ClaimObjectTest, WhatIsNoClaimIsRefused) {
  for (const char* const text : {"", "[]", "{", "null", "{}"})
    EXPECT_FALSE(ParseClaimObject(text, kAsked, kPeer).ok()) << text;
  JsonList results;
  for (int i = 0; i < 33; ++i)
    results.push_back(Result("dra.cpu", "cpudevnuma001", {{"cpu", "1"}}));
  EXPECT_THAT(Refusal(Object(results)), HasSubstr("too long"));
  Json long_name = Result("dra.cpu", "cpudevnuma001", {{"cpu", "1"}});
  long_name["pool"] = std::string(300, 'a');
  EXPECT_THAT(Refusal(Object({long_name})), HasSubstr("has 300 bytes"));
}

TEST(ClaimObjectTest, AClaimWithoutAllocationAndPodsIsInNoUse) {
  const auto why = [](const Json& object) { return WhyUnused(JsonText(object), kAsked).value(); };
  Json object = Object({Result("dra.cpu", "cpudevnuma001", {{"cpu", "4"}})});
  EXPECT_EQ(why(object), "") << "it is allocated";
  object["status"].erase("allocation");
  EXPECT_THAT(why(object), HasSubstr("neither allocated nor reserved"));
  object["status"]["reservedFor"] = Json::array();
  EXPECT_THAT(why(object), HasSubstr("neither allocated nor reserved"));
  object["status"]["reservedFor"] = JsonList{{{"resource", "pods"}, {"uid", "p"}}};
  EXPECT_EQ(why(object), "") << "it is reserved";
  object["metadata"]["uid"] = "another";
  EXPECT_THAT(why(object), HasSubstr("another claim of this name"));
}

TEST(ClaimObjectTest, WhatIsNoClaimSaysNothingAboutItsUse) {
  for (const char* const text :
       {"", "{", "[]", "{}", R"({"metadata":{"name":"c4","namespace":"default"}})",
        R"({"metadata":{"name":"c5","namespace":"default","uid":"8ec6fd12-bb08"}})"})
    EXPECT_FALSE(WhyUnused(text, kAsked).ok()) << text;
}

TEST(DriverTest, DevicesAreThoseOfNumaNodes) {
  EXPECT_EQ(kOwn.DeviceName(10), "cpu-numa-10");
  EXPECT_EQ(kPeer.DeviceName(10), "cpudevnuma010");
  for (const Driver& driver : {kOwn, kPeer}) {
    for (const int node : {0, 7, 63, 1023})
      EXPECT_EQ(driver.NodeOfDevice(driver.DeviceName(node)), node);
  }
  for (const char* const device : {"", "cpu-numa-", "cpu-numa-01", "cpu-numa-x", "cpu-numa--1",
                                   "cpu-numa-1024", "cpu-numa-99999999999999999999", "cpu"})
    EXPECT_EQ(kOwn.NodeOfDevice(device), std::nullopt) << device;
}

TEST(DriverTest, DevicesMayBeL3Caches) {
  EXPECT_EQ(kOwn.CacheDeviceName(8), "cpu-l3-8");
  EXPECT_EQ(kPeer.CacheDeviceName(8), "cpudevl3008");
  for (const Driver& driver : {kOwn, kPeer}) {
    for (const int cpu : {0, 7, 64, 1023}) {
      EXPECT_EQ(driver.CpuOfCacheDevice(driver.CacheDeviceName(cpu)), cpu);
      EXPECT_EQ(driver.NodeOfDevice(driver.CacheDeviceName(cpu)), std::nullopt);
      EXPECT_EQ(driver.CpuOfCacheDevice(driver.DeviceName(cpu)), std::nullopt);
    }
  }
  for (const char* const device : {"", "cpu-l3-", "cpu-l3-01", "cpu-l3-x", "cpu-l3-99999999999"})
    EXPECT_EQ(kOwn.CpuOfCacheDevice(device), std::nullopt) << device;
}

TEST(ClaimObjectTest, APartMayBeOfAnL3Cache) {
  const auto claim = Must(Parse(Object({Result("dra.cpu", "cpudevl3008", {{"cpu", "2"}})})));
  EXPECT_EQ(claim.claim.parts[0].l3_of, 8);
  EXPECT_EQ(claim.claim.parts[0].node, std::nullopt);
}

}  // namespace
}  // namespace resmgr::dra
