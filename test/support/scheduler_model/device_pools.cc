// SPDX-License-Identifier: Apache-2.0
#include "test/support/scheduler_model/device_pools.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "test/support/scheduler_model/json_member.h"

namespace resmgr::test {
namespace {

using nlohmann::json;

ExactQuantity RequiredQuantity(const json& value) {
  const std::optional<ExactQuantity> quantity = ExactQuantity::Of(value);
  if (!quantity) throw std::invalid_argument("no quantity: " + value.dump());
  return *quantity;
}

std::optional<ExactQuantity> OptionalQuantity(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  return RequiredQuantity(*found);
}

RequestPolicy PolicyOf(const json& object) {
  RequestPolicy policy;
  policy.fallback = OptionalQuantity(object, "default");
  for (const json& value : object.value("validValues", json::array())) {
    policy.valid_values.push_back(RequiredQuantity(value));
  }
  if (object.contains("validRange")) {
    const json& range = object.at("validRange");
    policy.min = OptionalQuantity(range, "min");
    policy.max = OptionalQuantity(range, "max");
    policy.step = OptionalQuantity(range, "step");
  }
  return policy;
}

ResourceList CountersOf(const json& counters) {
  ResourceList values;
  for (const auto& [name, counter] : counters.items()) {
    values[name] = RequiredQuantity(counter.at("value"));
  }
  return values;
}

PoolDevice DeviceOf(const json& object, const DevicePool& pool) {
  PoolDevice device;
  device.driver = pool.driver;
  device.pool = pool.name;
  device.name = object.at("name");
  device.shared = object.value("allowMultipleAllocations", false);
  for (const auto& [name, value] : MemberOf(object, "attributes").items()) {
    device.attributes[Qualified(name, pool.driver)] = value;
  }
  for (const auto& [name, value] : MemberOf(object, "capacity").items()) {
    DeviceCapacity& capacity = device.capacities[Qualified(name, pool.driver)];
    capacity.value = RequiredQuantity(value.at("value"));
    if (value.contains("requestPolicy")) capacity.policy = PolicyOf(value.at("requestPolicy"));
  }
  for (const json& use : object.value("consumesCounters", json::array())) {
    device.counters[use.at("counterSet")] = CountersOf(use.at("counters"));
  }
  for (const json& taint : object.value("taints", json::array())) {
    device.taints.push_back({taint.at("key"), taint.value("value", ""), taint.at("effect")});
  }
  return device;
}

}  // namespace

std::string Qualified(std::string_view name, std::string_view driver) {
  if (name.find('/') != std::string_view::npos) return std::string(name);
  return std::string(driver) + "/" + std::string(name);
}

std::vector<DevicePool> CompletePools(const json& slices, std::string_view node) {
  using Key = std::pair<std::string, std::string>;
  std::map<Key, int64_t> newest;
  for (const json& slice : slices) {
    const json& spec = slice.at("spec");
    if (spec.value("nodeName", "") != node) continue;
    int64_t& generation = newest[{spec.at("driver"), spec.at("pool").at("name")}];
    generation = std::max(generation, spec.at("pool").at("generation").get<int64_t>());
  }
  std::vector<DevicePool> pools;
  for (const auto& [key, generation] : newest) {
    DevicePool pool{.driver = key.first,
                    .name = key.second,
                    .generation = generation,
                    .devices = {},
                    .counters = {}};
    int64_t seen = 0;
    int64_t expected = 0;
    for (const json& slice : slices) {
      const json& spec = slice.at("spec");
      if (spec.value("nodeName", "") != node || spec.at("driver") != pool.driver ||
          spec.at("pool").at("name") != pool.name ||
          spec.at("pool").at("generation") != generation) {
        continue;
      }
      ++seen;
      expected = spec.at("pool").at("resourceSliceCount");
      for (const json& device : spec.value("devices", json::array())) {
        pool.devices.push_back(DeviceOf(device, pool));
      }
      for (const json& set : spec.value("sharedCounters", json::array())) {
        pool.counters[set.at("name")] = CountersOf(set.at("counters"));
      }
    }
    if (seen == expected) pools.push_back(std::move(pool));
  }
  return pools;
}

std::optional<ExactQuantity> Consumed(const DeviceCapacity& capacity,
                                      const std::optional<ExactQuantity>& request) {
  if (!capacity.policy) return request ? *request : capacity.value;
  const RequestPolicy& policy = *capacity.policy;
  if (!request && !policy.fallback) return capacity.value;
  const ExactQuantity wanted = request ? *request : *policy.fallback;
  if (!policy.valid_values.empty()) {
    const auto next =
        std::lower_bound(policy.valid_values.begin(), policy.valid_values.end(), wanted);
    if (next == policy.valid_values.end()) return std::nullopt;
    return *next;
  }
  if (!policy.min) return wanted;
  ExactQuantity rounded = std::max(wanted, *policy.min);
  if (policy.step && !policy.step->IsZero()) {
    rounded = *policy.min + *policy.step * (rounded - *policy.min).StepsOf(*policy.step);
  }
  if (policy.max && rounded > *policy.max) return std::nullopt;
  return rounded;
}

}  // namespace resmgr::test
