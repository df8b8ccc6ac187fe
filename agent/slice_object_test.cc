// SPDX-License-Identifier: Apache-2.0
#include "agent/slice_object.h"

#include <string>

#include <gtest/gtest.h>

#include "pkg/base/json.h"

namespace resmgr::agent {
namespace {

SliceDevice Device(const std::string& name, int64_t cpus, int64_t step = 1) {
  return {.name = name,
          .attributes = {{"resource.kubernetes.io/numaNode", int64_t{0}},
                         {"dra.cpu/smtEnabled", false},
                         {"dra.cpu/model", std::string("x")}},
          .capacity = "dra.cpu/cpu",
          .cpus = cpus,
          .step = step};
}

TEST(SliceObjectTest, IsTheSampleOfThePeer) {
  const DeviceReport report{
      .driver = "dra.cpu",
      .devices = {{.name = "cpudevnuma000",
                   .attributes = {{"resource.kubernetes.io/numaNode", int64_t{0}},
                                  {"dra.cpu/smtEnabled", false}},
                   .capacity = "dra.cpu/cpu",
                   .cpus = 7}}};
  EXPECT_EQ(CheckDevices("worker-1", report), OkStatus());
  const Json expected = ParseJson(R"({
    "apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice",
    "metadata":{"name":"worker-1-dra.cpu","ownerReferences":[
      {"apiVersion":"v1","kind":"Node","name":"worker-1","uid":"NODE-UID","controller":true}]},
    "spec":{"driver":"dra.cpu","nodeName":"worker-1",
      "pool":{"name":"worker-1","generation":3,"resourceSliceCount":1},
      "devices":[{"name":"cpudevnuma000","allowMultipleAllocations":true,
        "attributes":{"resource.kubernetes.io/numaNode":{"int":0},"dra.cpu/smtEnabled":{"bool":false}},
        "capacity":{"dra.cpu/cpu":{"value":"7",
          "requestPolicy":{"default":"1","validRange":{"min":"1","step":"1"}}}}}]}})")
                            .value();
  EXPECT_EQ(SliceObject("worker-1", "NODE-UID", report, 3), expected);
}

// The API refuses a range of one step, and claims without an amount would take the whole device.
TEST(SliceObjectTest, EachDeviceHasARequestPolicyThatTheApiTakes) {
  const auto policy = [](int64_t cpus, int64_t step) {
    const DeviceReport report{.driver = "dra.cpu", .devices = {Device("a", cpus, step)}};
    return SliceSpec("n", report, 1)["devices"][0]["capacity"]["dra.cpu/cpu"]["requestPolicy"];
  };
  EXPECT_EQ(policy(8, 2), (Json{{"default", "2"}, {"validRange", {{"min", "2"}, {"step", "2"}}}}));
  EXPECT_EQ(policy(2, 2), (Json{{"default", "2"}, {"validValues", Json::array({"2"})}}));
  EXPECT_EQ(policy(1, 1), (Json{{"default", "1"}, {"validValues", Json::array({"1"})}}));
}

TEST(SliceObjectTest, WhatTheApiRefusesIsNoReport) {
  const auto check = [](const SliceDevice& device) {
    return CheckDevices("n", {.driver = "dra.cpu", .devices = {device}}).ok();
  };
  EXPECT_TRUE(check(Device("a", 4, 2)));
  EXPECT_FALSE(check(Device("a.b", 4)));
  EXPECT_FALSE(check(Device("", 4)));
  EXPECT_FALSE(check(Device("a", 0)));
  EXPECT_FALSE(check(Device("a", 3, 2)));
  EXPECT_FALSE(check(Device("a", 3, 0)));
  SliceDevice device = Device("a", 4);
  device.attributes.push_back(device.attributes.front());
  EXPECT_FALSE(check(device)) << "twice";
  device = Device("a", 4);
  device.attributes.push_back({"x", std::string(65, 'x')});
  EXPECT_FALSE(check(device));
  device = Device("a", 4);
  device.capacity = "";
  EXPECT_FALSE(check(device));
  EXPECT_FALSE(CheckDevices("n", {.driver = "a/b"}).ok());
  EXPECT_FALSE(CheckDevices(std::string(250, 'n'), {.driver = "dra.cpu"}).ok());
  EXPECT_FALSE(
      CheckDevices("n", {.driver = "dra.cpu", .devices = {Device("a", 1), Device("a", 1)}}).ok());
  DeviceReport many{.driver = "dra.cpu"};
  for (int i = 0; i < 65; ++i)
    many.devices.push_back(Device("d" + std::to_string(i), 1));
  EXPECT_FALSE(CheckDevices("n", many).ok());
}

}  // namespace
}  // namespace resmgr::agent
