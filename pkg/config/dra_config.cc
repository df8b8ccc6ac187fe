// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/dra_config.h"

#include "pkg/base/parse.h"
#include "pkg/kube/names.h"

namespace resmgr {
namespace {

constexpr size_t kLongestDriver = 63;  // bytes, by the API of ResourceSlices

Status CheckDriver(std::string_view name) {
  if (name.size() <= kLongestDriver && IsSubdomain(name)) return OkStatus();
  return InvalidArgument("\"{}\" is not a DNS subdomain of {} bytes at most", Printable(name, 64),
                         kLongestDriver);
}

}  // namespace

void DescribeDra(ConfigSection& root, DraConfig& config) {
  root.Map("dra", [&config](ConfigSection& dra) {
    dra.Bool("Enable", config.enable,
             "`true`: the daemon is a driver for Dynamic Resource Allocation, and the agent "
             "publishes the node's CPUs as devices that pods can claim");
    dra.Text("Driver", config.driver, "the driver's name, which DeviceClasses select", CheckDriver);
    dra.Bool("Compatible", config.compatible,
             "`true`: name, devices, attributes and environment are those of dra-driver-cpu "
             "(`dra.cpu`), in place of `Driver`");
    dra.Choice("Devices", {{"numa", DraDevices::kNuma}, {"l3", DraDevices::kL3}}, config.devices,
               "`numa`: each NUMA node is a device; `l3`: each L3 cache, in NUMA nodes that have "
               "several");
    dra.Bool("Metadata", config.metadata,
             "`true`: containers of a claim find a file with its CPUs, in the form of Kubernetes' "
             "device metadata (`metadata.resource.k8s.io/v1beta1`)");
  });
}

}  // namespace resmgr
