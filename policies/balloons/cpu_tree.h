// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "pkg/topology/machine.h"

namespace resmgr {

// The machine's CPUs as a tree: system, packages, dies, NUMA nodes, L3 caches, cores, threads. It
// finds the part of the machine in which a set of CPUs grows, and the CPU that a set gives back
// first. Where parts are equal by all rules, numbers decide: the part with the lowest CPU is the
// first. Immutable; a copy is independent.
class CpuTree {
 public:
  // `by_thread`: every NUMA node is divided by the position of the threads in their cores, so that
  // a part of the machine is one thread of each core.
  CpuTree(const Machine& machine, const CpuSet& cpus, bool by_thread);

  // The CPUs of `idle` in the smallest part of the machine that has `count` of them. Among parts of
  // the same level, from packages down: more CPUs of `own`; then fewer CPUs of `idle` (more of them
  // if `balance`). Empty if `idle` has fewer than `count`.
  CpuSet PartToGrow(const CpuSet& own, const CpuSet& idle, int count, bool balance) const;

  // The one of `candidates`, which are part of `own`, whose part of the machine, from packages
  // down, has the fewest CPUs of `own`; then the fewest of `idle`. The highest number among equals.
  // -1 if there are no candidates.
  int FirstToGiveBack(const CpuSet& own, const CpuSet& candidates, const CpuSet& idle) const;

 private:
  struct Part {
    CpuSet cpus;
    int parent = -1;  // index in the level above
  };
  // By level, then by part, the number of CPUs.
  using Counts = std::vector<std::vector<int>>;

  void Divide(const std::function<int(int cpu)>& group_of);
  Counts Count(const CpuSet& cpus) const;
  // Negative if part `a` of the level has fewer than `b`, at the highest level where they differ.
  int Compare(const Counts& counts, size_t level, int a, int b) const;

  std::vector<std::vector<Part>> levels_;  // from the system to threads
};

}  // namespace resmgr
