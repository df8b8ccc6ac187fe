// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/plan_check.h"

#include <algorithm>
#include <utility>
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

// The placements as they are after the plan, in the order of the snapshot.
class Outcome {
 public:
  Outcome(const Snapshot& snapshot, const Plan& plan) : snapshot_(snapshot) {
    changes_.reserve(plan.changes.size());
    for (const PlacementChange& change : plan.changes)
      changes_.push_back(&change);
    std::sort(changes_.begin(), changes_.end(),
              [](const auto* a, const auto* b) { return a->key < b->key; });
  }

  bool AnyTwice() const {
    const auto same_key = [](const auto* a, const auto* b) { return a->key == b->key; };
    return std::adjacent_find(changes_.begin(), changes_.end(), same_key) != changes_.end();
  }

  // Both sides are ordered by key: one pass over each.
  template <typename Visitor>
  void ForEach(const Visitor& visit) const {
    auto next = changes_.begin();
    snapshot_.ForEachContainer([this, &next, &visit](const Pod& pod, const Container& container) {
      while (next != changes_.end() && (*next)->key < container.key)
        ++next;
      const bool changed = next != changes_.end() && (*next)->key == container.key;
      visit(pod, container, changed ? (*next)->placement : container.placement);
    });
  }

 private:
  const Snapshot& snapshot_;
  std::vector<const PlacementChange*> changes_;
};

Status CheckExclusive(const Outcome& outcome) {
  Status status;
  CpuSet exclusive;
  outcome.ForEach([&](const Pod& pod, const Container& container, const Placement& placement) {
    if (status.ok() && exclusive.Intersects(placement.exclusive)) {
      status =
          Internal("container {}: the plan grants CPUs {} exclusively a second time",
                   FullName(pod, container.name), (exclusive & placement.exclusive).ToString());
    }
    exclusive |= placement.exclusive;
  });
  if (!status.ok() || exclusive.empty()) return status;
  outcome.ForEach([&](const Pod& pod, const Container& container, const Placement& placement) {
    if (!status.ok() || !placement.cpus) return;
    const CpuSet foreign = (*placement.cpus - placement.exclusive) & exclusive;
    if (!foreign.empty()) {
      status = Internal("container {}: the plan shares CPUs {} that are exclusive to another one",
                        FullName(pod, container.name), foreign.ToString());
    }
  });
  return status;
}

}  // namespace

Status CheckPlan(const Machine& machine, const Snapshot& snapshot, const Plan& plan) {
  for (const PlacementChange& change : plan.changes) {
    const Container* const container = snapshot.FindContainer(change.key);
    if (container == nullptr) {
      return Internal("the plan places a container that does not exist (key {})",
                      static_cast<uint64_t>(change.key));
    }
    const Status status = CheckPlacement(machine, change.placement);
    if (status.ok()) continue;
    const Pod* const pod = snapshot.FindPod(container->pod_id);
    const std::string name = pod == nullptr ? container->name : FullName(*pod, container->name);
    return Annotate(status, fmt::format("container {}", name));
  }
  const Outcome outcome(snapshot, plan);
  if (outcome.AnyTwice()) return Internal("the plan places a container twice");
  return CheckExclusive(outcome);
}

}  // namespace resmgr
