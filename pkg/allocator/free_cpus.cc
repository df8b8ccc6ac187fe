// SPDX-License-Identifier: Apache-2.0
#include "pkg/allocator/free_cpus.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace resmgr {
namespace {

template <typename Key>
std::vector<int> IdsByKey(std::vector<std::pair<Key, int>>& elements) {
  std::sort(elements.begin(), elements.end());
  std::vector<int> ids;
  ids.reserve(elements.size());
  for (const auto& element : elements)
    ids.push_back(element.second);
  return ids;
}

// Both values are below 2^16 by CpuSet::kMaxId.
uint32_t Key(int free, int id) {
  return (static_cast<uint32_t>(free) << 16) | static_cast<uint32_t>(id);
}

class Walker {
 public:
  Walker(const std::vector<int>& class_sizes,
         const std::function<bool(const std::vector<int>&)>& visit)
      : sizes_(class_sizes), visit_(visit), counts_(class_sizes.size()) {
    behind_.assign(sizes_.size() + 1, 0);
    for (size_t i = sizes_.size(); i > 0; --i)
      behind_[i - 1] = behind_[i] + sizes_[i - 1];
  }

  // Fills the classes from `index` on; false if the visitor has stopped.
  bool Walk(size_t index, int pick) {
    if (index == sizes_.size()) return visit_(counts_);
    const int most = std::min(sizes_[index], pick);
    const int least = std::max(0, pick - behind_[index + 1]);
    for (int count = most; count >= least; --count) {
      counts_[index] = count;
      if (!Walk(index + 1, pick - count)) return false;
    }
    return true;
  }

 private:
  const std::vector<int>& sizes_;
  const std::function<bool(const std::vector<int>&)>& visit_;
  std::vector<int> counts_;
  std::vector<int> behind_;  // members of this class and all later ones
};

}  // namespace

Status CheckCount(const CpuSet& usable, int count) {
  if (count < 0) return InvalidArgument("a negative number of CPUs: {}", count);
  if (count > usable.size()) {
    return ResourceExhausted(
        "not enough cpus available to satisfy request: requested={}, available={}", count,
        usable.size());
  }
  return OkStatus();
}

int NodesWithCpus(const Machine& machine) {
  return static_cast<int>(std::count_if(machine.nodes().begin(), machine.nodes().end(),
                                        [](const NumaNode& node) { return !node.cpus.empty(); }));
}

bool NodesHoldPackages(const Machine& machine) {
  return static_cast<int>(machine.packages().size()) >= NodesWithCpus(machine);
}

CpuSet NodeCpus(const Machine& machine, int node) {
  if (const NumaNode* found = machine.FindNode(node)) return found->cpus;
  CpuSet cpus = machine.online();
  for (const NumaNode& other : machine.nodes())
    cpus -= other.cpus;
  return cpus;
}

FreeCpus::FreeCpus(const Machine& machine, const CpuSet& free)
    : machine_(machine),
      free_(free),
      nodes_first_(NodesHoldPackages(machine)),
      by_node_(static_cast<size_t>(machine.node_ids().Last() + 2)),
      by_package_(machine.packages().size()),
      by_core_(machine.cores().size()) {
  for (const int id : free) {
    const Cpu& cpu = *machine.FindCpu(id);
    ++by_node_[static_cast<size_t>(int64_t{cpu.numa} + 1)];
    ++by_package_[static_cast<size_t>(cpu.package)];
    ++by_core_[static_cast<size_t>(cpu.core)];
  }
}

uint32_t FreeCpus::NodeKey(int node) const {
  return Key(InNode(node), node + 1);
}

uint32_t FreeCpus::PackageKey(int package) const {
  return Key(by_package_[static_cast<size_t>(package)], package);
}

uint32_t FreeCpus::CoreKey(int core) const {
  return Key(by_core_[static_cast<size_t>(core)], core);
}

uint64_t FreeCpus::PlaceKey(int cpu) const {
  const Cpu& place = *machine_.FindCpu(cpu);
  const uint64_t node = NodeKey(place.numa);
  const uint64_t package = PackageKey(place.package);
  return nodes_first_ ? (node << 32) | package : (package << 32) | node;
}

std::vector<int> FreeCpus::NodesInOrder() const {
  std::vector<std::pair<uint64_t, int>> nodes;
  for (int node = -1; node <= machine_.node_ids().Last(); ++node) {
    if (InNode(node) == 0) continue;
    const int first = (NodeCpus(machine_, node) & free_).First();
    nodes.emplace_back(nodes_first_ ? NodeKey(node) : PlaceKey(first), node);
  }
  return IdsByKey(nodes);
}

std::vector<int> FreeCpus::PackagesInOrder() const {
  std::vector<std::pair<uint64_t, int>> packages;
  for (size_t i = 0; i < by_package_.size(); ++i) {
    if (by_package_[i] == 0) continue;
    const auto package = static_cast<int>(i);
    const int first = (machine_.packages()[i] & free_).First();
    packages.emplace_back(nodes_first_ ? PlaceKey(first) : PackageKey(package), package);
  }
  return IdsByKey(packages);
}

std::vector<int> FreeCpus::CoresInOrder() const {
  using CoreOrder = std::pair<uint64_t, uint32_t>;
  std::vector<std::pair<CoreOrder, int>> cores;
  cores.reserve(by_core_.size());
  for (size_t i = 0; i < by_core_.size(); ++i) {
    if (by_core_[i] == 0) continue;
    const auto core = static_cast<int>(i);
    cores.emplace_back(CoreOrder(PlaceKey(machine_.cores()[i].First()), CoreKey(core)), core);
  }
  return IdsByKey(cores);
}

std::vector<CpuSet> FreeCpus::UncoresInOrder() const {
  std::vector<CpuSet> uncores = machine_.l3_groups();
  CpuSet without = machine_.online();
  for (const CpuSet& uncore : uncores)
    without -= uncore;
  for (const CpuSet& package : machine_.packages()) {
    if (package.Intersects(without)) uncores.push_back(package & without);
  }
  std::vector<CpuSet> in_order;
  for (const int node : NodesInOrder()) {
    const CpuSet free_in_node = NodeCpus(machine_, node) & free_;
    std::vector<std::pair<uint32_t, int>> here;
    for (size_t i = 0; i < uncores.size(); ++i) {
      if (!uncores[i].Intersects(free_in_node)) continue;
      const auto id = static_cast<int>(i);
      here.emplace_back(Key(uncores[i].CountCommon(free_), id), id);
    }
    for (const int id : IdsByKey(here))
      in_order.push_back(uncores[static_cast<size_t>(id)]);
  }
  return in_order;
}

int64_t CountSelections(const std::vector<int>& class_sizes, int pick, int64_t limit) {
  // ways[p]: the number of selections of p elements from the classes handled so far.
  std::vector<int64_t> ways(static_cast<size_t>(pick) + 1);
  ways[0] = 1;
  for (const int size : class_sizes) {
    for (size_t p = ways.size() - 1; p > 0; --p) {
      const size_t most = std::min(p, static_cast<size_t>(size));
      for (size_t taken = 1; taken <= most; ++taken)
        ways[p] = std::min(limit, ways[p] + ways[p - taken]);
    }
  }
  return ways.back();
}

void ForEachSelection(const std::vector<int>& class_sizes, int pick,
                      const std::function<bool(const std::vector<int>&)>& visit) {
  if (pick > std::accumulate(class_sizes.begin(), class_sizes.end(), 0)) return;
  Walker(class_sizes, visit).Walk(0, pick);
}

}  // namespace resmgr
