// SPDX-License-Identifier: Apache-2.0
#include "policies/null/null_policy.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/config/map_reader.h"

namespace resmgr {
namespace {

constexpr std::string_view kLetGo = "none";

// What the request says, where that can be had on this machine.
template <typename Set>
Set Requested(const std::optional<std::string>& list, const Set& all) {
  const StatusOr<Set> wanted = Set::Parse(list.value_or(""));
  return wanted.ok() && !wanted->empty() && wanted->IsSubsetOf(all) ? *wanted : all;
}

Status ReadSection(const ConfigNode& section, ConfigNode* complete) {
  return MapReader(section, "policy.null", complete).Finish();
}

StatusOr<std::unique_ptr<Policy>> Create(const PolicyContext& context) {
  if (context.section != nullptr) RESMGR_RETURN_IF_ERROR(ReadSection(*context.section, nullptr));
  return std::make_unique<NullPolicy>(context.machine);
}

}  // namespace

std::unique_ptr<Policy> NullPolicy::Clone() const {
  return std::make_unique<NullPolicy>(*this);
}

StatusOr<Plan> NullPolicy::Reconcile(const Snapshot& snapshot) {
  Plan plan;
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    const std::string& pool = container.placement.pool;
    if (!pool.empty() && pool != kLetGo) plan.changes.push_back({container.key, LetGo(container)});
  });
  return plan;
}

Placement NullPolicy::LetGo(const Container& container) const {
  Placement placement;
  placement.pool = std::string(kLetGo);
  placement.reason = "no policy places it any more";
  if (container.placement.cpus) {
    placement.cpus = Requested<CpuSet>(container.requested.cpuset_cpus, machine_.allowed());
  }
  if (container.placement.mems) {
    placement.mems = Requested<NodeSet>(container.requested.cpuset_mems, machine_.node_ids());
  }
  return placement;
}

StatusOr<Plan> NullPolicy::Allocate(const Snapshot&, const Pod&, const Container&,
                                    const Container*) {
  return Plan();
}

StatusOr<Plan> NullPolicy::Update(const Snapshot&, const Pod&, const Container&) {
  return Plan();
}

StatusOr<Plan> NullPolicy::Release(const Snapshot&, ContainerKey) {
  return Plan();
}

std::vector<Zone> NullPolicy::Zones(const Snapshot&) const {
  return {};
}

PolicyFactory NullPolicyFactory() {
  return {
      .name = "null",
      .description = "no interception: traffic passes, nothing is placed",
      .create = Create,
      .read_section = ReadSection,
  };
}

}  // namespace resmgr
