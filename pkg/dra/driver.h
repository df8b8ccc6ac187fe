// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/claims/claim.h"
#include "pkg/claims/claim_names.h"
#include "pkg/claims/held_claims.h"
#include "pkg/config/module_configs.h"
#include "pkg/topology/machine.h"

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
  // The device that stands for the L3 cache whose lowest CPU is `cpu`: "cpu-l3-8", "cpudevl3008".
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

// A part of the machine as a device whose CPUs claims consume.
struct NodeDevice {
  int node = 0;  // operating-system number of the NUMA node that it is, or in which it lies
  // It is the L3 cache of this number (NumberOfCache); nullopt: the NUMA node.
  std::optional<int> l3_of{};
  int package = 0;  // index in Machine::packages
  // The CPUs that claims of this device hold, and those that the policy would grant now. Schedulers
  // subtract the held ones themselves, from the device that the claim was allocated to. They do not
  // know which CPUs other containers have for themselves, or claims of devices of a former
  // configuration hold here, so these are not part of this number.
  int cpus = 0;  // a multiple of `step`, more than 0
  int step = 1;  // claims get multiples of it
  bool smt = false;
  std::optional<CoreKind> kind{};  // of its cores; nullopt where they differ

  friend bool operator==(const NodeDevice&, const NodeDevice&) = default;
};

// A pool has no more devices than this; further ones are left out.
inline constexpr size_t kMostNodeDevices = 64;

// The places of the devices, in the order of their NUMA nodes: the NUMA nodes that have CPUs. With
// kL3 the L3 caches in place of each node that consists of several; so no two devices have a CPU in
// common. Pure.
std::vector<ClaimPart> DevicePlaces(const Machine& machine, DraDevices devices);

// How many places are left out, because a pool has no more devices. Pure.
size_t DevicesLeftOut(const Machine& machine, DraDevices devices);

// The driver's devices at these places. `grantable` has for each the CPUs that the policy would
// grant now (ClaimableCpus); one at which claims neither hold nor get CPUs is left out. `held` is
// of the same moment. Pure.
std::vector<NodeDevice> NodeDevices(const Driver& driver, std::span<const ClaimPart> places,
                                    std::span<const int> grantable, const HeldClaims& held,
                                    const Machine& machine, int step);

}  // namespace resmgr::dra
