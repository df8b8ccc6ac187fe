// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/device_report.h"

#include <string_view>

#include "pkg/api/node_claims.pb.h"
#include "pkg/claims/claim_options.h"

namespace resmgr {
namespace {

// Standard attribute of Kubernetes.
constexpr std::string_view kNumaNodeAttribute = "resource.kubernetes.io/numaNode";
// Names of dra-driver-cpu for the same, from before there was a standard.
constexpr std::string_view kOlderNumaNodeAttributes[] = {"dra.cpu/numaNodeID", "dra.net/numaNode"};

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
    message.set_name(device.l3_of ? driver.CacheDeviceName(*device.l3_of)
                                  : driver.DeviceName(device.node));
    AddAttribute(message, std::string(kNumaNodeAttribute)).set_number(device.node);
    AddAttribute(message, driver.name + "/socketID").set_number(device.package);
    AddAttribute(message, driver.name + "/numCPUs").set_number(device.cpus);
    AddAttribute(message, driver.name + "/smtEnabled").set_truth(device.smt);
    if (device.kind)
      AddAttribute(message, driver.name + "/coreType")
          .set_text(std::string(CoreTypeName(*device.kind)));
    if (device.l3_of) AddAttribute(message, driver.name + "/cacheL3ID").set_number(*device.l3_of);
    if (driver.compatible) {
      for (const std::string_view name : kOlderNumaNodeAttributes)
        AddAttribute(message, std::string(name)).set_number(device.node);
    }
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
