// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/device_report.h"

#include <gtest/gtest.h>

#include "pkg/api/node_claims.pb.h"

namespace resmgr {
namespace {

TEST(DeviceReportTest, NamesAreThoseOfTheDriver) {
  const std::vector<dra::NodeDevice> devices = {
      {.node = 1, .package = 0, .cpus = 6, .step = 2, .smt = true}};
  cri_resmgr::v1::ShowDevicesRequest request;
  ASSERT_TRUE(
      request.ParseFromString(DeviceReport({.name = "dra.cpu", .compatible = true}, devices, 7)));
  EXPECT_EQ(request.driver(), "dra.cpu");
  EXPECT_EQ(request.beat(), 7U);
  ASSERT_EQ(request.devices_size(), 1);
  const cri_resmgr::v1::SliceDevice& device = request.devices(0);
  EXPECT_EQ(device.name(), "cpudevnuma001");
  EXPECT_EQ(device.capacity(), "dra.cpu/cpu");
  EXPECT_EQ(device.cpus(), 6);
  EXPECT_EQ(device.step(), 2);
  ASSERT_EQ(device.attributes_size(), 6);
  EXPECT_EQ(device.attributes(0).name(), "resource.kubernetes.io/numaNode");
  EXPECT_EQ(device.attributes(0).number(), 1);
  EXPECT_EQ(device.attributes(1).name(), "dra.cpu/socketID");
  EXPECT_EQ(device.attributes(2).name(), "dra.cpu/numCPUs");
  EXPECT_EQ(device.attributes(2).number(), 6);
  EXPECT_EQ(device.attributes(3).name(), "dra.cpu/smtEnabled");
  EXPECT_TRUE(device.attributes(3).truth());
  EXPECT_EQ(device.attributes(4).name(), "dra.cpu/numaNodeID");
  EXPECT_EQ(device.attributes(4).number(), 1);
  EXPECT_EQ(device.attributes(5).name(), "dra.net/numaNode");
  ASSERT_TRUE(request.ParseFromString(DeviceReport({.name = "cpu.example.com"}, devices, 1)));
  EXPECT_EQ(request.devices(0).name(), "cpu-numa-1");
  EXPECT_EQ(request.devices(0).attributes_size(), 4);
  EXPECT_EQ(request.devices(0).capacity(), "cpu.example.com/cpu");
  ASSERT_TRUE(request.ParseFromString(NoDeviceReport()));
  EXPECT_TRUE(request.absent());
}

TEST(DeviceReportTest, ACacheHasItsNumberAndTheKindOfItsCores) {
  const std::vector<dra::NodeDevice> devices = {
      {.node = 1, .l3_of = 8, .cpus = 4, .kind = CoreKind::kEfficient}};
  cri_resmgr::v1::ShowDevicesRequest request;
  ASSERT_TRUE(request.ParseFromString(DeviceReport({.name = "cpu.example.com"}, devices, 7)));
  const cri_resmgr::v1::SliceDevice& device = request.devices(0);
  EXPECT_EQ(device.name(), "cpu-l3-8");
  ASSERT_EQ(device.attributes_size(), 6);
  EXPECT_EQ(device.attributes(0).number(), 1);
  EXPECT_EQ(device.attributes(4).name(), "cpu.example.com/coreType");
  EXPECT_EQ(device.attributes(4).text(), "e-core");
  EXPECT_EQ(device.attributes(5).name(), "cpu.example.com/cacheL3ID");
  EXPECT_EQ(device.attributes(5).number(), 8);
}

}  // namespace
}  // namespace resmgr
