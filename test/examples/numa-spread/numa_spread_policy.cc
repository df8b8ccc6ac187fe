// SPDX-License-Identifier: Apache-2.0
#include "test/examples/numa-spread/numa_spread_policy.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "pkg/config/config_section.h"

namespace resmgr {
namespace {

struct Options {
  bool pin_memory = true;
};

// The section policy.numa-spread: each key once, for reading, printing and documentation.
void Describe(ConfigSection& section, Options& options) {
  section.Bool("PinMemory", options.pin_memory, "`false`: `cpuset.mems` is not changed");
}

StatusOr<Options> ReadOptions(const ConfigNode* section, std::vector<ConfigKey>* keys = nullptr) {
  return ReadSection<Options>(section, "policy.numa-spread", &Describe, keys);
}

}  // namespace

StatusOr<std::unique_ptr<Policy>> NumaSpreadPolicy::Create(const PolicyContext& context) {
  RESMGR_ASSIGN_OR_RETURN(const Options options, ReadOptions(context.section));
  std::vector<Zone> zones;
  for (const NumaNode& node : context.machine.nodes()) {
    const CpuSet cpus = (node.cpus & context.available) - context.reserved;
    if (cpus.empty()) continue;
    zones.push_back({.name = fmt::format("NUMA node #{}", node.id),
                     .kind = "numa",
                     .cpus = cpus,
                     .shared = cpus,
                     .mems = context.machine.NodesOf(cpus)});
  }
  if (zones.empty()) {
    return InvalidArgument("policy numa-spread: no NUMA node has unreserved available CPUs");
  }
  return std::unique_ptr<Policy>(new NumaSpreadPolicy(std::move(zones), options.pin_memory));
}

NumaSpreadPolicy::NumaSpreadPolicy(std::vector<Zone> zones, bool pin_memory)
    : pin_memory_(pin_memory), zones_(std::move(zones)) {}

std::unique_ptr<Policy> NumaSpreadPolicy::Clone() const {
  return std::make_unique<NumaSpreadPolicy>(*this);
}

const Zone* NumaSpreadPolicy::Former(const Placement& placement) const {
  const auto found = std::find_if(zones_.begin(), zones_.end(), [&](const Zone& zone) {
    return zone.name == placement.pool || placement.cpus == zone.cpus;
  });
  return found == zones_.end() ? nullptr : &*found;
}

// The first one of several.
const Zone& NumaSpreadPolicy::LeastRequested() const {
  return *std::min_element(zones_.begin(), zones_.end(), [](const Zone& a, const Zone& b) {
    return a.shared_request < b.shared_request;
  });
}

Placement NumaSpreadPolicy::Join(const Container& container, const Zone& zone,
                                 std::string_view reason) {
  const auto index = static_cast<size_t>(&zone - zones_.data());
  const MilliCpu request = container.requirements.cpu_request;
  members_[container.key] = {.zone = index, .request = request};
  zones_[index].shared_request = zones_[index].shared_request + request;
  ++zones_[index].containers;
  Placement placement;
  placement.cpus = zone.cpus;
  if (pin_memory_ && !zone.mems.empty()) placement.mems = zone.mems;
  placement.pool = zone.name;
  placement.reason = reason;
  return placement;
}

void NumaSpreadPolicy::Leave(ContainerKey key) {
  const auto member = members_.find(key);
  if (member == members_.end()) return;
  Zone& zone = zones_[member->second.zone];
  zone.shared_request = zone.shared_request - member->second.request;
  --zone.containers;
  members_.erase(member);
}

StatusOr<Plan> NumaSpreadPolicy::Reconcile(const Snapshot& snapshot) {
  while (!members_.empty())
    Leave(members_.begin()->first);
  Plan plan;
  const auto adopt = [&](const Container& container, const Zone& zone, std::string_view reason) {
    Placement placement = Join(container, zone, reason);
    if (placement.SameDecision(container.placement)) return;
    plan.Change(container.key) = std::move(placement);
  };
  // Containers that are placed stay; only then is known where there is room for the others.
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    const Zone* const former = Former(container.placement);
    if (former != nullptr) adopt(container, *former, "where it was");
  });
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    if (members_.contains(container.key)) return;
    adopt(container, LeastRequested(), "the node with the least requested CPU");
  });
  return plan;
}

StatusOr<Plan> NumaSpreadPolicy::Allocate(const Snapshot&, const Pod&, const Container& container,
                                          const Container* predecessor) {
  const Zone* former = nullptr;
  if (predecessor != nullptr) {
    Leave(predecessor->key);
    former = Former(predecessor->placement);
  }
  Plan plan;
  plan.Change(container.key) = former != nullptr ? Join(container, *former, "where it was before")
                                                 : Join(container, LeastRequested(),
                                                        "the node with the least requested CPU");
  return plan;
}

StatusOr<Plan> NumaSpreadPolicy::Update(const Snapshot&, const Pod&, const Container& container) {
  const Zone* const zone = Former(container.placement);
  Leave(container.key);
  const Placement placement =
      Join(container, zone != nullptr ? *zone : LeastRequested(), container.placement.reason);
  Plan plan;
  if (!placement.SameDecision(container.placement)) plan.Change(container.key) = placement;
  return plan;
}

StatusOr<Plan> NumaSpreadPolicy::Release(const Snapshot&, ContainerKey key) {
  Leave(key);
  return Plan();
}

std::vector<Zone> NumaSpreadPolicy::Zones(const Snapshot&) const {
  return zones_;
}

PolicyFactory NumaSpreadPolicyFactory() {
  return {
      .name = "numa-spread",
      .description = "each container on the NUMA node whose containers request the least CPU",
      .create = NumaSpreadPolicy::Create,
      .read_section =
          [](const ConfigNode& section, std::vector<ConfigKey>* keys) {
            return ReadOptions(&section, keys).status();
          },
  };
}

}  // namespace resmgr
