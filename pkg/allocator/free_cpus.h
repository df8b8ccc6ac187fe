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

// Whether NUMA nodes are the outer level, each with one or several packages. If not, packages are.
bool NodesHoldPackages(const Machine& machine);

// The online CPUs of a NUMA node by its operating-system number; -1 is for CPUs without a NUMA
// node.
CpuSet NodeCpus(const Machine& machine, int node);

// The elements (nodes, packages, caches, cores) that have free CPUs, in the order of use: those
// with the fewest free CPUs first, then the lowest number; the inner elements of one outer element
// stay together. Cheap to construct: one pass over the free CPUs.
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
  // The sort keys: smaller ones are used first. The high bits are the number of free CPUs, the low
  // bits the element's number.
  uint32_t NodeKey(int node) const;
  uint32_t PackageKey(int package) const;
  uint32_t CoreKey(int core) const;
  // The keys of the node and the package of a CPU, the outer of the two in the high bits.
  uint64_t PlaceKey(int cpu) const;

  const Machine& machine_;
  CpuSet free_;
  bool nodes_first_;
  std::vector<int> by_node_;  // free CPUs, indexed by operating-system number + 1
  std::vector<int> by_package_;
  std::vector<int> by_core_;
};

// Selections of `pick` elements from several classes; the elements of a class are interchangeable.
// class_sizes[i] is the number of elements in class i; element i of a selection is the number taken
// from class i.

// The number of selections; stops counting at `limit`.
int64_t CountSelections(const std::vector<int>& class_sizes, int pick, int64_t limit);

// Visits the selections in lexicographic order: those with the most elements of the first class
// first. `visit` returns false to stop.
void ForEachSelection(const std::vector<int>& class_sizes, int pick,
                      const std::function<bool(const std::vector<int>&)>& visit);

}  // namespace resmgr
