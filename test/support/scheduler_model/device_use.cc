// SPDX-License-Identifier: Apache-2.0
#include "test/support/scheduler_model/device_use.h"

#include "test/support/scheduler_model/json_member.h"

namespace resmgr::test {

using nlohmann::json;

std::string DeviceId(const PoolDevice& device) {
  return device.driver + "/" + device.pool + "/" + device.name;
}

void DeviceUse::AddClaim(const json& claim) {
  const json::json_pointer results("/status/allocation/devices/results");
  if (!claim.contains(results)) return;
  for (const json& result : claim.at(results)) {
    const std::string driver = result.at("driver");
    const std::string id = driver + "/" + result.at("pool").get<std::string>() + "/" +
                           result.at("device").get<std::string>();
    ++holders_[id];
    for (const auto& [name, value] : MemberOf(result, "consumedCapacity").items()) {
      consumed_[id][Qualified(name, driver)] += ExactQuantity::Of(value).value();
    }
  }
}

std::optional<ResourceList> DeviceUse::Offer(const PoolDevice& device,
                                             const ResourceList& requests) const {
  const auto holders = holders_.find(DeviceId(device));
  const bool held = holders != holders_.end() && holders->second > 0;
  if (held && !device.shared) return std::nullopt;
  // The counters of a device in use are subtracted already.
  if (!held && !CountersSuffice(device)) return std::nullopt;
  const ResourceList remaining = Remaining(device);
  for (const auto& [name, quantity] : requests) {
    if (!device.capacities.contains(name)) return std::nullopt;
  }
  ResourceList offer;
  for (const auto& [name, capacity] : device.capacities) {
    const auto found = requests.find(name);
    const std::optional<ExactQuantity> request =
        found == requests.end() ? std::nullopt : std::optional<ExactQuantity>(found->second);
    const std::optional<ExactQuantity> consumed =
        device.shared ? Consumed(capacity, request) : request.value_or(ExactQuantity());
    if (!consumed || *consumed > remaining.at(name)) return std::nullopt;
    if (device.shared) offer[name] = *consumed;
  }
  return offer;
}

void DeviceUse::Take(const PoolDevice& device, const ResourceList& consumed) {
  const std::string id = DeviceId(device);
  ++holders_[id];
  for (const auto& [name, quantity] : consumed)
    consumed_[id][name] += quantity;
}

void DeviceUse::GiveBack(const PoolDevice& device, const ResourceList& consumed) {
  const std::string id = DeviceId(device);
  --holders_[id];
  for (const auto& [name, quantity] : consumed)
    consumed_[id][name] -= quantity;
}

ResourceList DeviceUse::Remaining(const PoolDevice& device) const {
  ResourceList remaining;
  const auto consumed = consumed_.find(DeviceId(device));
  for (const auto& [name, capacity] : device.capacities) {
    remaining[name] = capacity.value;
    if (consumed == consumed_.end()) continue;
    const auto used = consumed->second.find(name);
    if (used != consumed->second.end()) remaining[name] -= used->second;
  }
  return remaining;
}

bool DeviceUse::CountersSuffice(const PoolDevice& device) const {
  if (device.counters.empty()) return true;
  for (const DevicePool& pool : pools_) {
    if (pool.driver != device.driver || pool.name != device.pool) continue;
    std::map<std::string, ResourceList> left = pool.counters;
    for (const PoolDevice& other : pool.devices) {
      const auto holders = holders_.find(DeviceId(other));
      if (holders == holders_.end() || holders->second == 0) continue;
      for (const auto& [set, counters] : other.counters) {
        for (const auto& [name, quantity] : counters)
          left[set][name] -= quantity;
      }
    }
    for (const auto& [set, counters] : device.counters) {
      for (const auto& [name, quantity] : counters) {
        if (left[set][name] < quantity) return false;
      }
    }
    return true;
  }
  return false;
}

}  // namespace resmgr::test
