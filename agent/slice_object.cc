// SPDX-License-Identifier: Apache-2.0
#include "agent/slice_object.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/kube/names.h"

namespace resmgr::agent {
namespace {

// Limits of the API, but for devices, of which it takes 128.
constexpr size_t kMostSliceDevices = 64;
constexpr size_t kMostSliceAttributes = 31;  // with the capacity 32
constexpr size_t kLongestSliceName = 253;
constexpr size_t kLongestDriverName = 63;
constexpr size_t kLongestSliceText = 64;
constexpr int64_t kMostSliceCpus = 1 << 20;

bool IsDeviceName(std::string_view name) {
  return name.size() <= kLongestDriverName && IsSubdomain(name) &&
         name.find('.') == std::string_view::npos;
}

Status CheckDevice(const SliceDevice& device) {
  const std::string shown = Printable(device.name, 64);
  if (!IsDeviceName(device.name)) return InvalidArgument("\"{}\" is no name of a device", shown);
  if (device.attributes.size() > kMostSliceAttributes)
    return InvalidArgument("device {} has {} attributes", shown, device.attributes.size());
  std::set<std::string_view> names;
  for (const SliceAttribute& attribute : device.attributes) {
    const std::string* const text = std::get_if<std::string>(&attribute.value);
    if (!IsLabelKey(attribute.name) || !names.insert(attribute.name).second ||
        (text != nullptr && text->size() > kLongestSliceText))
      return InvalidArgument("device {}: the attribute \"{}\" is not valid", shown,
                             Printable(attribute.name, 64));
  }
  const bool whole = device.step > 0 && device.cpus > 0 && device.cpus % device.step == 0;
  if (!IsLabelKey(device.capacity) || !whole || device.cpus > kMostSliceCpus)
    return InvalidArgument("device {}: {} CPUs in steps of {} are no capacity", shown, device.cpus,
                           device.step);
  return OkStatus();
}

Json AttributeValue(const SliceAttribute& attribute) {
  if (const auto* const number = std::get_if<int64_t>(&attribute.value)) return {{"int", *number}};
  if (const bool* const truth = std::get_if<bool>(&attribute.value)) return {{"bool", *truth}};
  return {{"string", std::get<std::string>(attribute.value)}};
}

// The API takes a range only where it has more than one step.
Json RequestPolicy(const SliceDevice& device) {
  const std::string step = fmt::format("{}", device.step);
  Json policy = {{"default", step}};
  if (device.cpus < 2 * device.step) {
    policy["validValues"] = Json::array({step});
  } else {
    policy["validRange"] = {{"min", step}, {"step", step}};
  }
  return policy;
}

Json DeviceObject(const SliceDevice& device) {
  Json attributes = Json::object();
  for (const SliceAttribute& attribute : device.attributes)
    attributes[attribute.name] = AttributeValue(attribute);
  Json capacity = Json::object();
  capacity[device.capacity] = {{"value", fmt::format("{}", device.cpus)},
                               {"requestPolicy", RequestPolicy(device)}};
  return {{"name", device.name},
          {"allowMultipleAllocations", true},
          {"attributes", std::move(attributes)},
          {"capacity", std::move(capacity)}};
}

}  // namespace

std::string SliceName(std::string_view node, std::string_view driver) {
  return fmt::format("{}-{}", node, driver);
}

Status CheckDevices(std::string_view node, const DeviceReport& report) {
  if (report.driver.size() > kLongestDriverName || !IsSubdomain(report.driver))
    return InvalidArgument("\"{}\" is no name of a driver", Printable(report.driver, 64));
  if (SliceName(node, report.driver).size() > kLongestSliceName)
    return InvalidArgument("the names of the node and of driver {} are too long for an object",
                           report.driver);
  if (report.devices.size() > kMostSliceDevices)
    return InvalidArgument("{} devices: {} are the limit", report.devices.size(),
                           kMostSliceDevices);
  std::set<std::string_view> names;
  for (const SliceDevice& device : report.devices) {
    RESMGR_RETURN_IF_ERROR(CheckDevice(device));
    if (!names.insert(device.name).second)
      return InvalidArgument("there are two devices {}", device.name);
  }
  return OkStatus();
}

Json SliceSpec(std::string_view node, const DeviceReport& report, int64_t generation) {
  Json spec = {{"driver", report.driver},
               {"nodeName", node},
               {"pool", {{"name", node}, {"generation", generation}, {"resourceSliceCount", 1}}}};
  Json devices = Json::array();
  for (const SliceDevice& device : report.devices)
    devices.push_back(DeviceObject(device));
  spec["devices"] = std::move(devices);
  return spec;
}

Json SliceObject(std::string_view node, std::string_view uid, const DeviceReport& report,
                 int64_t generation) {
  Json owners = Json::array();
  owners.push_back(
      {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", uid}, {"controller", true}});
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceSlice"},
          {"metadata",
           {{"name", SliceName(node, report.driver)}, {"ownerReferences", std::move(owners)}}},
          {"spec", SliceSpec(node, report, generation)}};
}

}  // namespace resmgr::agent
