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

// The name by which the kubelet and schedulers know this driver, and the names of its devices: our
// own names, or those of dra-driver-cpu. A value type.
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
  // The CPU in a name that CacheDeviceName makes; nullopt for other names.
  std::optional<int> CpuOfCacheDevice(std::string_view device) const;
  // The name of the device at this place: of its NUMA node or L3 cache.
  std::string NameAt(const ClaimPart& place) const;
  // Whether the claim was allocated from this driver, or may have been because its driver is not
  // known.
  bool MayHaveGiven(const Claim& claim) const {
    return claim.driver.empty() || claim.driver == name;
  }
  // Qualified name of the capacity that claims consume: "DRIVER/cpu".
  std::string Capacity() const { return name + "/cpu"; }

  friend bool operator==(const Driver&, const Driver&) = default;
};

// A part of the machine as a device whose CPUs claims consume.
struct NodeDevice {
  int node = 0;  // OS number of the NUMA node that the device is or lies in
  // Set if the device is an L3 cache: its number (NumberOfCache). nullopt: it is the NUMA node.
  std::optional<int> l3_of{};
  int package = 0;  // index in Machine::packages
  // The number of CPUs that claims of this device hold, plus those that the policy would grant now.
  // Schedulers themselves subtract what claims of the device hold. They cannot know about exclusive
  // CPUs of other containers, or of claims on devices of a former configuration, so those CPUs are
  // not counted here.
  int cpus = 0;  // a multiple of `step`, more than 0
  int step = 1;  // claims get multiples of this number
  bool smt = false;
  std::optional<CoreKind> kind{};  // kind of the device's cores; nullopt if they differ

  friend bool operator==(const NodeDevice&, const NodeDevice&) = default;
};

// Limit of devices in a pool; further ones are left out.
inline constexpr size_t kMostNodeDevices = 64;

// The places of the devices, in the order of their NUMA nodes: the NUMA nodes that have CPUs. With
// kL3, a node that consists of several L3 caches is replaced by these caches, so no two devices
// have a CPU in common. Pure.
std::vector<ClaimPart> DevicePlaces(const Machine& machine, DraDevices devices);

// How many places are left out because a pool may have no more devices. Pure.
size_t DevicesLeftOut(const Machine& machine, DraDevices devices);

// The driver's devices at these places. `grantable` has for each place the number of CPUs that the
// policy would grant now (ClaimableCpus); a place where claims neither hold nor can get CPUs is
// left out. `held` is from the same moment. Pure.
std::vector<NodeDevice> NodeDevices(const Driver& driver, std::span<const ClaimPart> places,
                                    std::span<const int> grantable, const HeldClaims& held,
                                    const Machine& machine, int step);

}  // namespace resmgr::dra
