// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "pkg/model/plan.h"
#include "pkg/resmgr/observer.h"

namespace resmgr {

// Collects what a decision does to containers that were placed before, for observers. Where only
// the shared part of a container's CPUs changes, only that part is noted, so that all of those with
// the same shared CPUs are one.
class Shifts {
 public:
  void Clear() { shifts_.clear(); }
  void Note(ContainerKey key, const Placement& before, const Placement& after);
  // Notes that the container gets the CPUs of `change`.
  void NoteShared(ContainerKey key, const Placement& before, const SharedChange& change);
  std::span<const Shift> all() const { return shifts_; }

 private:
  // Adds one container to those that move alike.
  void Add(ContainerKey key, const Place& from, const Place& to);

  std::vector<Shift> shifts_;
};

}  // namespace resmgr
