// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pkg/model/plan.h"
#include "pkg/model/snapshot.h"
#include "pkg/topology/cpu_set.h"
#include "policies/balloons/balloon_book.h"

namespace resmgr {

// Makes the placements of containers in balloons. The book must outlive it.
class BalloonPlan {
 public:
  explicit BalloonPlan(const BalloonBook& book) : book_(book) {}

  Placement PlacementOf(const Balloon& balloon, const BalloonMember& member) const;
  // The changes for containers of balloons that differ from the book `before`.
  Plan Since(const BalloonBook& before, const Snapshot& snapshot) const;
  // The changes for all containers.
  Plan Complete(const Snapshot& snapshot) const;

 private:
  // The properties that the containers of one balloon have in common.
  struct View {
    CpuSet own{};  // the balloon's CPUs, borrowed ones included
    CpuSet cpus{};
    std::string pool{};
    std::string own_text{};  // the end of the reason
    bool is_short = false;   // fewer CPUs than the containers without guests ask for
    // Memory nodes for each set of types that containers ask for; usually one.
    std::vector<std::pair<MemoryTypes, NodeSet>> mems{};
  };

  View ViewOf(const Balloon& balloon) const;
  Placement PlacementIn(View& view, const Balloon& balloon, const BalloonMember& member) const;
  // Members that are also in `except`, which may be nullptr, are left out.
  void AddChanges(const Snapshot& snapshot, const Balloon& balloon, const Balloon* except,
                  Plan& plan) const;
  const NodeSet& MemoryOf(View& view, MemoryTypes types) const;

  const BalloonBook& book_;
};

}  // namespace resmgr
