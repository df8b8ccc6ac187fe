// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pkg/claims/claim.h"
#include "pkg/claims/claim_names.h"

namespace resmgr::dra {

// The name under which the kubelet and schedulers know this driver, and the names of its devices:
// our own, or those of dra-driver-cpu. A value.
struct Driver {
  std::string name{};
  bool compatible = false;

  // CDI kind of its claims.
  std::string_view Kind() const { return compatible ? kCompatibleClaimKind : kClaimKind; }
  // The device that stands for a NUMA node: "cpu-numa-1", "cpudevnuma001". It has the node's
  // operating-system number.
  std::string DeviceName(int node) const;
  // The node of a device; nullopt for a name that no device of this driver has.
  std::optional<int> NodeOfDevice(std::string_view device) const;
  // The device that stands for the L3 cache of a CPU, the lowest one of it: "cpu-l3-8",
  // "cpudevl3008".
  std::string CacheDeviceName(int cpu) const;
  // The CPU in the name of such a device; nullopt for other names.
  std::optional<int> CpuOfCacheDevice(std::string_view device) const;
  // The device at the place of this part: the NUMA node or the L3 cache.
  std::string NameAt(const ClaimPart& place) const;
  // Whether the claim was allocated from this driver, as far as known.
  bool MayHaveGiven(const Claim& claim) const {
    return claim.driver.empty() || claim.driver == name;
  }
  // Qualified name of the capacity that claims consume: "DRIVER/cpu".
  std::string Capacity() const { return name + "/cpu"; }

  friend bool operator==(const Driver&, const Driver&) = default;
};

}  // namespace resmgr::dra
