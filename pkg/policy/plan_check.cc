// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/plan_check.h"

#include <algorithm>
#include <string>
#include <vector>

namespace resmgr {
namespace {

Status CheckPlacement(const Machine& machine, const Placement& placement) {
  if (placement.cpus && placement.cpus->empty()) return Internal("the plan leaves it no CPU");
  if (placement.cpus && !placement.cpus->IsSubsetOf(machine.online())) {
    return Internal("the plan uses CPUs {} that are not online",
                    (*placement.cpus - machine.online()).ToString());
  }
  if (placement.mems && placement.mems->empty()) {
    return Internal("the plan leaves it no memory node");
  }
  if (placement.mems && !placement.mems->IsSubsetOf(machine.node_ids())) {
    return Internal("the plan uses memory nodes {} that do not exist",
                    (*placement.mems - machine.node_ids()).ToString());
  }
  const CpuSet outside = placement.exclusive - placement.cpus.value_or(CpuSet());
  if (!outside.empty()) {
    return Internal("its exclusive CPUs {} are not among its CPUs", outside.ToString());
  }
  return OkStatus();
}

std::string NameOf(const Snapshot& snapshot, const Container& container) {
  const Pod* const pod = snapshot.FindPod(container.pod_id);
  return pod == nullptr ? container.name : FullName(*pod, container.name);
}

// A plan's changes by key.
class Changes {
 public:
  explicit Changes(const Plan& plan) {
    sorted_.reserve(plan.changes.size());
    for (const PlacementChange& change : plan.changes)
      sorted_.push_back(&change);
    std::sort(sorted_.begin(), sorted_.end(),
              [](const auto* a, const auto* b) { return a->key < b->key; });
  }

  bool AnyTwice() const {
    const auto same_key = [](const auto* a, const auto* b) { return a->key == b->key; };
    return std::adjacent_find(sorted_.begin(), sorted_.end(), same_key) != sorted_.end();
  }

  bool Has(ContainerKey key) const {
    const auto it = std::lower_bound(
        sorted_.begin(), sorted_.end(), key,
        [](const auto* change, ContainerKey wanted) { return change->key < wanted; });
    return it != sorted_.end() && (*it)->key == key;
  }

 private:
  std::vector<const PlacementChange*> sorted_;
};

// Who holds which CPUs exclusively once the plan is carried out.
class ExclusiveCheck {
 public:
  explicit ExclusiveCheck(const Snapshot& snapshot) : snapshot_(snapshot) {}

  Status AddExclusive(const Container& container, const Placement& placement) {
    if (exclusive_.Intersects(placement.exclusive)) {
      return Internal("container {}: the plan grants CPUs {} exclusively a second time",
                      NameOf(snapshot_, container), (exclusive_ & placement.exclusive).ToString());
    }
    exclusive_ |= placement.exclusive;
    return OkStatus();
  }

  // After all AddExclusive.
  Status CheckShared(const Container& container, const Placement& placement) const {
    if (!placement.cpus) return OkStatus();
    const CpuSet foreign = (*placement.cpus - placement.exclusive) & exclusive_;
    if (foreign.empty()) return OkStatus();
    return Internal("container {}: the plan shares CPUs {} that are exclusive to another one",
                    NameOf(snapshot_, container), foreign.ToString());
  }

 private:
  const Snapshot& snapshot_;
  CpuSet exclusive_;
};

Status CheckExclusive(const Snapshot& snapshot, const ExclusiveHolders& holders, const Plan& plan,
                      const Changes& changes) {
  ExclusiveCheck check(snapshot);
  for (const ContainerKey key : holders) {
    const Container* const holder = changes.Has(key) ? nullptr : snapshot.FindContainer(key);
    if (holder != nullptr) RESMGR_RETURN_IF_ERROR(check.AddExclusive(*holder, holder->placement));
  }
  bool takes_more = false;
  for (const PlacementChange& change : plan.changes) {
    const Container& container = *snapshot.FindContainer(change.key);
    RESMGR_RETURN_IF_ERROR(check.AddExclusive(container, change.placement));
    takes_more |= !change.placement.exclusive.IsSubsetOf(container.placement.exclusive);
  }
  for (const PlacementChange& change : plan.changes) {
    RESMGR_RETURN_IF_ERROR(
        check.CheckShared(*snapshot.FindContainer(change.key), change.placement));
  }
  if (!takes_more) return OkStatus();
  Status status;
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    if (status.ok() && !changes.Has(container.key)) {
      status = check.CheckShared(container, container.placement);
    }
  });
  return status;
}

}  // namespace

Status CheckPlan(const Machine& machine, const Snapshot& snapshot, const ExclusiveHolders& holders,
                 const Plan& plan) {
  if (plan.changes.empty()) return OkStatus();
  for (const PlacementChange& change : plan.changes) {
    const Container* const container = snapshot.FindContainer(change.key);
    if (container == nullptr) {
      return Internal("the plan places a container that does not exist (key {})",
                      static_cast<uint64_t>(change.key));
    }
    const Status status = CheckPlacement(machine, change.placement);
    if (!status.ok()) {
      return Annotate(status, fmt::format("container {}", NameOf(snapshot, *container)));
    }
  }
  const Changes changes(plan);
  if (changes.AnyTwice()) return Internal("the plan places a container twice");
  return CheckExclusive(snapshot, holders, plan, changes);
}

Status CheckPlan(const Machine& machine, const Snapshot& snapshot, const Plan& plan) {
  ExclusiveHolders holders;
  snapshot.ForEachContainer([&holders](const Pod&, const Container& container) {
    if (!container.placement.exclusive.empty()) holders.insert(container.key);
  });
  return CheckPlan(machine, snapshot, holders, plan);
}

}  // namespace resmgr
