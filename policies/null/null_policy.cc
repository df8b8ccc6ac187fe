// SPDX-License-Identifier: Apache-2.0
#include "policies/null/null_policy.h"

#include <memory>
#include <string>
#include <string_view>

#include "pkg/config/config_section.h"

namespace resmgr {
namespace {

constexpr std::string_view kLetGo = "none";

// The section may have no keys.
Status ReadNullSection(const ConfigNode& section, std::vector<ConfigKey>* /*keys*/) {
  return ConfigSection(section, "policy.null").Finish();
}

StatusOr<std::unique_ptr<Policy>> Create(const PolicyContext& context) {
  if (context.section != nullptr)
    RESMGR_RETURN_IF_ERROR(ReadNullSection(*context.section, nullptr));
  return std::make_unique<NullPolicy>();
}

}  // namespace

std::unique_ptr<Policy> NullPolicy::Clone() const {
  return std::make_unique<NullPolicy>(*this);
}

StatusOr<Plan> NullPolicy::Reconcile(const Snapshot& snapshot) {
  Plan plan;
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    const std::string& pool = container.placement.pool;
    const bool placed = !pool.empty() || container.cpus_bound || container.mems_bound;
    if (!placed || pool == kLetGo) return;
    Placement& placement = plan.Change(container.key);
    placement.pool = std::string(kLetGo);
    placement.reason = "no policy places it any more";
  });
  return plan;
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
      .read_section = ReadNullSection,
  };
}

}  // namespace resmgr
