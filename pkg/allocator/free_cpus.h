// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// OK when `count` CPUs can be taken from `usable`; else the error that the allocator promises.
Status CheckCount(const CpuSet& usable, int count);

// NUMA nodes that are not only memory.
int NodesWithCpus(const Machine& machine);

// Whether NUMA nodes are the outer level (one or several packages in each) rather than packages.
bool NodesHoldPackages(const Machine& machine);

// The online CPUs of a NUMA node by its operating-system number; -1 stands for the CPUs that no
// node is local to.
CpuSet NodeCpus(const Machine& machine, int node);

// The elements that have free CPUs, at one moment, in the order in which they are to be used: those
// with the fewest free CPUs first, then the lowest number; elements of the inner levels stay
// together by their outer ones. Cheap to make: one pass over the free CPUs.
class FreeCpus {
 public:
  // `free` holds online CPUs only; the machine must outlive this.
  FreeCpus(const Machine& machine, const CpuSet& free);

  std::vector<int> NodesInOrder() const;  // operating-system numbers, maybe -1
  std::vector<int> PackagesInOrder() const;
  std::vector<int> CoresInOrder() const;
  // L3 groups, node by node; the CPUs of a package that have no L3 cache count as one group.
  std::vector<CpuSet> UncoresInOrder() const;

  int InNode(int node) const { return by_node_[static_cast<size_t>(int64_t{node} + 1)]; }

 private:
  // Smaller keys are used first. Free CPUs above, number below.
  uint32_t NodeKey(int node) const;
  uint32_t PackageKey(int package) const;
  uint32_t CoreKey(int core) const;
  // The place of a CPU in both outer levels, the outermost above.
  uint64_t PlaceKey(int cpu) const;

  const Machine& machine_;
  CpuSet free_;
  bool nodes_first_;
  std::vector<int> by_node_;  // free CPUs by operating-system number plus one
  std::vector<int> by_package_;
  std::vector<int> by_core_;
};

}  // namespace resmgr
