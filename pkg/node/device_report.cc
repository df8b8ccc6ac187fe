// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/device_report.h"

#include <string_view>

#include "pkg/api/node_claims.pb.h"

namespace resmgr {
namespace {

// Standard attribute of Kubernetes.
constexpr std::string_view kNumaNodeAttribute = "resource.kubernetes.io/numaNode";

cri_resmgr::v1::SliceAttribute& AddAttribute(cri_resmgr::v1::SliceDevice& device,
                                             const std::string& name) {
  cri_resmgr::v1::SliceAttribute& attribute = *device.add_attributes();
  attribute.set_name(name);
  return attribute;
}

}  // namespace

std::string DeviceReport(const dra::Driver& driver, const std::vector<dra::NodeDevice>& devices,
                         uint64_t beat) {
  cri_resmgr::v1::ShowDevicesRequest request;
  request.set_driver(driver.name);
  request.set_beat(beat);
  for (const dra::NodeDevice& device : devices) {
    cri_resmgr::v1::SliceDevice& message = *request.add_devices();
    message.set_name(driver.DeviceName(device.node));
    AddAttribute(message, std::string(kNumaNodeAttribute)).set_number(device.node);
    AddAttribute(message, driver.name + "/socketID").set_number(device.package);
    AddAttribute(message, driver.name + "/numCPUs").set_number(device.cpus);
    AddAttribute(message, driver.name + "/smtEnabled").set_truth(device.smt);
    message.set_capacity(driver.Capacity());
    message.set_cpus(device.cpus);
    message.set_step(device.step);
  }
  return request.SerializeAsString();
}

std::string NoDeviceReport() {
  cri_resmgr::v1::ShowDevicesRequest request;
  request.set_absent(true);
  return request.SerializeAsString();
}

}  // namespace resmgr
