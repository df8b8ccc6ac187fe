// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/driver.h"

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr::dra {
namespace {

constexpr std::string_view kOwnPrefix = "cpu-numa-";
constexpr std::string_view kCompatiblePrefix = "cpudevnuma";
constexpr std::string_view kOwnCachePrefix = "cpu-l3-";
constexpr std::string_view kCompatibleCachePrefix = "cpudevl3";

}  // namespace

std::string Driver::DeviceName(int node) const {
  return compatible ? fmt::format("{}{:03}", kCompatiblePrefix, node)
                    : fmt::format("{}{}", kOwnPrefix, node);
}

std::optional<int> Driver::NodeOfDevice(std::string_view device) const {
  const std::string_view prefix = compatible ? kCompatiblePrefix : kOwnPrefix;
  if (!device.starts_with(prefix)) return std::nullopt;
  const auto node = ParseUint(device.substr(prefix.size()));
  constexpr uint64_t kMostNodes = 1024;  // of Linux (NODES_SHIFT)
  // Only the name that the node's device really has: "cpu-numa-01" is no device.
  if (!node || *node >= kMostNodes || DeviceName(static_cast<int>(*node)) != device)
    return std::nullopt;
  return static_cast<int>(*node);
}

std::string Driver::CacheDeviceName(int cpu) const {
  return compatible ? fmt::format("{}{:03}", kCompatibleCachePrefix, cpu)
                    : fmt::format("{}{}", kOwnCachePrefix, cpu);
}

std::optional<int> Driver::CpuOfCacheDevice(std::string_view device) const {
  const std::string_view prefix = compatible ? kCompatibleCachePrefix : kOwnCachePrefix;
  if (!device.starts_with(prefix)) return std::nullopt;
  const auto cpu = ParseUint(device.substr(prefix.size()));
  if (!cpu || *cpu > CpuSet::kMaxId || CacheDeviceName(static_cast<int>(*cpu)) != device)
    return std::nullopt;
  return static_cast<int>(*cpu);
}

std::string Driver::NameAt(const ClaimPart& place) const {
  return place.l3_of ? CacheDeviceName(*place.l3_of) : DeviceName(place.node.value_or(0));
}

}  // namespace resmgr::dra
