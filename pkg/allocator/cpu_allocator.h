// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "pkg/base/status.h"
#include "pkg/topology/cpu_set.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Picks CPUs for exclusive use. Pure functions: the same machine and the same arguments give the
// same CPUs; what they return is always a subset of `available` and exactly `count` large.
//
// The order of choice is that of the kubelet's static CPU manager policy, so a node that changes
// over keeps its containers in place. Three things differ on purpose. Every core, cache, node and
// package counts with its real size; the kubelet divides totals and then, on hybrid machines or
// beside offline siblings, grants CPUs that are not free. Combinations of NUMA nodes are compared
// by value; the kubelet's list of candidates may overwrite itself. The remainder after whole cores
// stays in one core if one can hold it; the kubelet fills the fullest core first, so on cores of
// four threads it divides three CPUs over two cores beside an idle one. On cores of one or two
// threads this makes no difference.
//
// CPUs in `available` that are not online are ignored. Errors: kResourceExhausted "not enough cpus
// available to satisfy request: requested=N, available=N"; kInvalidArgument for a negative count or
// a group below one.

struct CpuAllocatorOptions {
  // Takes whole L3 groups that fit, then an L3 group that can hold the remainder, before single
  // cores (kubelet: prefer-align-cpus-by-uncorecache).
  bool prefer_align_by_uncore = false;
  // Takes single CPUs in the order of their numbers inside a package, instead of whole cores
  // (kubelet: distribute-cpus-across-cores).
  bool spread_across_cores = false;
  // Takes the same number of CPUs from as few NUMA nodes as can hold them (kubelet:
  // distribute-cpus-across-numa), instead of packing. The two options above have no effect then.
  bool distribute_across_numa = false;
  // Takes all CPUs from one package if the free CPUs of one suffice (the one with the fewest), else
  // from as few packages as possible (kubelet: align-by-socket, for its own choice). The options
  // above then choose inside.
  bool align_by_package = false;
  // CPUs given to a NUMA node at a time by distribute_across_numa: the threads of a core, to keep
  // cores whole.
  int group_size = 1;
};

// Takes as many CPUs as possible from `preferred` and the rest from the others; the options choose
// within each part. An empty `preferred` means no preference.
StatusOr<CpuSet> AllocateCpus(const Machine& machine, const CpuSet& available,
                              const CpuSet& preferred, int count,
                              const CpuAllocatorOptions& options);

// Uses as few packages, NUMA nodes and cores as possible, the fullest first: whole packages and
// nodes that fit, then cores, then threads. Only the first two options apply.
StatusOr<CpuSet> TakePacked(const Machine& machine, const CpuSet& available, int count,
                            const CpuAllocatorOptions& options);

// Takes CPUs evenly from the fewest NUMA nodes that can hold them; among these the combination that
// leaves the most even rest (smallest standard deviation of free CPUs, rounded to three digits,
// over all nodes that have any; the first such combination in the order of TakePacked). Packs if
// `count` is not a multiple of the group, or if no even split exists.
//
// Nodes with equally many free CPUs are interchangeable, which leaves few combinations to compare
// on real machines, and up to eight nodes are always compared exhaustively. If more than two
// thousand combinations would be left, only the nodes with the most free CPUs are considered: that
// combination has the smallest deviation, up to rounding.
StatusOr<CpuSet> TakeDistributed(const Machine& machine, const CpuSet& available, int count,
                                 int group_size);

// Picks `count` CPUs of `available` that are near to each other, and leaves large groups whole for
// others. It narrows the search from packages over dies, NUMA nodes and L3 groups:
//   1. it takes whole idle groups (all their online CPUs are available) that are not larger than
//      the remaining need, the lowest first;
//   2. if one group has room for all the rest, it continues inside that: one with CPUs that are
//      picked already first, then the one with the fewest available CPUs, the lowest among equals.
// Then it takes whole idle cores, from the L3 groups and NUMA nodes with the most of them, and
// single threads, from partly used cores and beside CPUs already picked.
//
// `preferred` are sets in the order of preference: as many CPUs as possible come from the first,
// then from the second, ..., each part chosen as above. Deterministic. Errors are those of
// AllocateCpus.
StatusOr<CpuSet> TakeIdleGroups(const Machine& machine, const CpuSet& available, int count,
                                std::span<const CpuSet> preferred = {});

}  // namespace resmgr
