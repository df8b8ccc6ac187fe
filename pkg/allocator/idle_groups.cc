// SPDX-License-Identifier: Apache-2.0
#include "pkg/allocator/idle_groups.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "pkg/allocator/free_cpus.h"

namespace resmgr {

namespace {

// One part of a pick: `needed` CPUs out of `free`, near to those that were taken before.
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

  // Takes whole groups, then restricts the search to the one group that can hold the rest:
  // preferably with CPUs taken already, so that no further group is opened, and with the tightest
  // fit.
  template <typename Groups, typename CpusOf>
  void Narrow(const Groups& groups, const CpusOf& cpus_of) {
    if (needed_ == 0) return;
    // All free CPUs in one group leave no choice. Without this shortcut searches in small pools,
    // which are the most frequent, would spend nearly all their time here.
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
