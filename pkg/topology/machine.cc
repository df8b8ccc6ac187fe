// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/machine.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/topology/kernel_lists.h"

namespace resmgr {
namespace {

// Numbers the groups of one kind (cores, packages, ...) from 0, in the order of their lowest CPU.
class GroupNumbers {
 public:
  int NumberOf(int given) {
    return numbers_.try_emplace(given, static_cast<int>(numbers_.size())).first->second;
  }

 private:
  std::map<int, int> numbers_;
};

// Group ids for CPUs that lack one; negative, so that they differ from all given ids.
constexpr int kNoPackage = -1;

int OwnCoreKey(int cpu) {
  return -1 - cpu;
}
int OwnL2Key(int core) {
  return -1 - core;
}
int PackageDieKey(int package) {
  return -1 - package;
}

Status CheckCpus(const std::vector<Cpu>& cpus) {
  int previous = -1;
  for (const Cpu& cpu : cpus) {
    if (cpu.id < 0 || cpu.id > CpuSet::kMaxId) {
      return InvalidArgument("CPU {}: ids from 0 to {} are supported", cpu.id, CpuSet::kMaxId);
    }
    if (cpu.id <= previous) {
      return InvalidArgument("CPU {} comes twice or out of order", cpu.id);
    }
    previous = cpu.id;
  }
  return OkStatus();
}

// The size of an index by the ids of `parts`, which are not negative.
template <typename Part>
size_t IndexSize(const std::vector<Part>& parts) {
  size_t size = 0;
  for (const Part& part : parts)
    size = std::max(size, static_cast<size_t>(part.id) + 1);
  return size;
}

Status CheckNodes(const std::vector<NumaNode>& nodes) {
  int previous = -1;
  int64_t room = std::numeric_limits<int64_t>::max();
  for (const NumaNode& node : nodes) {
    if (node.id < 0 || node.id > NodeSet::kMaxId) {
      return InvalidArgument("NUMA node {}: ids from 0 to {} are supported", node.id,
                             NodeSet::kMaxId);
    }
    if (node.id <= previous) {
      return InvalidArgument("NUMA node {} comes twice or out of order", node.id);
    }
    previous = node.id;
    if (node.memory.value > room) {
      return InvalidArgument("the NUMA nodes have more memory than {} bytes",
                             std::numeric_limits<int64_t>::max());
    }
    room -= node.memory.value;
    Bytes left = node.memory;
    for (const HugePages& pages : node.huge_pages) {
      if (pages.size.value <= 0 || pages.count < 0 || pages.count > left.value / pages.size.value) {
        return InvalidArgument("NUMA node {} has more huge pages than memory", node.id);
      }
      left = left - pages.Total();
    }
    if (!node.distances.empty() && node.distances.size() != nodes.size()) {
      return InvalidArgument("NUMA node {} has {} distances for {} nodes", node.id,
                             node.distances.size(), nodes.size());
    }
  }
  return OkStatus();
}

// Fills in the groups that an odd machine leaves out and renumbers all; an offline CPU is in none.
void NormalizeGroups(std::vector<Cpu>& cpus) {
  GroupNumbers cores;
  GroupNumbers l2_groups;
  std::map<int, int> l2_of_core;  // the L2 cache of its first CPU
  GroupNumbers l3_groups;
  GroupNumbers dies;
  GroupNumbers packages;
  for (Cpu& cpu : cpus) {
    if (!cpu.online) {
      cpu.core = cpu.l2 = cpu.l3 = cpu.die = cpu.numa = cpu.package = -1;
      cpu.isolated = false;
      continue;
    }
    cpu.core = cores.NumberOf(cpu.core < 0 ? OwnCoreKey(cpu.id) : cpu.core);
    const int l2 = cpu.l2 < 0 ? OwnL2Key(cpu.core) : cpu.l2;
    cpu.l2 = l2_groups.NumberOf(l2_of_core.try_emplace(cpu.core, l2).first->second);
    if (cpu.l3 >= 0) cpu.l3 = l3_groups.NumberOf(cpu.l3);
    cpu.package = packages.NumberOf(cpu.package < 0 ? kNoPackage : cpu.package);
    cpu.die = dies.NumberOf(cpu.die < 0 ? PackageDieKey(cpu.package) : cpu.die);
  }
}

// The distances that the kernel assumes when the firmware reports none.
constexpr int kLocalDistance = 10;
constexpr int kRemoteDistance = 20;

void FillDistances(std::vector<NumaNode>& nodes) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].distances.empty()) continue;
    nodes[i].distances.assign(nodes.size(), kRemoteDistance);
    nodes[i].distances[i] = kLocalDistance;
  }
}

void AddToGroup(std::vector<CpuSet>& groups, int group, int cpu) {
  if (group < 0) return;
  const auto index = static_cast<size_t>(group);
  if (groups.size() <= index) groups.resize(index + 1);
  groups[index].Add(cpu);
}

// All CPUs of a core must have the L3 cache, die, NUMA node and package of its first CPU.
Status CheckCoresAreWhole(const std::vector<Cpu>& cpus) {
  std::map<int, const Cpu*> first_of_core;
  for (const Cpu& cpu : cpus) {
    if (!cpu.online) continue;
    const Cpu& first = *first_of_core.try_emplace(cpu.core, &cpu).first->second;
    if (cpu.l3 != first.l3 || cpu.die != first.die || cpu.numa != first.numa ||
        cpu.package != first.package) {
      return InvalidArgument(
          "CPUs {} and {} are of one core but not of one L3 cache, die, NUMA node and package",
          first.id, cpu.id);
    }
  }
  return OkStatus();
}

// FNV-1a over numbers: stable between builds and machines, which std::hash is not.
class FingerprintHash {
 public:
  void Add(int64_t number) {
    for (int shift = 0; shift < 64; shift += 8) {
      value_ ^= (static_cast<uint64_t>(number) >> shift) & 0xff;
      value_ *= 0x100000001b3;
    }
  }
  std::string Text() const { return fmt::format("{:016x}", value_); }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace

StatusOr<Machine> Machine::Create(Parts parts) {
  RESMGR_RETURN_IF_ERROR(CheckCpus(parts.cpus));
  RESMGR_RETURN_IF_ERROR(CheckNodes(parts.nodes));
  NormalizeGroups(parts.cpus);
  FillDistances(parts.nodes);

  Machine machine;
  machine.cpus_ = std::move(parts.cpus);
  machine.nodes_ = std::move(parts.nodes);
  machine.cpu_index_.assign(IndexSize(machine.cpus_), -1);
  machine.node_index_.assign(IndexSize(machine.nodes_), -1);
  const bool any_allowed = std::ranges::any_of(machine.nodes_, &NumaNode::allowed);
  for (size_t i = 0; i < machine.nodes_.size(); ++i) {
    NumaNode& node = machine.nodes_[i];
    node.cpus = CpuSet();
    node.allowed |= !any_allowed;
    if (node.allowed) machine.allowed_nodes_.Add(node.id);
    machine.node_ids_.Add(node.id);
    machine.node_index_[static_cast<size_t>(node.id)] = static_cast<int>(i);
  }
  for (size_t i = 0; i < machine.cpus_.size(); ++i) {
    const Cpu& cpu = machine.cpus_[i];
    machine.cpu_index_[static_cast<size_t>(cpu.id)] = static_cast<int>(i);
    if (!cpu.online) continue;
    if (cpu.numa >= 0 && !machine.node_ids_.Contains(cpu.numa)) {
      return InvalidArgument("CPU {} is of NUMA node {}, which is not described", cpu.id, cpu.numa);
    }
    machine.IndexOnlineCpu(cpu);
  }
  for (NumaNode& node : machine.nodes_)
    node.near &= machine.online_;
  RESMGR_RETURN_IF_ERROR(CheckCoresAreWhole(machine.cpus_));
  if (machine.online_.empty()) return InvalidArgument("no CPU is online");
  machine.allowed_ = parts.allowed & machine.online_;
  if (machine.allowed_.empty()) return InvalidArgument("no online CPU is allowed");
  return machine;
}

void Machine::IndexOnlineCpu(const Cpu& cpu) {
  online_.Add(cpu.id);
  if (cpu.isolated) isolated_.Add(cpu.id);
  AddToGroup(cores_, cpu.core, cpu.id);
  AddToGroup(l2_groups_, cpu.l2, cpu.id);
  AddToGroup(l3_groups_, cpu.l3, cpu.id);
  AddToGroup(dies_, cpu.die, cpu.id);
  AddToGroup(packages_, cpu.package, cpu.id);
  if (cpu.numa >= 0) {
    const int node = node_index_[static_cast<size_t>(cpu.numa)];
    nodes_[static_cast<size_t>(node)].cpus.Add(cpu.id);
  }
}

const Cpu* Machine::FindCpu(int id) const {
  if (id < 0 || static_cast<size_t>(id) >= cpu_index_.size()) return nullptr;
  const int index = cpu_index_[static_cast<size_t>(id)];
  return index < 0 ? nullptr : &cpus_[static_cast<size_t>(index)];
}

const NumaNode* Machine::FindNode(int id) const {
  if (id < 0 || static_cast<size_t>(id) >= node_index_.size()) return nullptr;
  const int index = node_index_[static_cast<size_t>(id)];
  return index < 0 ? nullptr : &nodes_[static_cast<size_t>(index)];
}

NodeSet Machine::NodesOf(const CpuSet& cpus) const {
  NodeSet nodes;
  for (const NumaNode& node : nodes_) {
    if (node.cpus.Intersects(cpus)) nodes.Add(node.id);
  }
  return nodes;
}

CpuSet Machine::WithSiblings(const CpuSet& cpus) const {
  CpuSet siblings;
  for (const int id : cpus) {
    const Cpu* cpu = FindCpu(id);
    if (cpu != nullptr && cpu->online) siblings |= cores_[static_cast<size_t>(cpu->core)];
  }
  return siblings;
}

Bytes NumaNode::OrdinaryMemory() const {
  Bytes ordinary = memory;
  for (const HugePages& pages : huge_pages)
    ordinary = ordinary - pages.Total();
  return ordinary;
}

std::string Machine::Fingerprint() const {
  FingerprintHash hash;
  for (const Cpu& cpu : cpus_) {
    for (const int number :
         {cpu.id, cpu.core, cpu.l3, cpu.die, cpu.numa, cpu.package, static_cast<int>(cpu.online),
          static_cast<int>(cpu.isolated), static_cast<int>(cpu.kind),
          static_cast<int>(cpu.online)})  // once the allowed CPUs: the number stays the same
      hash.Add(number);
  }
  for (const NumaNode& node : nodes_) {
    hash.Add(node.id);
    hash.Add(static_cast<int>(node.type));
    for (const int distance : node.distances)
      hash.Add(distance);
  }
  return hash.Text();
}

std::string_view ToString(CoreKind kind) {
  switch (kind) {
    case CoreKind::kNormal:
      return "normal";
    case CoreKind::kPerformance:
      return "performance";
    case CoreKind::kEfficient:
      return "efficient";
  }
  return "unknown";
}

std::string_view ToString(MemoryType type) {
  switch (type) {
    case MemoryType::kDram:
      return "dram";
    case MemoryType::kPmem:
      return "pmem";
    case MemoryType::kHbm:
      return "hbm";
  }
  return "unknown";
}

StatusOr<CpuSet> ReadOnlineCpus(const std::string& root) {
  const char* const other = std::getenv("HWLOC_FSROOT");
  const std::string path = (root.empty() && other != nullptr ? std::string(other) : root) +
                           "/sys/devices/system/cpu/online";
  RESMGR_ASSIGN_OR_RETURN(CpuSet online, ReadKernelCpus(path));
  if (online.empty()) return Unavailable("{} names no CPU", path);
  return online;
}

CpuSet OfflineCpus(const Machine& machine) {
  CpuSet offline;
  for (const Cpu& cpu : machine.cpus()) {
    if (!cpu.online) offline.Add(cpu.id);
  }
  return offline;
}

NodeSet NodesWithMemory(const Machine& machine) {
  NodeSet nodes;
  for (const NumaNode& node : machine.nodes()) {
    if (node.memory.value > 0) nodes.Add(node.id);
  }
  return nodes;
}

std::string HardwareFingerprint(const Machine& machine) {
  FingerprintHash hash;
  for (const Cpu& cpu : machine.cpus())
    hash.Add(cpu.id);
  for (const NumaNode& node : machine.nodes()) {
    hash.Add(node.id);
    hash.Add(static_cast<int>(node.type));
    for (const int distance : node.distances)
      hash.Add(distance);
  }
  return hash.Text();
}

}  // namespace resmgr
