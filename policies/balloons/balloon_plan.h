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

// Placements of the containers in balloons. Refers to the book, which must outlive it.
class BalloonPlan {
 public:
  explicit BalloonPlan(const BalloonBook& book) : book_(book) {}

  Placement PlacementOf(const Balloon& balloon, const BalloonMember& member) const;
  // The changes for containers of balloons that differ from a former state of the book.
  Plan Since(const BalloonBook& before, const Snapshot& snapshot) const;
  // The changes for all containers.
  Plan Complete(const Snapshot& snapshot) const;

 private:
  // The properties that the containers of one balloon have in common.
  struct View {
    CpuSet own{};  // borrowed ones included
    CpuSet cpus{};
    std::string pool{};
    std::string own_text{};  // as the reason ends
    bool is_short = false;   // of CPUs for the containers that are entitled to them
    // Memory nodes by the types that a container asks for; mostly one.
    std::vector<std::pair<unsigned, NodeSet>> mems{};
  };

  View ViewOf(const Balloon& balloon) const;
  Placement PlacementIn(View& view, const Balloon& balloon, const BalloonMember& member) const;
  // Members that `except`, unless nullptr, has are left out.
  void AddChanges(const Snapshot& snapshot, const Balloon& balloon, const Balloon* except,
                  Plan& plan) const;
  const NodeSet& MemoryOf(View& view, unsigned types) const;

  const BalloonBook& book_;
};

// The lowest CPU of each core in `cpus`.
CpuSet OneThreadPerCore(const Machine& machine, const CpuSet& cpus);

// The reason of a placement in a balloon is a text, and at its end the CPUs that the balloon
// borrows and its own ones, by which they are found again after a restart, since containers may run
// on other ones, too.

// The text of a container that is in a balloon since its own type has no CPUs for it.
std::string TextForWantOfRoom(const std::string& text, const std::string& balloon,
                              const std::string& type);
// The text in front of the balloon's CPUs, and these CPUs; empty if the reason has none.
std::string TextOfReason(const std::string& reason);
CpuSet OwnCpusOfReason(const std::string& reason);
CpuSet BorrowedCpusOfReason(const std::string& reason);

}  // namespace resmgr
