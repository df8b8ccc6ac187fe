// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/base/status.h"
#include "pkg/topology/cpu_set.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Picks CPUs for exclusive use. Pure functions: the same machine and the same arguments give the
// same CPUs; what they return is always a subset of `available` and exactly `count` large.
//
// The order of choice is that of the kubelet's static CPU manager policy, so a node that changes
// over finds its containers where they were. Three things differ on purpose. Every core, cache,
// node and package counts with the size that it really has, where the kubelet divides totals and
// then, on hybrid machines or beside offline siblings, hands out CPUs that are not free.
// Combinations of NUMA nodes are compared by value, where the kubelet's list of candidates may
// overwrite itself. And what is left to take after whole cores stays in one core where one can hold
// it, where the kubelet fills the fullest core first: on cores of four threads it divides three
// CPUs over two cores beside an idle one. On cores of one or two threads this makes no difference.
//
// `available` may name CPUs that are not online: they are ignored. Errors: ResourceExhausted "not
// enough cpus available to satisfy request: requested=N, available=N"; InvalidArgument for a
// negative count or a group below one.

struct CpuAllocatorOptions {
  // Before single cores: whole L3 groups that fit, then an L3 group that can hold all of the rest
  // (kubelet: prefer-align-cpus-by-uncorecache).
  bool prefer_align_by_uncore = false;
  // CPUs in the order of their number inside a package instead of whole cores (kubelet:
  // distribute-cpus-across-cores).
  bool spread_across_cores = false;
  // The same number of CPUs on as few NUMA nodes as can hold them (kubelet:
  // distribute-cpus-across-numa), instead of packing. The two options above have no effect then.
  bool distribute_across_numa = false;
  // All in one package wherever the free CPUs of one suffice (of those the one with the fewest),
  // else in as few packages as possible (kubelet: align-by-socket, for its own choice). The options
  // above then choose inside.
  bool align_by_package = false;
  // What is given to a NUMA node at a time when distributing: the threads of a core, to keep cores
  // whole.
  int group_size = 1;
};

// Takes from `preferred` as many as it has and the rest from the others; each part is chosen by the
// options. An empty `preferred` means no preference.
StatusOr<CpuSet> AllocateCpus(const Machine& machine, const CpuSet& available,
                              const CpuSet& preferred, int count,
                              const CpuAllocatorOptions& options);

// As few packages, NUMA nodes and cores as possible, the fullest first: whole packages and nodes
// that fit, then cores, then threads. Only the first two options count.
StatusOr<CpuSet> TakePacked(const Machine& machine, const CpuSet& available, int count,
                            const CpuAllocatorOptions& options);

// Evenly from the fewest NUMA nodes that can hold it; among these the combination that leaves the
// most even rest (smallest standard deviation of free CPUs, rounded to three digits, over all nodes
// that have any; the first such combination in the order of TakePacked). Packed when `count` is no
// multiple of the group, or when no even split exists.
//
// Nodes with equally many free CPUs are interchangeable, which leaves few combinations to compare
// on real machines, and up to eight nodes are always compared exhaustively. Where more than two
// thousand combinations would be left, only the nodes with the most free CPUs are looked at: that
// combination has the smallest deviation, up to rounding.
StatusOr<CpuSet> TakeDistributed(const Machine& machine, const CpuSet& available, int count,
                                 int group_size);

}  // namespace resmgr
