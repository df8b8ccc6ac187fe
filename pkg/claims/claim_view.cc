// SPDX-License-Identifier: Apache-2.0
#include "pkg/claims/claim_view.h"

#include <algorithm>

namespace resmgr {

bool ClaimView::IsHidden(ContainerKey key, const HeldClaims& held, const ClaimCarriers& carriers) {
  const auto carrier = carriers.find(key);
  if (carrier == carriers.end()) return false;
  return std::ranges::any_of(held.Of(carrier->second),
                             [](const HeldClaim* claim) { return !claim->Cpus().empty(); });
}

const Pod* ClaimView::FindPod(const PodSandboxId& id) const {
  const Pod* const of_claim = held_.FindPod(id);
  return of_claim != nullptr ? of_claim : all_.FindPod(id);
}

const Container* ClaimView::FindContainer(ContainerKey key) const {
  if (!HeldClaims::IsPart(key)) {
    return IsHidden(key, held_, carriers_) ? nullptr : all_.FindContainer(key);
  }
  for (const HeldClaim& held : held_.all()) {
    for (const Container& part : held.parts)
      if (part.key == key) return options_.lost_too || !HeldClaims::IsLost(part) ? &part : nullptr;
  }
  return nullptr;
}

void ClaimView::ForEachContainer(
    const std::function<void(const Pod&, const Container&)>& visit) const {
  const auto visit_parts = [this, &visit](bool lost) {
    for (const HeldClaim& held : held_.all()) {
      for (const Container& part : held.parts)
        if (HeldClaims::IsLost(part) == lost) visit(held.pod, part);
    }
  };
  // Before the containers that carry these claims alone, which would take the CPUs.
  if (options_.lost_too) visit_parts(true);
  if (options_.parts_first) visit_parts(false);
  if (carriers_.empty()) {
    all_.ForEachContainer(visit);
  } else {
    all_.ForEachContainer([this, &visit](const Pod& pod, const Container& container) {
      if (!IsHidden(container.key, held_, carriers_)) visit(pod, container);
    });
  }
  if (!options_.parts_first) visit_parts(false);
}

const Container* ChangedView::FindContainer(ContainerKey key) const {
  const auto changed = changed_.find(key);
  return changed == changed_.end() ? all_.FindContainer(key) : &changed->second;
}

void ChangedView::ForEachContainer(
    const std::function<void(const Pod&, const Container&)>& visit) const {
  if (changed_.empty()) return all_.ForEachContainer(visit);
  all_.ForEachContainer([this, &visit](const Pod& pod, const Container& container) {
    const auto changed = changed_.find(container.key);
    visit(pod, changed == changed_.end() ? container : changed->second);
  });
}

Container* PlannedView::Changing(ContainerKey key) {
  const auto changed = changed_.find(key);
  if (changed != changed_.end()) return &changed->second;
  const Container* const known = all_.FindContainer(key);
  return known == nullptr ? nullptr : &changed_.emplace(key, *known).first->second;
}

void PlannedView::Apply(const Plan& plan) {
  for (const PlacementChange& change : plan.changes) {
    if (Container* const container = Changing(change.key)) container->placement = change.placement;
  }
  for (const SharedChange& change : plan.shared) {
    for (const ContainerKey key : change.containers) {
      Container* const container = Changing(key);
      if (container == nullptr) continue;
      container->placement.cpus = change.CpusFor(container->placement);
      container->placement.lifted_to.reset();
    }
  }
}

Plan PlannedView::Together() const {
  Plan plan;
  for (const auto& [key, container] : changed_) {
    const Container* const before = all_.FindContainer(key);
    if (before == nullptr || container.placement.SameDecision(before->placement)) continue;
    plan.changes.push_back({key, container.placement});
  }
  return plan;
}

}  // namespace resmgr
