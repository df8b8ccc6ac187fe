// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "test/support/scheduler_model/device_pools.h"

namespace resmgr::test {

// DRIVER/POOL/DEVICE, the identity of a device.
std::string DeviceId(const PoolDevice& device);

// How much of a node's devices is in use, by claims that are allocated and by one that is being
// allocated. The pools outlive it. Thread-compatible.
class DeviceUse {
 public:
  explicit DeviceUse(const std::vector<DevicePool>& pools) : pools_(pools) {}

  // All results in the status of a claim.
  void AddClaim(const nlohmann::json& claim);

  // The quantities that the device would give for these requests, by qualified names. nullopt: it
  // has not that much left, is in use alone, or its counters are used up.
  std::optional<ResourceList> Offer(const PoolDevice& device, const ResourceList& requests) const;

  void Take(const PoolDevice& device, const ResourceList& consumed);
  void GiveBack(const PoolDevice& device, const ResourceList& consumed);

  ResourceList Remaining(const PoolDevice& device) const;

 private:
  bool CountersSuffice(const PoolDevice& device) const;

  const std::vector<DevicePool>& pools_;
  std::map<std::string, int> holders_;  // by device
  std::map<std::string, ResourceList> consumed_;
};

}  // namespace resmgr::test
