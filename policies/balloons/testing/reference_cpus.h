// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/topology/machine.h"

namespace resmgr::test {

// The rules by which a balloon gets and gives back CPUs, apart from its own and the idle CPUs.
struct ReferenceWish {
  bool balancing = false;     // allocatorTopologyBalancing
  bool spread_cores = false;  // preferSpreadOnPhysicalCores
  std::vector<CpuSet> close;  // one for each device, the most wanted first
  std::vector<CpuSet> far;
  CpuSet loaded;          // the cores that other balloons load likewise: avoided after all others
  bool own_load = false;  // the balloon avoids the cores of its own CPUs, too
};

// A second implementation of how balloons choose CPUs, for comparison, as simple as possible and
// without regard for speed. It shares no code with the policy, only the allocator below both, which
// takes some of the CPUs of one part of the machine and has tests of its own.
//
// Where the description leaves a choice, it does what the policy does. Equal parts are in the order
// of their lowest available CPU, not of the kernel's numbers of NUMA nodes. CPUs that are chosen
// one at a time come from the part that has enough for all. CPUs that are given back are compared
// by all that the balloon still has, not by those alone that the hints leave to choose from. Where
// there are too few CPUs without load for all that are wanted, those that there are come first.
class ReferenceCpus {
 public:
  // Only CPUs that are `available` count. The machine outlives it.
  ReferenceCpus(const Machine& machine, const CpuSet& available);

  // `count` CPUs of `idle`, which has as many, for a balloon that owns `own`.
  CpuSet Grow(const ReferenceWish& wish, const CpuSet& own, const CpuSet& idle, int count) const;
  // `count` CPUs of `own` that the balloon gives back.
  CpuSet Shrink(const ReferenceWish& wish, const CpuSet& own, const CpuSet& idle, int count) const;

  // The idle CPUs of the smallest part of the machine that has enough of those that the wish
  // leaves: the allocator chooses among them.
  CpuSet Part(const ReferenceWish& wish, const CpuSet& own, const CpuSet& idle, int count) const;

  CpuSet CoresOf(const CpuSet& cpus) const { return machine_.WithSiblings(cpus); }

 private:
  // A part of the machine. `path` has the parts around it from the whole machine to itself, and
  // `numbers` their lowest CPUs.
  struct Element {
    CpuSet cpus;
    std::vector<CpuSet> path;
    std::vector<int> numbers;
    int level = 0;
  };
  using Tree = std::vector<Element>;
  enum Level { kSystem, kPackage, kDie, kNode, kThreadClass, kL3, kL2, kCore, kThread, kLevels };

  void AddElements(Tree& tree, const Element& parent, int level, bool by_thread_class) const;
  int NumberAt(int level, const Cpu& cpu) const;
  CpuSet Take(const CpuSet& part, int count) const;
  CpuSet GrowAmong(const ReferenceWish& wish, const CpuSet& own, const CpuSet& left,
                   int count) const;
  CpuSet GrowUnderLoad(ReferenceWish wish, CpuSet own, CpuSet idle, int count) const;
  static const Element* BestToGrow(const Tree& tree, const ReferenceWish& wish, const CpuSet& own,
                                   const CpuSet& idle, int count);
  static int BestToGiveBack(const Tree& tree, const CpuSet& own, const CpuSet& candidates,
                            const CpuSet& idle);
  const Tree& TreeFor(const ReferenceWish& wish) const {
    return wish.spread_cores ? split_ : plain_;
  }

  const Machine& machine_;
  Tree plain_;
  Tree split_;  // nodes are split by the index of a thread inside its core
};

}  // namespace resmgr::test
