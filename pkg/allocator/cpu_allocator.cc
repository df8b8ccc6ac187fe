// SPDX-License-Identifier: Apache-2.0
#include "pkg/allocator/cpu_allocator.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "pkg/allocator/free_cpus.h"

namespace resmgr {
namespace {

// The free CPUs of the package that has the fewest of them and still enough; if none has enough,
// those of the packages with the most.
CpuSet InFewestPackages(const Machine& machine, const CpuSet& free, int count) {
  struct Part {
    CpuSet cpus;
    int size = 0;
  };
  std::vector<Part> parts;
  const Part* best = nullptr;
  parts.reserve(machine.packages().size());
  for (const CpuSet& package : machine.packages()) {
    const CpuSet cpus = package & free;
    parts.push_back({cpus, cpus.size()});
    if (parts.back().size < count) continue;
    if (best == nullptr || parts.back().size < best->size) best = &parts.back();
  }
  if (best != nullptr) return best->cpus;
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.size > b.size; });
  CpuSet chosen;
  for (const Part& part : parts) {
    if (chosen.size() >= count) break;
    chosen |= part.cpus;
  }
  return chosen;
}

StatusOr<CpuSet> Take(const Machine& machine, const CpuSet& free, int count,
                      const CpuAllocatorOptions& options) {
  const bool aligned = options.align_by_package && count <= free.size();
  const CpuSet& available = aligned ? InFewestPackages(machine, free, count) : free;
  if (options.distribute_across_numa) {
    return TakeDistributed(machine, available, count, options.group_size);
  }
  return TakePacked(machine, available, count, options);
}

// Takes CPUs step by step, from large elements to single CPUs. Every step sees the CPUs that former
// steps left; within a step the order is fixed.
class Packer {
 public:
  Packer(const Machine& machine, const CpuSet& available, int count)
      : machine_(machine), free_(available), needed_(count) {}

  bool done() const { return needed_ == 0; }
  const CpuSet& taken() const { return taken_; }

  void TakeWholeNodes() {
    if (!AnyWholeNode()) return;
    for (const int node : FreeCpus(machine_, free_).NodesInOrder())
      TakeIfWhole(NodeCpus(machine_, node));
  }
  void TakeWholePackages() {
    const std::vector<CpuSet>& packages = machine_.packages();
    const auto whole = [this](const CpuSet& package) { return IsWhole(package); };
    if (std::none_of(packages.begin(), packages.end(), whole)) return;
    for (const int package : FreeCpus(machine_, free_).PackagesInOrder())
      TakeIfWhole(machine_.packages()[static_cast<size_t>(package)]);
  }
  void TakeWholeCores() {
    for (const int core : FreeCpus(machine_, free_).CoresInOrder())
      TakeIfWhole(machine_.cores()[static_cast<size_t>(core)]);
  }
  void TakeByUncore();
  void TakeSinglesCoreByCore();
  void TakeSinglesByNumber() {
    for (const int package : FreeCpus(machine_, free_).PackagesInOrder())
      TakeSingles(machine_.packages()[static_cast<size_t>(package)] & free_);
  }

 private:
  void Take(const CpuSet& cpus) {
    taken_ |= cpus;
    free_ -= cpus;
    needed_ -= cpus.size();
  }
  bool IsWhole(const CpuSet& element) const {
    return !element.empty() && element.IsSubsetOf(free_) && element.size() <= needed_;
  }
  void TakeIfWhole(const CpuSet& element) {
    if (IsWhole(element)) Take(element);
  }
  // A shortcut that saves sorting the nodes, since usually no whole node is free: without it a
  // decision of `static` takes 4 % more instructions (callgrind, 500 containers on 512 CPUs).
  bool AnyWholeNode() const {
    CpuSet rest = machine_.online();  // CPUs without a node count as one node
    for (const NumaNode& node : machine_.nodes()) {
      if (IsWhole(node.cpus)) return true;
      rest -= node.cpus;
    }
    return IsWhole(rest);
  }
  void TakeSingles(const CpuSet& cpus) {
    for (const int cpu : cpus) {
      if (done()) return;
      Take(CpuSet{cpu});
    }
  }
  CpuSet PartOfUncore(const CpuSet& uncore) const;

  struct PartialCore {
    CpuSet cpus;  // the core's free CPUs
    int free = 0;
    int package = 0;
    int numa = 0;
  };

  const Machine& machine_;
  CpuSet free_;
  CpuSet taken_;
  int needed_;
};

void Packer::TakeByUncore() {
  const std::vector<CpuSet> uncores = FreeCpus(machine_, free_).UncoresInOrder();
  for (const CpuSet& uncore : uncores)
    TakeIfWhole(uncore);
  for (const CpuSet& uncore : uncores) {
    if (done()) return;
    const CpuSet part = PartOfUncore(uncore);
    if (part.size() == needed_) Take(part);
  }
}

// The free threads of the first cores in this cache, in order of core number, until these cores
// have enough threads. Threads in use count too, so the result may be too small. For an odd need,
// one thread of the last core may be left out.
CpuSet Packer::PartOfUncore(const CpuSet& uncore) const {
  const CpuSet left = uncore & free_;
  CoreSet cores;
  for (const int cpu : left)
    cores.Add(machine_.FindCpu(cpu)->core);
  CpuSet part;
  int capacity = 0;
  bool has_siblings = false;
  for (const int id : cores) {
    if (capacity >= needed_) break;
    const CpuSet& core = machine_.cores()[static_cast<size_t>(id)];
    capacity += core.size();
    has_siblings = has_siblings || core.size() > 1;
    part |= core & left;
  }
  if (has_siblings && needed_ % 2 == 1 && part.size() > needed_) part.Remove(part.Last());
  return part;
}

// The remaining CPUs come from one core if one can hold them: the first core whose place (package
// and NUMA node) has the fewest free CPUs. If no core can, the core with the most free CPUs of the
// first place is used up first.
void Packer::TakeSinglesCoreByCore() {
  std::vector<PartialCore> cores;
  int largest = 0;
  for (const int id : FreeCpus(machine_, free_).CoresInOrder()) {
    const CpuSet cpus = machine_.cores()[static_cast<size_t>(id)] & free_;
    const Cpu* const cpu = machine_.FindCpu(cpus.First());
    cores.push_back({cpus, cpus.size(), cpu->package, cpu->numa});
    largest = std::max(largest, cores.back().free);
  }
  auto first = cores.begin();
  while (!done()) {
    while (first->free == 0)
      ++first;
    auto chosen = cores.end();
    if (needed_ <= largest) {
      chosen = std::find_if(first, cores.end(),
                            [this](const PartialCore& core) { return core.free >= needed_; });
    }
    if (chosen == cores.end()) {
      chosen = first;
      for (auto core = first; core != cores.end() && chosen->free < largest; ++core) {
        if (core->package != first->package || core->numa != first->numa) break;
        if (core->free > chosen->free) chosen = core;
      }
    }
    TakeSingles(chosen->cpus);
    chosen->free = 0;
  }
}

// One part of a pick: `needed` CPUs from `free`, near to the CPUs that were taken before.
class GroupPicker {
 public:
  GroupPicker(const Machine& machine, const CpuSet& free, int needed, const CpuSet& taken)
      : machine_(machine), free_(free), taken_(taken), needed_(needed) {}

  CpuSet Pick() {
    if (needed_ == free_.size()) return free_;
    const CpuSet before = taken_;
    const auto self = [](const CpuSet& group) -> const CpuSet& { return group; };
    Narrow(machine_.packages(), self);
    Narrow(machine_.dies(), self);
    Narrow(machine_.nodes(), [](const NumaNode& node) -> const CpuSet& { return node.cpus; });
    Narrow(machine_.l3_groups(), self);
    if (needed_ > 0) TakeCores();
    while (needed_ > 0)
      Take(CpuSet{BestThread()});
    return taken_ - before;
  }

 private:
  void Take(const CpuSet& cpus) {
    taken_ |= cpus;
    free_ -= cpus;
    needed_ -= cpus.size();
  }

  // Takes whole groups, then restricts the search to one group that can hold the rest: preferably a
  // group with CPUs taken already, so that no further group is opened, then the one that fits most
  // tightly.
  template <typename Groups, typename CpusOf>
  void Narrow(const Groups& groups, const CpusOf& cpus_of) {
    if (needed_ == 0) return;
    // If one group has all free CPUs, there is no choice. Without this shortcut, searches in small
    // pools, which are the most frequent, would spend nearly all their time here.
    const int first = free_.First();
    for (const auto& entry : groups) {
      const CpuSet& group = cpus_of(entry);
      if (!group.Contains(first)) continue;
      if (free_.IsSubsetOf(group)) return;
      break;
    }
    for (const auto& entry : groups) {
      const CpuSet& group = cpus_of(entry);
      const int size = group.size();
      if (size > 0 && size <= needed_ && group.IsSubsetOf(free_)) Take(group);
    }
    if (needed_ == 0) return;
    const CpuSet* best = nullptr;
    std::tuple<bool, int> best_rank;
    for (const auto& entry : groups) {
      const CpuSet& group = cpus_of(entry);
      const int free = group.CountCommon(free_);
      const std::tuple rank(!group.Intersects(taken_), free);
      if (free < needed_ || (best != nullptr && rank >= best_rank)) continue;
      best = &group;
      best_rank = rank;
    }
    if (best != nullptr) free_ &= *best;
  }

  const CpuSet& CoreOf(int cpu) const {
    return machine_.cores()[static_cast<size_t>(machine_.FindCpu(cpu)->core)];
  }

  CpuSet IdleCores() const {
    CpuSet idle;
    for (CpuSet left = free_; !left.empty();) {
      const CpuSet& core = CoreOf(left.First());
      if (core.IsSubsetOf(free_)) idle |= core;
      left -= core;
    }
    return idle;
  }

  // The group of cores around a CPU: its L3 cache, else its NUMA node.
  int NeighbourhoodOf(int cpu) const {
    const Cpu& place = *machine_.FindCpu(cpu);
    const auto l3s = static_cast<int>(machine_.l3_groups().size());
    return place.l3 >= 0 ? place.l3 : l3s + 1 + place.numa;
  }

  void TakeCores() {
    struct Core {
      int idle_around;  // CPUs of idle cores in its neighbourhood
      int around;
      int first;
    };
    const CpuSet idle = IdleCores();
    std::vector<int> counts(machine_.l3_groups().size() + 2 +
                            static_cast<size_t>(machine_.node_ids().Last() + 1));
    for (const int cpu : idle)
      ++counts[static_cast<size_t>(NeighbourhoodOf(cpu))];
    std::vector<Core> cores;
    for (CpuSet left = idle; !left.empty();) {
      const int cpu = left.First();
      const int around = NeighbourhoodOf(cpu);
      cores.push_back({counts[static_cast<size_t>(around)], around, cpu});
      left -= CoreOf(cpu);
    }
    std::sort(cores.begin(), cores.end(), [](const Core& a, const Core& b) {
      return std::tuple(-a.idle_around, a.around, a.first) <
             std::tuple(-b.idle_around, b.around, b.first);
    });
    for (const Core& core : cores) {
      if (CoreOf(core.first).size() <= needed_) Take(CoreOf(core.first));
    }
  }

  int BestThread() const {
    const auto rank = [this](int cpu) {
      const Cpu& place = *machine_.FindCpu(cpu);
      const CpuSet& near = place.l3 >= 0 ? machine_.l3_groups()[static_cast<size_t>(place.l3)]
                                         : machine_.packages()[static_cast<size_t>(place.package)];
      return std::tuple(-near.CountCommon(taken_), CoreOf(cpu).CountCommon(free_), cpu);
    };
    int best = free_.First();
    auto best_rank = rank(best);
    for (const int cpu : free_) {
      const auto other = rank(cpu);
      if (other >= best_rank) continue;
      best = cpu;
      best_rank = other;
    }
    return best;
  }

  const Machine& machine_;
  CpuSet free_;
  CpuSet taken_;
  int needed_;
};

}  // namespace

StatusOr<CpuSet> AllocateCpus(const Machine& machine, const CpuSet& available,
                              const CpuSet& preferred, int count,
                              const CpuAllocatorOptions& options) {
  const CpuSet usable = available & machine.online();
  const CpuSet aligned = usable & preferred;
  // If there are too few CPUs, Take refuses the whole count, so that the message names all usable
  // CPUs.
  if (aligned.empty() || count > usable.size()) return Take(machine, usable, count, options);
  const int from_aligned = std::min(count, aligned.size());
  RESMGR_ASSIGN_OR_RETURN(const CpuSet first, Take(machine, aligned, from_aligned, options));
  RESMGR_ASSIGN_OR_RETURN(const CpuSet rest,
                          Take(machine, usable - first, count - from_aligned, options));
  return first | rest;
}

StatusOr<CpuSet> TakePacked(const Machine& machine, const CpuSet& available, int count,
                            const CpuAllocatorOptions& options) {
  const CpuSet usable = available & machine.online();
  RESMGR_RETURN_IF_ERROR(CheckCount(usable, count));
  Packer packer(machine, usable, count);
  if (NodesHoldPackages(machine)) {
    packer.TakeWholeNodes();
    packer.TakeWholePackages();
  } else {
    packer.TakeWholePackages();
    packer.TakeWholeNodes();
  }
  if (!packer.done() && options.prefer_align_by_uncore) packer.TakeByUncore();
  if (!packer.done() && !options.spread_across_cores) packer.TakeWholeCores();
  if (!packer.done() && options.spread_across_cores) packer.TakeSinglesByNumber();
  if (!packer.done()) packer.TakeSinglesCoreByCore();
  return packer.taken();
}

StatusOr<CpuSet> TakeIdleGroups(const Machine& machine, const CpuSet& available, int count,
                                std::span<const CpuSet> preferred) {
  CpuSet free = available & machine.online();
  RESMGR_RETURN_IF_ERROR(CheckCount(free, count));
  CpuSet taken;
  int needed = count;
  const auto take = [&](const CpuSet& from) {
    const int part = std::min(needed, from.size());
    if (part == 0) return;
    const CpuSet picked = GroupPicker(machine, from, part, taken).Pick();
    taken |= picked;
    free -= picked;
    needed -= part;
  };
  for (const CpuSet& set : preferred)
    take(free & set);
  take(free);
  return taken;
}

}  // namespace resmgr
