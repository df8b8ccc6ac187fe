// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/cpu_tree.h"

#include <map>
#include <utility>

namespace resmgr {

CpuTree::CpuTree(const Machine& machine, const CpuSet& cpus, bool by_thread) {
  levels_.push_back({{cpus, -1}});
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
  divide_by(&Cpu::core);
  Divide([](int cpu) { return cpu; });
}

// Parts stay in the order of their parents, and below a parent in that of their lowest CPU.
void CpuTree::Divide(const std::function<int(int cpu)>& group_of) {
  std::vector<Part> parts;
  const std::vector<Part>& above = levels_.back();
  for (size_t parent = 0; parent < above.size(); ++parent) {
    std::map<int, size_t> by_group;
    for (const int cpu : above[parent].cpus) {
      const auto [found, added] = by_group.emplace(group_of(cpu), parts.size());
      if (added) parts.push_back({{}, static_cast<int>(parent)});
      parts[found->second].cpus.Add(cpu);
    }
  }
  levels_.push_back(std::move(parts));
}

CpuTree::Counts CpuTree::Count(const CpuSet& cpus) const {
  Counts counts(levels_.size());
  for (size_t level = 0; level < levels_.size(); ++level)
    counts[level].resize(levels_[level].size());
  const size_t last = levels_.size() - 1;
  for (size_t i = 0; i < levels_[last].size(); ++i)
    counts[last][i] = cpus.Contains(levels_[last][i].cpus.First()) ? 1 : 0;
  for (size_t level = last; level > 0; --level) {
    for (size_t i = 0; i < levels_[level].size(); ++i)
      counts[level - 1][static_cast<size_t>(levels_[level][i].parent)] += counts[level][i];
  }
  return counts;
}

int CpuTree::Compare(const Counts& counts, size_t level, int a, int b) const {
  int difference = 0;
  for (; a != b; --level) {
    const auto left = static_cast<size_t>(a);
    const auto right = static_cast<size_t>(b);
    const int here = counts[level][left] - counts[level][right];
    if (here != 0) difference = here;
    a = levels_[level][left].parent;
    b = levels_[level][right].parent;
  }
  return difference;
}

CpuSet CpuTree::PartToGrow(const CpuSet& own, const CpuSet& idle, int count, bool balance) const {
  const Counts owned = Count(own);
  const Counts free = Count(idle);
  for (size_t level = levels_.size(); level-- > 0;) {
    int best = -1;
    for (size_t i = 0; i < levels_[level].size(); ++i) {
      const auto part = static_cast<int>(i);
      if (free[level][i] < count) continue;
      if (best >= 0) {
        const int more = Compare(owned, level, part, best);
        const int freer = Compare(free, level, part, best);
        const bool better = more != 0 ? more > 0 : (balance ? freer > 0 : freer < 0);
        if (!better) continue;
      }
      best = part;
    }
    if (best >= 0) return levels_[level][static_cast<size_t>(best)].cpus & idle;
  }
  return {};
}

int CpuTree::FirstToGiveBack(const CpuSet& own, const CpuSet& candidates,
                             const CpuSet& idle) const {
  const Counts owned = Count(own);
  const Counts free = Count(idle);
  const size_t level = levels_.size() - 1;
  int best = -1;
  for (size_t i = 0; i < levels_[level].size(); ++i) {
    const auto part = static_cast<int>(i);
    if (!candidates.Contains(levels_[level][i].cpus.First())) continue;
    if (best >= 0) {
      const int more = Compare(owned, level, part, best);
      if (more > 0 || (more == 0 && Compare(free, level, part, best) > 0)) continue;
    }
    best = part;
  }
  return best < 0 ? -1 : levels_[level][static_cast<size_t>(best)].cpus.First();
}

}  // namespace resmgr
