// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// OK if `count` CPUs can be taken from `usable`; else the allocator's documented error.
Status CheckCount(const CpuSet& usable, int count);

// Number of NUMA nodes that have CPUs.
int NodesWithCpus(const Machine& machine);

// Whether NUMA nodes are the outer level (one or several packages in each) rather than packages.
bool NodesHoldPackages(const Machine& machine);

// The online CPUs of a NUMA node by its operating-system number; -1 is for CPUs without a NUMA
// node.
CpuSet NodeCpus(const Machine& machine, int node);

// The elements with free CPUs, at one moment, in the order of use: those with the fewest free CPUs
// first, then the lowest number; elements of inner levels stay together within their outer ones.
// Cheap to construct: one pass over the free CPUs.
class FreeCpus {
 public:
  // `free` has online CPUs only; the machine must outlive this object.
  FreeCpus(const Machine& machine, const CpuSet& free);

  std::vector<int> NodesInOrder() const;  // operating-system numbers, -1 included
  std::vector<int> PackagesInOrder() const;
  std::vector<int> CoresInOrder() const;
  // L3 groups, node by node; the CPUs of a package that have no L3 cache count as one group.
  std::vector<CpuSet> UncoresInOrder() const;

  int InNode(int node) const { return by_node_[static_cast<size_t>(int64_t{node} + 1)]; }

 private:
  // Smaller keys are used first. The high bits are the free CPUs, the low bits the number.
  uint32_t NodeKey(int node) const;
  uint32_t PackageKey(int package) const;
  uint32_t CoreKey(int core) const;
  // The keys of a CPU's elements in both outer levels, the outermost in the high bits.
  uint64_t PlaceKey(int cpu) const;

  const Machine& machine_;
  CpuSet free_;
  bool nodes_first_;
  std::vector<int> by_node_;  // free CPUs, indexed by operating-system number + 1
  std::vector<int> by_package_;
  std::vector<int> by_core_;
};

// Selections of `pick` elements out of several classes of interchangeable ones. class_sizes[i] is
// the number of elements in class i; element i of a selection is the number taken from class i.

// The number of selections; stops counting at `limit`.
int64_t CountSelections(const std::vector<int>& class_sizes, int pick, int64_t limit);

// Visits the selections in lexicographic order: those with the most elements of the first class
// first. `visit` returns false to stop.
void ForEachSelection(const std::vector<int>& class_sizes, int pick,
                      const std::function<bool(const std::vector<int>&)>& visit);

}  // namespace resmgr
