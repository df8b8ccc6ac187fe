// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/units.h"
#include "pkg/topology/memory_types.h"

namespace resmgr {

// From the coarsest to the finest.
enum class PoolLevel { kSystem, kPackage, kDie, kNuma, kL3 };

std::string_view ToString(PoolLevel level);  // "system", "package", "die", "numa", "l3"

inline constexpr MemoryTypes kDramBit = BitOf(MemoryType::kDram);
inline constexpr MemoryTypes kPmemBit = BitOf(MemoryType::kPmem);
inline constexpr MemoryTypes kHbmBit = BitOf(MemoryType::kHbm);
inline constexpr MemoryTypes kAllMemoryTypes = kDramBit | kPmemBit | kHbmBit;
inline constexpr size_t kMemoryTypeSets = kAllMemoryTypes + 1;

// Ids of pools, nodes and packages are indices in vectors.
inline size_t IndexOf(int id) {
  return static_cast<size_t>(id);
}

// One pool: a part of the machine in which containers are placed. Has only properties that never
// change.
struct Pool {
  int id =
      0;  // its index in PoolTree::pools(): children before parents, in the order of their CPUs
  int parent = -1;  // -1: the root
  int depth = 0;    // 0: the root
  PoolLevel level = PoolLevel::kSystem;
  std::string name{};  // "NUMA node #1"
  std::vector<int> children{};

  CpuSet cpus{};      // available CPUs, of all the kinds below
  CpuSet sharable{};  // for shared and exclusive use
  CpuSet isolated{};  // kernel's isolcpus, for exclusive use only
  CpuSet reserved{};  // never exclusive
  CpuSet direct{};    // sharable CPUs that are in none of the children

  // Memory nodes of the pool and all pools below, for each set of types.
  std::array<NodeSet, kMemoryTypeSets> nodes{};
  std::array<Bytes, kMemoryTypeSets> capacity{};  // without huge pages
  // Capacity in huge pages, by the index of PoolTree::huge_page_sizes().
  std::vector<std::array<Bytes, kMemoryTypeSets>> huge_capacity{};
  MemoryTypes memory_types = 0;  // the types that `nodes` has
  // The nearest pool with memory: itself or an ancestor, since an L3 group has no memory of its
  // own.
  int memory_pool = 0;
  // Whether the memory of that pool is near to this pool's CPUs, and not to those of other parts.
  bool near_memory = false;
};

// The pools of a machine, after its packages, dies, NUMA nodes and L3 groups, each only if it
// divides the pool around it. Groups nest by their CPUs and not by their names, so NUMA nodes may
// hold packages; groups that overlap without nesting are left out. NUMA nodes without memory that
// containers may use are not pools: their CPUs belong to the pool around them. Memory-only nodes
// belong to the nearest node with CPUs and memory, by that node's own distances (they may be
// asymmetric), the one with the least attached memory first among equals. If it is known beside
// which CPUs a memory-only node lies, only the nodes of these CPUs are considered; if those have no
// memory, the node belongs to the smallest pool around the CPUs. Immutable.
class PoolTree {
 public:
  PoolTree(const Machine& machine, const CpuSet& available, const CpuSet& reserved);

  const std::vector<Pool>& pools() const { return pools_; }
  const Pool& at(int id) const { return pools_[static_cast<size_t>(id)]; }
  int root() const { return static_cast<int>(pools_.size()) - 1; }
  size_t size() const { return pools_.size(); }
  int max_depth() const { return max_depth_; }

  // The id of the pool with this name; -1 if there is none.
  int Find(std::string_view name) const;
  // The smallest pool that has all these CPUs of the machine; the root if no other has.
  int SmallestWith(const CpuSet& cpus) const;
  bool IsAncestorOrSelf(int ancestor, int pool) const;
  // The lowest id of the pools below this pool: these have the ids from there up to the pool's own.
  // Its own id if there are none below.
  int FirstBelow(int pool) const;
  // The number of levels between two pools: 0 for the same pool, 1 for parent and child; -1 if
  // neither is inside the other.
  int Distance(int a, int b) const;
  // The pool that a memory node belongs to; -1 for an unknown node.
  int OwnerOf(int node) const;
  // The sizes of huge pages that the machine has, ascending.
  const std::vector<Bytes>& huge_page_sizes() const { return huge_page_sizes_; }
  // The index of a size in huge_page_sizes().
  std::optional<size_t> IndexOfPages(Bytes size) const;

 private:
  struct Group;
  struct Node;
  void AddPools(std::vector<Node>& nodes, size_t node, int depth, std::vector<int>& siblings);
  void AddMemory(const Machine& machine);
  void AddHugePageSizes(const Machine& machine);
  void AddMemoryNode(const NumaNode& node, int pool);
  void FindNearMemory(const Machine& machine);

  std::vector<Pool> pools_;
  std::vector<CpuSet> extents_;  // all online CPUs of each pool
  std::vector<int> owners_;      // by memory node
  std::vector<Bytes> huge_page_sizes_;
  int max_depth_ = 0;
};

}  // namespace resmgr
