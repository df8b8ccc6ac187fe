// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/decider.h"

#include <algorithm>
#include <utility>

#include "pkg/policy/plan_check.h"

namespace resmgr {

Decider::Decider(const Machine& machine, Policy& policy, ContainerStore& store)
    : machine_(machine), policy_(&policy), store_(store) {}

StatusOr<ContainerKeys> Decider::Switch(Policy& policy) {
  RESMGR_ASSIGN_OR_RETURN(ContainerKeys changed, Apply(policy.Reconcile(store_.placeable())));
  policy_ = &policy;
  return changed;
}

void Decider::Resume(Policy& policy) {
  shifts_.Clear();
  policy_ = &policy;
}

StatusOr<Plan> Decider::Preview(StatusOr<Plan> plan) const {
  if (!plan.ok()) return plan.status();
  RESMGR_RETURN_IF_ERROR(CheckPlan(machine_, store_.placeable(), *plan));
  return plan;
}

StatusOr<ContainerKeys> Decider::Rebalance() {
  return Apply(policy_->Rebalance(store_.placeable()));
}

StatusOr<ContainerKeys> Decider::Reconcile() {
  return Apply(policy_->Reconcile(store_.placeable()));
}

StatusOr<ContainerKeys> Decider::Allocate(const ContainerRecord& record,
                                          const Container* predecessor) {
  return Apply(
      policy_->Allocate(store_.placeable(), record.pod->pod, record.container, predecessor));
}

StatusOr<ContainerKeys> Decider::Update(const ContainerRecord& record) {
  return Apply(policy_->Update(store_.placeable(), record.pod->pod, record.container));
}

StatusOr<ContainerKeys> Decider::EndColdStart(ContainerKey key) {
  return Apply(policy_->EndColdStart(store_.placeable(), key));
}

StatusOr<ContainerKeys> Decider::Release(ContainerKey key) {
  return Apply(policy_->Release(store_.placeable(), key));
}

ContainerKeys Decider::Recover() {
  StatusOr<ContainerKeys> changed = Reconcile();
  return changed.ok() ? *std::move(changed) : ContainerKeys();
}

StatusOr<ContainerKeys> Decider::Apply(StatusOr<Plan> plan) {
  shifts_.Clear();
  if (!plan.ok()) return plan.status();
  RESMGR_RETURN_IF_ERROR(CheckPlan(machine_, store_.placeable(), holders_, *plan));
  ContainerKeys changed;
  changed.reserve(plan->size());
  std::erase_if(holders_, [this](ContainerKey key) { return store_.Find(key) == nullptr; });
  for (PlacementChange& change : plan->changes) {
    if (!change.placement.exclusive.empty()) holders_.insert(change.key);
    Container& container = store_.Find(change.key)->container;
    // A new one had no place.
    if (container.state != ContainerState::kCreating || container.placement.cpus) {
      shifts_.Note(change.key, container.placement, change.placement);
    }
    // May not have reached the runtime yet.
    if (!change.placement.cpus && container.placement.lifted_to) {
      change.placement.lifted_to = container.placement.lifted_to;
    }
    container.placement = std::move(change.placement);
    changed.push_back(change.key);
  }
  for (const SharedChange& change : plan->shared) {
    for (const ContainerKey key : change.containers) {
      Placement& placement = store_.Find(key)->container.placement;
      CpuSet cpus = change.CpusFor(placement);
      shifts_.NoteShared(key, placement, cpus);
      placement.cpus = cpus;
      changed.push_back(key);
    }
  }
  std::sort(changed.begin(), changed.end());
  return changed;
}

}  // namespace resmgr
