// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/driver.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/claims/claim_place.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr::dra {
namespace {

constexpr std::string_view kOwnPrefix = "cpu-numa-";
constexpr std::string_view kCompatiblePrefix = "cpudevnuma";
constexpr std::string_view kOwnCachePrefix = "cpu-l3-";
constexpr std::string_view kCompatibleCachePrefix = "cpudevl3";

int PackageOf(const Machine& machine, const CpuSet& cpus) {
  const std::vector<CpuSet>& packages = machine.packages();
  for (size_t at = 0; at < packages.size(); ++at)
    if (packages[at].Intersects(cpus)) return static_cast<int>(at);
  return 0;
}

bool HasSiblings(const Machine& machine, const CpuSet& cpus) {
  return std::ranges::any_of(machine.cores(), [&cpus](const CpuSet& core) {
    return core.size() > 1 && core.Intersects(cpus);
  });
}

std::optional<CoreKind> KindOf(const Machine& machine, const CpuSet& cpus) {
  const CoreKind first = machine.FindCpu(cpus.First())->kind;
  for (const int cpu : cpus)
    if (machine.FindCpu(cpu)->kind != first) return std::nullopt;
  return first;
}

// The number of each L3 cache in the node; empty unless the node consists of two or more whole
// caches.
std::vector<int> CachesOf(const Machine& machine, const NumaNode& node) {
  std::vector<int> caches;
  CpuSet left = node.cpus;
  for (const CpuSet& group : machine.l3_groups()) {
    if (group.empty() || !group.IsSubsetOf(node.cpus)) continue;
    caches.push_back(NumberOfCache(group, machine));
    left -= group;
  }
  if (caches.size() < 2 || !left.empty()) caches.clear();
  return caches;
}

int NodeOf(const ClaimPart& part, const ClaimPlace& place, const Machine& machine) {
  if (part.node) return *part.node;
  return machine.FindCpu(place.cpus.First())->numa;
}

// All places, including those beyond the limit of a pool.
std::vector<ClaimPart> AllPlaces(const Machine& machine, DraDevices devices) {
  std::vector<ClaimPart> places;
  for (const NumaNode& node : machine.nodes()) {
    if (node.cpus.empty()) continue;
    const std::vector<int> caches =
        devices == DraDevices::kL3 ? CachesOf(machine, node) : std::vector<int>();
    for (const int cpu : caches)
      places.push_back({.l3_of = cpu});
    if (caches.empty()) places.push_back({.node = node.id});
  }
  return places;
}

// The number of CPUs that claims hold of each of the driver's devices, wherever these CPUs lie.
std::map<std::string, int> HeldByDevice(const Driver& driver, const HeldClaims& held) {
  std::map<std::string, int> cpus;
  for (const HeldClaim& claim : held.all()) {
    if (!driver.MayHaveGiven(claim.claim)) continue;
    for (size_t part = 0; part < claim.parts.size(); ++part)
      cpus[claim.claim.parts[part].device] += claim.parts[part].placement.exclusive.size();
  }
  return cpus;
}

}  // namespace

std::string Driver::DeviceName(int node) const {
  return compatible ? fmt::format("{}{:03}", kCompatiblePrefix, node)
                    : fmt::format("{}{}", kOwnPrefix, node);
}

std::optional<int> Driver::NodeOfDevice(std::string_view device) const {
  const std::string_view prefix = compatible ? kCompatiblePrefix : kOwnPrefix;
  if (!device.starts_with(prefix)) return std::nullopt;
  const auto node = ParseUint(device.substr(prefix.size()));
  constexpr uint64_t kMostNodes = 1024;  // limit of Linux (NODES_SHIFT)
  // Accepts only the exact name of the node's device: "cpu-numa-01" names no device.
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

std::vector<ClaimPart> DevicePlaces(const Machine& machine, DraDevices devices) {
  std::vector<ClaimPart> places = AllPlaces(machine, devices);
  if (places.size() > kMostNodeDevices) places.resize(kMostNodeDevices);
  return places;
}

size_t DevicesLeftOut(const Machine& machine, DraDevices devices) {
  const size_t all = AllPlaces(machine, devices).size();
  return all - std::min(all, kMostNodeDevices);
}

std::vector<NodeDevice> NodeDevices(const Driver& driver, std::span<const ClaimPart> places,
                                    std::span<const int> grantable, const HeldClaims& held,
                                    const Machine& machine, int step) {
  std::map<std::string, int> held_cpus = HeldByDevice(driver, held);
  std::vector<NodeDevice> devices;
  for (size_t at = 0; at < places.size(); ++at) {
    const StatusOr<ClaimPlace> place = PlaceOf(places[at], machine);
    if (!place.ok()) continue;
    const int whole = (grantable[at] + held_cpus[driver.NameAt(places[at])]) / step * step;
    if (whole == 0) continue;
    devices.push_back({.node = NodeOf(places[at], *place, machine),
                       .l3_of = places[at].l3_of,
                       .package = PackageOf(machine, place->cpus),
                       .cpus = whole,
                       .step = step,
                       .smt = HasSiblings(machine, place->cpus),
                       .kind = KindOf(machine, place->cpus)});
  }
  return devices;
}

}  // namespace resmgr::dra
