// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/dra_reports.h"

#include <string_view>

#include <fmt/format.h>

#include "pkg/api/node_claims.pb.h"
#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/claims/claim_options.h"

namespace resmgr {
namespace {

// Standard attribute of Kubernetes.
constexpr std::string_view kNumaNodeAttribute = "resource.kubernetes.io/numaNode";
// Names of dra-driver-cpu for the same attribute, from before there was a standard.
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

Problem HeldWithoutDriver(size_t claims) {
  return {.kind = "plugin",
          .message = fmt::format("the driver for claims is off, and CPUs of {} stay held",
                                 CountText(static_cast<int64_t>(claims), "claim")),
          .objects = {},
          .next = "set dra.Enable to true until the pods with claims have ended"};
}

std::optional<Problem> HeldOfFormerDriver(const HeldClaims& held, const dra::Driver& now) {
  std::string former;
  int64_t claims = 0;
  for (const HeldClaim& one : held.all()) {
    if (now.MayHaveGiven(one.claim)) continue;
    former = one.claim.driver;
    ++claims;
  }
  if (claims == 0) return std::nullopt;
  return Problem{
      .kind = "plugin",
      .message = fmt::format("the driver for claims was {} before, and CPUs of {} stay held",
                             former, CountText(claims, "claim")),
      .objects = {},
      .next = fmt::format("let the driver be {} again (dra.Driver, dra.Compatible) until the pods "
                          "with these claims have ended",
                          former)};
}

Problem DevicesUntaken(const Status& why) {
  return {
      .kind = "plugin",
      .message = fmt::format("no ResourceSlice says which CPUs can be claimed: {}",
                             why.ok() ? "the agent does not answer" : Printable(Message(why))),
      .objects = {},
      .next = why.code() == StatusCode::kPermissionDenied
                  ? "compare the agent's role with charts/ or sample-configs/, and the cluster's "
                    "version with docs/scheduler.md; the agent tries again every ten minutes"
                  : "start cri-resmgr-agent, with claims in its -node-reports"};
}

std::optional<Problem> NoRoomForDevices(const Machine& machine, DraDevices devices) {
  const size_t left = dra::DevicesLeftOut(machine, devices);
  if (left == 0) return std::nullopt;
  return Problem{.kind = "plugin",
                 .message = fmt::format("a pool has at most {} devices for claims: claims get no "
                                        "CPUs of {} further {}",
                                        dra::kMostNodeDevices, left,
                                        devices == DraDevices::kL3 ? "L3 caches" : "NUMA nodes"),
                 .objects = {},
                 .next = devices == DraDevices::kL3
                             ? "set dra.Devices to numa"
                             : "use these CPUs for containers without claims"};
}

}  // namespace resmgr
