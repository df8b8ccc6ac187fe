// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/node_devices.h"

#include <algorithm>

namespace resmgr::dra {
namespace {

int AvailableCpus(const ViewZone& zone) {
  for (const ViewAmount& amount : zone.amounts)
    if (amount.name == "cpu") return static_cast<int>(amount.available);
  return 0;
}

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

}  // namespace

std::vector<NodeDevice> NodeDevices(const SchedulerView& view, const std::vector<ClaimGrant>& held,
                                    const Machine& machine, int step) {
  CpuSet claimed;
  for (const ClaimGrant& grant : held)
    claimed |= grant.All();
  std::vector<NodeDevice> devices;
  for (const ViewZone& zone : view.zones) {
    const NumaNode* const node = machine.FindNode(zone.numa_id);
    if (node == nullptr) continue;
    const int cpus = AvailableCpus(zone) + (node->cpus & claimed).size();
    const int whole = cpus / step * step;
    if (whole == 0) continue;
    devices.push_back({.node = zone.numa_id,
                       .package = PackageOf(machine, node->cpus),
                       .cpus = whole,
                       .step = step,
                       .smt = HasSiblings(machine, node->cpus)});
  }
  return devices;
}

}  // namespace resmgr::dra
