// SPDX-License-Identifier: Apache-2.0
#include "policies/null/null_policy.h"

#include <memory>

#include "pkg/config/map_reader.h"

namespace resmgr {
namespace {

Status CheckSection(const ConfigNode& section) {
  return MapReader(section, "policy.null").Finish();
}

StatusOr<std::unique_ptr<Policy>> Create(const PolicyContext& context) {
  if (context.section != nullptr) RESMGR_RETURN_IF_ERROR(CheckSection(*context.section));
  return std::make_unique<NullPolicy>();
}

}  // namespace

// A container that an earlier policy placed is given back to its own request.
StatusOr<Plan> NullPolicy::Reconcile(const Snapshot& snapshot) {
  Plan plan;
  snapshot.ForEachContainer([&plan](const Pod&, const Container& container) {
    const Placement none;
    if (!container.placement.SameEffect(none) || !container.placement.exclusive.empty()) {
      plan.changes.push_back({container.key, none});
    }
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
      .check_section = CheckSection,
  };
}

}  // namespace resmgr
