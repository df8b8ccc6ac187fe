// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/cpu_chooser.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "pkg/allocator/cpu_allocator.h"
#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr std::array kLevels = {
    std::pair{BalloonLevel::kNone, std::string_view("")},
    std::pair{BalloonLevel::kSystem, std::string_view("system")},
    std::pair{BalloonLevel::kPackage, std::string_view("package")},
    std::pair{BalloonLevel::kDie, std::string_view("die")},
    std::pair{BalloonLevel::kNuma, std::string_view("numa")},
    std::pair{BalloonLevel::kL3, std::string_view("l3cache")},
    std::pair{BalloonLevel::kL2, std::string_view("l2cache")},
    std::pair{BalloonLevel::kCore, std::string_view("core")},
    std::pair{BalloonLevel::kThread, std::string_view("thread")},
};

}  // namespace

std::optional<BalloonLevel> ParseBalloonLevel(std::string_view text) {
  for (const auto& [level, name] : kLevels) {
    if (EqualsIgnoreCase(name, text)) return level;
  }
  if (EqualsIgnoreCase(text, "l3")) return BalloonLevel::kL3;
  return std::nullopt;
}

std::string_view ToString(BalloonLevel level) {
  for (const auto& [known, name] : kLevels) {
    if (known == level) return name;
  }
  return "";
}

std::vector<CpuSet> PartsAt(const Machine& machine, BalloonLevel level, const CpuSet& cpus) {
  std::vector<CpuSet> parts;
  const auto add = [&](const CpuSet& part) {
    if (part.Intersects(cpus)) parts.push_back(part & cpus);
  };
  const auto add_all = [&](const std::vector<CpuSet>& groups) {
    for (const CpuSet& group : groups)
      add(group);
  };
  switch (level) {
    case BalloonLevel::kNone:
      break;
    case BalloonLevel::kSystem:
      add(cpus);
      break;
    case BalloonLevel::kPackage:
      add_all(machine.packages());
      break;
    case BalloonLevel::kDie:
      add_all(machine.dies());
      break;
    case BalloonLevel::kNuma:
      for (const NumaNode& node : machine.nodes())
        add(node.cpus);
      break;
    case BalloonLevel::kL3:
      add_all(machine.l3_groups());
      break;
    case BalloonLevel::kL2:
      add_all(machine.l2_groups());
      break;
    case BalloonLevel::kCore:
      add_all(machine.cores());
      break;
    case BalloonLevel::kThread:
      for (const int cpu : cpus)
        parts.push_back({cpu});
      break;
  }
  return parts;
}

const std::vector<CpuSet>& PartsOfLoad(const Machine& machine, BalloonLevel level) {
  if (level == BalloonLevel::kL3) return machine.l3_groups();
  return level == BalloonLevel::kL2 ? machine.l2_groups() : machine.cores();
}

CpuSet AllOf(const std::vector<CpuSet>& parts, const CpuSet& touching) {
  CpuSet all;
  for (const CpuSet& part : parts) {
    if (part.Intersects(touching)) all |= part;
  }
  return all;
}

CpuChooser::CpuChooser(const Machine& machine, const CpuSet& available)
    : machine_(machine), tree_(machine, available, false), by_thread_(machine, available, true) {}

StatusOr<CpuSet> CpuChooser::Grow(const CpuChoiceRules& rules, const CpuSet& own,
                                  const CpuSet& idle, int count,
                                  std::vector<std::string>* dropped) const {
  const int free = idle.size();
  if (count <= 0) return CpuSet();
  if (count > free) {
    return ResourceExhausted("{} more CPUs are needed, and {} idle", count, free);
  }
  if (count == free) return idle;
  if (!rules.own_loads.empty()) return ChooseApart(rules, own, idle, count, dropped);
  return Choose(rules, own, idle, rules.loaded, count, dropped);
}

// Chooses the CPUs one by one, each away from the loads of those chosen before.
CpuSet CpuChooser::ChooseApart(const CpuChoiceRules& rules, const CpuSet& own, const CpuSet& idle,
                               int count, std::vector<std::string>* dropped) const {
  CpuSet chosen;
  for (int i = 0; i < count; ++i) {
    CpuSet loaded;
    for (const BalloonLevel level : rules.own_loads) {
      loaded = rules.loaded | AllOf(PartsOfLoad(machine_, level), own | chosen);
      if (!(idle - chosen).IsSubsetOf(loaded)) break;
    }
    // If possible, the first CPU is taken from a group that has room for all, so that they are
    // close together.
    const int wanted = i == 0 && (idle - loaded).size() >= count ? count : 1;
    const CpuSet found =
        Choose(rules, own | chosen, idle - chosen, loaded, wanted, i == 0 ? dropped : nullptr);
    chosen.Add(found.First());
  }
  return chosen;
}

// The loads to avoid count as the last hint.
CpuSet CpuChooser::Choose(const CpuChoiceRules& rules, const CpuSet& own, const CpuSet& idle,
                          const CpuSet& loaded, int count,
                          std::vector<std::string>* dropped) const {
  CpuSet wanted = idle;
  for (const BalloonHint& hint : rules.hints) {
    const CpuSet both = wanted & hint.cpus;
    if (both.size() >= count) {
      wanted = both;
    } else if (dropped != nullptr) {
      dropped->push_back(hint.name);
    }
  }
  const CpuSet calm = wanted - loaded;
  if (calm.size() >= count) wanted = calm;
  const CpuTree& tree = rules.spread ? by_thread_ : tree_;
  CpuSet part = tree.PartToGrow(own, wanted, count, rules.balance);
  if (part.size() == count) return part;
  if (!rules.spread) return TakeIdleGroups(machine_, part, count).value_or(CpuSet());
  CpuSet chosen;
  while (chosen.size() < count)
    chosen |= tree.PartToGrow(own | chosen, part - chosen, 1, rules.balance);
  return chosen;
}

CpuSet CpuChooser::Shrink(const CpuChoiceRules& rules, const CpuSet& own, CpuSet candidates,
                          const CpuSet& idle, int count) const {
  CpuSet back;
  for (const BalloonHint& hint : rules.hints) {
    const CpuSet unwanted = candidates - hint.cpus;
    if (unwanted.size() >= count - back.size()) {
      candidates = unwanted;
    } else {
      back |= unwanted;
      candidates &= hint.cpus;
    }
  }
  const CpuTree& tree = rules.spread ? by_thread_ : tree_;
  return back | tree.GiveBack(own - back, candidates - back, idle | back, count - back.size());
}

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

// Parts stay in the order of their parents; below one parent they are in the order of their lowest
// CPU.
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
  thread_of_.assign(static_cast<size_t>(parts_.front().cpus.Last()) + 1, -1);
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
