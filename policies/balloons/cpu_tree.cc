// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/cpu_tree.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace resmgr {

CpuTree::CpuTree(const Machine& machine, const CpuSet& cpus, bool by_thread) {
  parts_.push_back({cpus, -1});
  level_begins_ = {0, 1};
  const auto divide_by = [&](int Cpu::*group) {
    Divide([&machine, group](int cpu) { return machine.FindCpu(cpu)->*group; });
  };
  divide_by(&Cpu::package);
  divide_by(&Cpu::die);
  divide_by(&Cpu::numa);
  if (by_thread) {
    Divide([&machine](int cpu) {
      int before = 0;
      for (const int sibling : machine.WithSiblings({cpu}))
        before += sibling < cpu ? 1 : 0;
      return before;
    });
  }
  divide_by(&Cpu::l3);
  divide_by(&Cpu::l2);
  divide_by(&Cpu::core);
  Divide([](int cpu) { return cpu; });
  IndexParts();
}

// Parts stay in the order of their parents, and below a parent in that of their lowest CPU.
void CpuTree::Divide(const std::function<int(int cpu)>& group_of) {
  std::vector<Part> below;
  const size_t begin = level_begins_[levels() - 1];
  for (size_t parent = begin; parent < parts_.size(); ++parent) {
    std::map<int, size_t> by_group;
    for (const int cpu : parts_[parent].cpus) {
      const auto [found, added] = by_group.emplace(group_of(cpu), below.size());
      if (added) below.push_back({{}, static_cast<int>(parent)});
      below[found->second].cpus.Add(cpu);
    }
  }
  if (below.size() <= parts_.size() - begin) return;
  std::ranges::move(below, std::back_inserter(parts_));
  level_begins_.push_back(parts_.size());
}

void CpuTree::IndexParts() {
  ancestors_.assign(parts_.size() * levels(), 0);
  thread_of_.assign(static_cast<size_t>(parts_.front().cpus.Last() + 1), -1);
  for (size_t level = 0; level < levels(); ++level) {
    for (size_t part = level_begins_[level]; part < level_begins_[level + 1]; ++part) {
      int ancestor = static_cast<int>(part);
      for (size_t above = level + 1; above-- > 0;) {
        ancestors_[part * levels() + above] = ancestor;
        ancestor = parts_[static_cast<size_t>(ancestor)].parent;
      }
      if (level + 1 < levels() || parts_[part].cpus.empty()) continue;
      thread_of_[static_cast<size_t>(parts_[part].cpus.First())] = static_cast<int>(part);
    }
  }
}

CpuTree::Counts CpuTree::Count(const CpuSet& cpus) const {
  Counts counts(parts_.size());
  const bool few = static_cast<size_t>(cpus.size()) * levels() < parts_.size();
  for (const int cpu : cpus) {
    const auto id = static_cast<size_t>(cpu);
    const int thread = id < thread_of_.size() ? thread_of_[id] : -1;
    if (thread < 0) continue;
    if (!few) ++counts[static_cast<size_t>(thread)];
    for (size_t level = 0; few && level < levels(); ++level)
      ++counts[AncestorOf(thread, level)];
  }
  for (size_t part = parts_.size(); !few && part-- > 1;)
    counts[static_cast<size_t>(parts_[part].parent)] += counts[part];
  return counts;
}

void CpuTree::KeepBest(const Counts& counts, size_t level, bool most,
                       std::vector<int>& kept) const {
  for (size_t above = 1; above <= level && kept.size() > 1; ++above) {
    int best = counts[AncestorOf(kept.front(), above)];
    for (const int part : kept) {
      const int here = counts[AncestorOf(part, above)];
      best = most ? std::max(best, here) : std::min(best, here);
    }
    std::erase_if(kept, [&](int part) { return counts[AncestorOf(part, above)] != best; });
  }
}

CpuSet CpuTree::PartToGrow(const CpuSet& own, const CpuSet& idle, int count, bool balance) const {
  const Counts free = Count(idle);
  for (size_t level = levels(); level-- > 0;) {
    std::vector<int> kept;
    for (size_t part = level_begins_[level]; part < level_begins_[level + 1]; ++part) {
      if (free[part] >= count) kept.push_back(static_cast<int>(part));
    }
    if (kept.empty()) continue;
    if (kept.size() > 1 && !own.empty()) KeepBest(Count(own), level, true, kept);
    KeepBest(free, level, balance, kept);
    return parts_[static_cast<size_t>(kept.front())].cpus & idle;
  }
  return {};
}

CpuSet CpuTree::GiveBack(const CpuSet& own, const CpuSet& candidates, const CpuSet& idle,
                         int count) const {
  std::vector<int> threads;
  for (const int cpu : candidates& parts_.front().cpus)
    threads.push_back(thread_of_[static_cast<size_t>(cpu)]);
  std::ranges::sort(threads);
  Counts owned = Count(own);
  Counts free = Count(idle);
  CpuSet back;
  for (; count > 0 && !threads.empty(); --count) {
    std::vector<int> kept = threads;
    KeepBest(owned, levels() - 1, false, kept);
    KeepBest(free, levels() - 1, false, kept);
    const int next = kept.back();
    std::erase(threads, next);
    back.Add(parts_[static_cast<size_t>(next)].cpus.First());
    for (size_t level = 0; level < levels(); ++level) {
      --owned[AncestorOf(next, level)];
      ++free[AncestorOf(next, level)];
    }
  }
  return back;
}

}  // namespace resmgr
