// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/base/units.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// The kind of core that a CPU belongs to on a hybrid machine.
enum class CoreKind { kNormal, kPerformance, kEfficient };

enum class MemoryType { kDram, kPmem, kHbm };

// One logical CPU. Ids of the groups are small numbers from 0, unique over the machine, in the
// order of their lowest CPU. An online CPU always has a core, a die and a package; an offline one
// has -1 everywhere.
struct Cpu {
  int id = -1;  // operating-system number
  int core = -1;
  int l2 = -1;  // of the core alone, unless several cores share the cache
  int l3 = -1;  // -1: no such cache
  int die = -1;
  int numa = -1;  // operating-system number of the node that its memory is local to
  int package = -1;
  bool online = false;
  bool isolated = false;  // kernel's isolcpus
  CoreKind kind = CoreKind::kNormal;
  int speed =
      0;  // rank of its core's design and clock rates, faster is larger; 0 when all are equal
};

// Huge pages that are allocated already, so their memory is not available as ordinary memory.
struct HugePages {
  Bytes size;  // of one
  int64_t count = 0;

  Bytes Total() const { return Bytes{size.value * count}; }
};

// One NUMA node. A node without CPUs is memory only (PMEM, HBM, CXL); one without memory is fine
// too.
struct NumaNode {
  int id = -1;   // operating-system number
  Bytes memory;  // all that the kernel has there
  // One entry for each size, ascending; together not more than `memory`.
  std::vector<HugePages> huge_pages;
  MemoryType type = MemoryType::kDram;
  bool allowed = true;  // containers may have memory here, see Machine::allowed_nodes
  CpuSet cpus;          // online ones whose memory is local here
  // Online CPUs that are near to the node, also for a node without CPUs; empty if unknown.
  CpuSet near;
  // To each node of Machine::nodes(), in that order; 10 is local. Need not be symmetric.
  std::vector<int> distances;

  // The memory that is not allocated as huge pages.
  Bytes OrdinaryMemory() const;
};

// The machine that placements are decided for: an immutable value, safe to read from any thread.
// Groups (cores, L2 and L3 caches, dies, packages) are CPU sets, indexed by the ids in Cpu.
class Machine {
 public:
  // The description from which Create makes a machine. Create fills in what an odd machine leaves
  // out. So group ids may be any numbers, or -1: a CPU without core is a core of its own, a core
  // without L2 cache gets one, a CPU without die is on its package's only die, and all CPUs without
  // package share one. An L2 cache of less than a core counts as that of the whole core. Nodes may
  // lack distances (then 10 to itself and 20 to others, as the kernel assumes) and `cpus` (Create
  // derives them).
  struct Parts {
    std::vector<Cpu> cpus;        // in the order of their id; offline ones included
    std::vector<NumaNode> nodes;  // in the order of their id
    CpuSet allowed;               // CPUs that containers may use; only online ones count
  };
  // Checks and indexes the parts. InvalidArgument when they contradict each other: a CPU twice or
  // out of order, a node that no NumaNode describes, siblings of one core in two places, an id
  // above CpuSet::kMaxId, nodes whose memory has no sum in an int64_t, or with more huge pages than
  // memory, no CPU that is online and allowed.
  static StatusOr<Machine> Create(Parts parts);

  const std::vector<Cpu>& cpus() const { return cpus_; }
  const std::vector<NumaNode>& nodes() const { return nodes_; }

  // nullptr when there is no such CPU or node.
  const Cpu* FindCpu(int id) const;
  const NumaNode* FindNode(int id) const;

  // Online CPUs of each group; element i is the group with id i.
  const std::vector<CpuSet>& cores() const { return cores_; }
  const std::vector<CpuSet>& l2_groups() const { return l2_groups_; }
  const std::vector<CpuSet>& l3_groups() const { return l3_groups_; }
  const std::vector<CpuSet>& dies() const { return dies_; }
  const std::vector<CpuSet>& packages() const { return packages_; }

  const CpuSet& online() const { return online_; }
  const CpuSet& isolated() const { return isolated_; }  // online ones only
  // Online CPUs that containers may use, as the cgroup of pods allows.
  const CpuSet& allowed() const { return allowed_; }
  const NodeSet& node_ids() const { return node_ids_; }
  // The nodes whose memory the cgroup of pods allows; all nodes if it would allow none.
  const NodeSet& allowed_nodes() const { return allowed_nodes_; }

  // The nodes whose memory is local to these CPUs.
  NodeSet NodesOf(const CpuSet& cpus) const;
  // All threads of the cores that these CPUs belong to.
  CpuSet WithSiblings(const CpuSet& cpus) const;

  // A hash, in hexadecimal, of all values above except the amounts of memory, the speeds, the
  // allowed sets, the L2 caches and NumaNode::near. These change on a running machine (ballooning,
  // hot-plug, turbo off, cgroups) or were unknown to former versions, and the machine must still
  // count as the same.
  std::string Fingerprint() const;

 private:
  Machine() = default;
  void IndexOnlineCpu(const Cpu& cpu);

  std::vector<Cpu> cpus_;
  std::vector<NumaNode> nodes_;
  std::vector<int> cpu_index_;   // by CPU id, -1 where there is none
  std::vector<int> node_index_;  // by node id, -1 where there is none
  std::vector<CpuSet> cores_;
  std::vector<CpuSet> l2_groups_;
  std::vector<CpuSet> l3_groups_;
  std::vector<CpuSet> dies_;
  std::vector<CpuSet> packages_;
  CpuSet online_;
  CpuSet isolated_;
  CpuSet allowed_;
  NodeSet node_ids_;
  NodeSet allowed_nodes_;
};

std::string_view ToString(CoreKind kind);    // "normal", "performance", "efficient"
std::string_view ToString(MemoryType type);  // "dram", "pmem", "hbm"

// Reads the CPUs that are online now, from one small file in the kernel's memory. `root` is the
// prefix of /sys; empty: the prefix in HWLOC_FSROOT, as for the live machine.
StatusOr<CpuSet> ReadOnlineCpus(const std::string& root);

// The machine's CPUs that were not online when it was read; only their numbers are known.
CpuSet OfflineCpus(const Machine& machine);

// The nodes that have memory. The kernel's cpusets hold no others, so a node without memory that
// they lack is not withheld from anybody.
NodeSet NodesWithMemory(const Machine& machine);

// A hash, in hexadecimal, of what stays the same when CPUs go offline and come back: the numbers of
// all CPUs, the memory nodes and their distances. Machine::Fingerprint covers more, but only of
// CPUs that are online.
std::string HardwareFingerprint(const Machine& machine);

}  // namespace resmgr
