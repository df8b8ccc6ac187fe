// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "test/support/scheduler_model/exact_quantity.h"

namespace resmgr::test {

// Devices for Dynamic Resource Allocation (resource.k8s.io/v1), as the scheduler reads them from
// ResourceSlices. Values and pure functions; objects without required fields throw nlohmann's
// exceptions.

// How much of a capacity one claim may consume.
struct RequestPolicy {
  std::optional<ExactQuantity> fallback;  // where a request names no quantity
  std::vector<ExactQuantity> valid_values;
  std::optional<ExactQuantity> min;  // of a range; max and step need it
  std::optional<ExactQuantity> max;
  std::optional<ExactQuantity> step;
};

struct DeviceCapacity {
  ExactQuantity value;
  std::optional<RequestPolicy> policy;
};

struct DeviceTaint {
  std::string key;
  std::string value;
  std::string effect;
};

// Names of attributes and capacities have the domain here, the driver's if the slice has none.
struct PoolDevice {
  std::string driver;
  std::string pool;
  std::string name;
  bool shared = false;  // allowMultipleAllocations
  std::map<std::string, nlohmann::json> attributes;
  std::map<std::string, DeviceCapacity> capacities;
  std::map<std::string, ResourceList> counters;  // consumed, by the set's name
  std::vector<DeviceTaint> taints;
};

struct DevicePool {
  std::string driver;
  std::string name;
  int64_t generation = 0;
  std::vector<PoolDevice> devices;
  std::map<std::string, ResourceList> counters;  // shared by the devices, by the set's name
};

// NAME with its domain: that of the driver unless it has one.
std::string Qualified(std::string_view name, std::string_view driver);

// The pools of a node whose newest generation is complete; the scheduler waits for the others.
std::vector<DevicePool> CompletePools(const nlohmann::json& slices, std::string_view node);

// One line for everything that the API server refuses in these slices, or that makes a pool
// incomplete for ever.
std::vector<std::string> SliceFaults(const nlohmann::json& slices);

// The quantity that a request consumes of a capacity: the next valid one. nullopt for the request:
// none is named. nullopt as the answer: no valid one is large enough.
std::optional<ExactQuantity> Consumed(const DeviceCapacity& capacity,
                                      const std::optional<ExactQuantity>& request);

}  // namespace resmgr::test
