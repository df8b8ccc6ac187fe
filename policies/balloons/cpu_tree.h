// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "pkg/topology/machine.h"

namespace resmgr {

// The machine's CPUs as a tree: system, packages, dies, NUMA nodes, L3 caches, L2 caches, cores,
// threads. Levels whose parts are those of the level above are left out. It finds the part of the
// machine in which a set of CPUs grows, and the CPU that a set gives back first. Where parts are
// equal by all rules, numbers decide: the part with the lowest CPU is the first. Immutable; a copy
// is independent.
class CpuTree {
 public:
  // `by_thread`: every NUMA node is divided by the position of the threads in their cores, so that
  // a part of the machine is one thread of each core.
  CpuTree(const Machine& machine, const CpuSet& cpus, bool by_thread);

  // The CPUs of `idle` in the smallest part of the machine that has `count` of them. Among parts of
  // the same level, from packages down: more CPUs of `own`; then fewer CPUs of `idle` (more of them
  // if `balance`). Empty if `idle` has fewer than `count`.
  CpuSet PartToGrow(const CpuSet& own, const CpuSet& idle, int count, bool balance) const;

  // `count` of `candidates`, which are part of `own`, one after the other: the one whose part of
  // the machine, from packages down, has the fewest CPUs of `own`; then the fewest of `idle`. The
  // highest number among equals. A CPU given back is idle for the next choice. All if there are
  // fewer.
  CpuSet GiveBack(const CpuSet& own, const CpuSet& candidates, const CpuSet& idle, int count) const;
  // The first of these; -1 if there are no candidates.
  int FirstToGiveBack(const CpuSet& own, const CpuSet& candidates, const CpuSet& idle) const {
    return GiveBack(own, candidates, idle, 1).First();
  }

 private:
  struct Part {
    CpuSet cpus;
    int parent = -1;
  };
  // The number of CPUs of each part.
  using Counts = std::vector<int>;

  void Divide(const std::function<int(int cpu)>& group_of);
  void IndexParts();
  size_t levels() const { return level_begins_.size() - 1; }
  // The part at a level that has the part.
  size_t AncestorOf(int part, size_t level) const {
    return static_cast<size_t>(ancestors_[static_cast<size_t>(part) * levels() + level]);
  }
  Counts Count(const CpuSet& cpus) const;
  // Keeps the parts with the most (fewest) CPUs, from packages down to the level of these parts.
  void KeepBest(const Counts& counts, size_t level, bool most, std::vector<int>& kept) const;

  std::vector<Part> parts_;  // from the system to threads, each level as a whole
  // The place of the first part of each level, and at last the number of parts.
  std::vector<size_t> level_begins_;
  std::vector<int> ancestors_;  // for each part its ancestor of each level down to its own
  std::vector<int> thread_of_;  // by CPU, the part that has it alone; -1: not in the tree
};

}  // namespace resmgr
