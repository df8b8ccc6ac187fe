// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "test/support/scheduler_model/device_pools.h"

namespace resmgr::test {

// A model of the allocator of Dynamic Resource Allocation in Kubernetes' scheduler, made from a
// description of its behaviour and not from the code that publishes the slices. It knows capacities
// that many claims consume (KEP-5075), request policies, shared counters (KEP-4815), taints,
// selectors of the forms that claims for CPUs need, and constraints on attributes. Not modelled:
// adminAccess, binding conditions, other selectors.

struct AllocatorInput {
  nlohmann::json slices = nlohmann::json::array();   // ResourceSlice objects
  nlohmann::json claims = nlohmann::json::array();   // all ResourceClaims that may be allocated
  nlohmann::json classes = nlohmann::json::array();  // DeviceClass objects
  std::string node;
  // Above 0: devices are tried in an order that this number picks, not in that of the slices. The
  // order is the scheduler's own affair; whatever it picks has to be right.
  uint64_t shuffle = 0;
  // Names of consumed capacities lack the driver's domain, which the API allows.
  bool short_names = false;
};

struct AllocationAnswer {
  // The claim with its status, but without reservedFor; nullopt: the node cannot serve the claim.
  std::optional<nlohmann::json> claim;
  std::string reason;
};

// Pure. Throws std::invalid_argument for requests that the model does not know.
AllocationAnswer AllocateClaim(const AllocatorInput& input, const nlohmann::json& claim);

// How much allocated claims have left of the devices: by driver/pool/device and the capacity's
// name.
std::map<std::string, ResourceList> RemainingCapacity(const AllocatorInput& input);

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

// Whether a device matches a CEL expression. Known are terms joined by "&&":
//   device.driver == "DRIVER"
//   device.attributes["DOMAIN"].NAME == VALUE      a number, a string, true or false
// Anything else throws std::invalid_argument. A missing attribute does not match.
bool MatchesSelector(const PoolDevice& device, std::string_view expression);

}  // namespace resmgr::test
