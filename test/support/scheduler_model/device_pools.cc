// SPDX-License-Identifier: Apache-2.0
#include "test/support/scheduler_model/device_pools.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
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

using Faults = std::vector<std::string>;

constexpr size_t kMostDevices = 128;
constexpr size_t kMostSpecialDevices = 64;  // where one has taints, counters or lists
constexpr size_t kMostCounterSets = 8;
constexpr size_t kMostCounters = 32;
constexpr size_t kMostProperties = 32;
constexpr size_t kMostText = 64;
constexpr size_t kMostValidValues = 10;

bool IsDnsLabel(std::string_view name) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= 63 && plain(name.front()) && plain(name.back()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return plain(c) || c == '-'; });
}

bool IsDnsSubdomain(std::string_view name, size_t most) {
  if (name.size() > most) return false;
  while (true) {
    const size_t dot = name.find('.');
    if (!IsDnsLabel(name.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    name.remove_prefix(dot + 1);
  }
}

// [DOMAIN/]IDENTIFIER
bool IsQualifiedName(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash != std::string_view::npos) {
    if (!IsDnsSubdomain(name.substr(0, slash), 63)) return false;
    name.remove_prefix(slash + 1);
  }
  if (name.empty() || name.size() > 32 || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

void CheckAttribute(const json& value, const std::string& of, Faults& faults) {
  if (value.size() != 1) {
    faults.push_back(of + " has not exactly one value");
    return;
  }
  const std::string type = value.begin().key();
  const json& content = value.begin().value();
  const bool valid = (type == "int" && content.is_number_integer()) ||
                     (type == "bool" && content.is_boolean()) ||
                     ((type == "string" || type == "version") && content.is_string() &&
                      content.get_ref<const std::string&>().size() <= kMostText);
  const bool list = type == "ints" || type == "bools" || type == "strings" || type == "versions";
  if (!valid && !(list && content.is_array())) faults.push_back(of + ": " + value.dump());
}

void CheckRange(const RequestPolicy& policy, const DeviceCapacity& capacity, const std::string& of,
                Faults& faults) {
  if (!policy.min) {
    faults.push_back(of + ": range without min");
    return;
  }
  if (*policy.min > capacity.value) faults.push_back(of + ": min above the value");
  if (policy.max && (*policy.max < *policy.min || *policy.max > capacity.value)) {
    faults.push_back(of + ": max below min or above the value");
  }
  if (policy.step) {
    if (*policy.step <= ExactQuantity()) {
      faults.push_back(of + ": step is not above 0");
      return;
    }
    if (*policy.min + *policy.step > capacity.value) {
      faults.push_back(of + ": min + step above the value");
    }
  }
}

void CheckCapacity(const DeviceCapacity& capacity, bool shared, const std::string& of,
                   Faults& faults) {
  if (capacity.value < ExactQuantity()) faults.push_back(of + " is below 0");
  if (!capacity.policy) return;
  const RequestPolicy& policy = *capacity.policy;
  if (!shared) faults.push_back(of + ": requestPolicy without allowMultipleAllocations");
  const bool range = policy.min || policy.max || policy.step;
  if (range && !policy.valid_values.empty()) faults.push_back(of + ": values and a range");
  if (range) CheckRange(policy, capacity, of, faults);
  if (policy.valid_values.size() > kMostValidValues) faults.push_back(of + ": many values");
  for (size_t i = 1; i < policy.valid_values.size(); ++i) {
    if (policy.valid_values[i - 1] >= policy.valid_values[i]) {
      faults.push_back(of + ": values do not ascend");
    }
  }
  if (!policy.valid_values.empty() && policy.valid_values.back() > capacity.value) {
    faults.push_back(of + ": a value above the capacity");
  }
  if ((range || !policy.valid_values.empty()) && !policy.fallback) {
    faults.push_back(of + ": no default");
  }
  if (policy.fallback && Consumed(capacity, policy.fallback) != policy.fallback) {
    faults.push_back(of + ": the default is not valid");
  }
}

// Faults of the JSON that a value of PoolDevice does not show.
void CheckDeviceObject(const json& object, Faults& faults) {
  const std::string name = object.value("name", "");
  if (!IsDnsLabel(name)) faults.push_back("device name " + name);
  const json attributes = object.value("attributes", json::object());
  const json capacities = object.value("capacity", json::object());
  if (attributes.size() + capacities.size() > kMostProperties) {
    faults.push_back(name + ": many attributes and capacities");
  }
  for (const auto& [key, value] : attributes.items()) {
    if (!IsQualifiedName(key)) faults.push_back(name + ": attribute name " + key);
    CheckAttribute(value, name + ": " + key, faults);
  }
  for (const auto& [key, value] : capacities.items()) {
    if (!IsQualifiedName(key)) faults.push_back(name + ": capacity name " + key);
    const json policy = value.value("requestPolicy", json::object());
    if (policy.contains("validValues") && policy.contains("validRange")) {
      faults.push_back(name + ": values and a range");
    }
  }
  if (object.value("consumesCounters", json::array()).size() > 2) {
    faults.push_back(name + ": more than two counter sets");
  }
  if (object.value("taints", json::array()).size() > 16) faults.push_back(name + ": many taints");
}

void CheckSpec(const json& spec, Faults& faults) {
  if (!IsDnsSubdomain(spec.value("driver", ""), 63)) faults.push_back("driver");
  const json& pool = spec.at("pool");
  const std::string pool_name = pool.value("name", "");
  if (pool_name.empty() || pool_name.size() > 253) faults.push_back("pool name " + pool_name);
  if (pool.value("resourceSliceCount", 0) <= 0) faults.push_back("resourceSliceCount");
  int selections = 0;
  for (const char* const key : {"nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"}) {
    selections += spec.contains(key) ? 1 : 0;
  }
  if (selections != 1) faults.push_back("not exactly one selection of nodes");
  const json devices = spec.value("devices", json::array());
  const json sets = spec.value("sharedCounters", json::array());
  if (!devices.empty() && !sets.empty()) faults.push_back("devices and counters in one slice");
  const bool special = std::any_of(devices.begin(), devices.end(), [](const json& device) {
    return device.contains("taints") || device.contains("consumesCounters");
  });
  if (devices.size() > (special ? kMostSpecialDevices : kMostDevices)) {
    faults.push_back(std::to_string(devices.size()) + " devices in one slice");
  }
  for (const json& device : devices)
    CheckDeviceObject(device, faults);
  if (sets.size() > kMostCounterSets) faults.push_back("many counter sets");
  for (const json& set : sets) {
    if (!IsDnsLabel(set.value("name", ""))) faults.push_back("name of a counter set");
    if (set.at("counters").size() > kMostCounters) faults.push_back("many counters");
    for (const auto& [name, counter] : set.at("counters").items()) {
      if (!IsDnsLabel(name)) faults.push_back("counter name " + name);
    }
  }
}

void CheckPool(const DevicePool& pool, Faults& faults) {
  std::set<std::string> names;
  for (const PoolDevice& device : pool.devices) {
    if (!names.insert(device.name).second) faults.push_back(device.name + " twice");
    for (const auto& [name, capacity] : device.capacities) {
      CheckCapacity(capacity, device.shared, device.name + ": " + name, faults);
    }
    for (const auto& [set, counters] : device.counters) {
      const auto found = pool.counters.find(set);
      for (const auto& [name, quantity] : counters) {
        if (found == pool.counters.end() || !found->second.contains(name)) {
          faults.push_back(device.name + ": no counter " + set + "/" + name);
        }
      }
    }
  }
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

Faults SliceFaults(const json& slices) {
  Faults faults;
  std::set<std::string> nodes;
  std::set<std::pair<std::string, std::string>> pools;
  for (const json& slice : slices) {
    if (slice.value("apiVersion", "") != "resource.k8s.io/v1") faults.push_back("apiVersion");
    if (slice.value("kind", "") != "ResourceSlice") faults.push_back("kind");
    CheckSpec(slice.at("spec"), faults);
    const json& spec = slice.at("spec");
    nodes.insert(spec.value("nodeName", ""));
    pools.insert({spec.value("driver", ""), spec.at("pool").value("name", "")});
  }
  if (!faults.empty()) return faults;
  size_t complete = 0;
  for (const std::string& node : nodes) {
    for (const DevicePool& pool : CompletePools(slices, node)) {
      ++complete;
      CheckPool(pool, faults);
    }
  }
  if (complete != pools.size()) faults.push_back("a pool lacks slices");
  return faults;
}

}  // namespace resmgr::test
