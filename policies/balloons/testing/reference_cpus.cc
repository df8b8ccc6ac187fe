// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/testing/reference_cpus.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "pkg/allocator/cpu_allocator.h"

namespace resmgr::test {
namespace {

// How many CPUs of the set each part around an element has, from the whole machine on.
std::vector<int> Counts(const std::vector<CpuSet>& path, const CpuSet& set) {
  std::vector<int> counts;
  counts.reserve(path.size());
  for (const CpuSet& part : path)
    counts.push_back(part.CountCommon(set));
  return counts;
}

std::vector<int> Negated(std::vector<int> numbers) {
  for (int& number : numbers)
    number = -number;
  return numbers;
}

// The idle CPUs after applying the hints that leave enough of them.
CpuSet Narrowed(const ReferenceWish& wish, const CpuSet& idle, int count) {
  CpuSet left = idle;
  const auto keep = [&](const CpuSet& set) {
    const CpuSet fewer = left & set;
    if (fewer.size() >= count) left = fewer;
  };
  for (const CpuSet& close : wish.close)
    keep(close);
  for (const CpuSet& far : wish.far)
    keep(idle - far);
  keep(idle - wish.loaded);
  return left;
}

}  // namespace

ReferenceCpus::ReferenceCpus(const Machine& machine, const CpuSet& available) : machine_(machine) {
  Element system;
  system.cpus = available;
  system.path = {system.cpus};
  system.numbers = {0};
  plain_.push_back(system);
  split_.push_back(system);
  AddElements(plain_, system, kPackage, false);
  AddElements(split_, system, kPackage, true);
}

int ReferenceCpus::NumberAt(int level, const Cpu& cpu) const {
  switch (level) {
    case kPackage:
      return cpu.package;
    case kDie:
      return cpu.die;
    case kNode:
      return cpu.numa;
    case kThreadClass:
      return machine_.WithSiblings(CpuSet{cpu.id}).CountCommon(CpuSet::Range(0, cpu.id - 1));
    case kL3:
      return cpu.l3;
    case kL2:
      return cpu.l2;
    case kCore:
      return cpu.core;
    default:
      return cpu.id;
  }
}

void ReferenceCpus::AddElements(Tree& tree, const Element& parent, int level,
                                bool by_thread_class) const {
  if (level == kLevels) return;
  if (level == kThreadClass && !by_thread_class) {
    return AddElements(tree, parent, level + 1, by_thread_class);
  }
  std::map<int, CpuSet> groups;
  for (const int cpu : parent.cpus)
    groups[NumberAt(level, *machine_.FindCpu(cpu))].Add(cpu);
  for (const auto& [number, cpus] : groups) {
    Element element = parent;
    element.cpus = cpus;
    // CPUs without such a cache are directly below the node.
    if (number >= 0) {
      element.level = level;
      element.path.push_back(cpus);
      element.numbers.push_back(cpus.First());
      tree.push_back(element);
    }
    AddElements(tree, element, level + 1, by_thread_class);
  }
}

const ReferenceCpus::Element* ReferenceCpus::BestToGrow(const Tree& tree, const ReferenceWish& wish,
                                                        const CpuSet& own, const CpuSet& idle,
                                                        int count) {
  const auto rank = [&](const Element& element) {
    std::vector<int> idle_counts = Counts(element.path, idle);
    if (wish.balancing) idle_counts = Negated(std::move(idle_counts));
    return std::make_tuple(-element.level, Negated(Counts(element.path, own)),
                           std::move(idle_counts), element.numbers);
  };
  const Element* best = nullptr;
  decltype(rank(tree.front())) best_rank;
  for (const Element& element : tree) {
    if (best != nullptr && element.level < best->level) continue;
    if (element.cpus.CountCommon(idle) < count) continue;
    auto its_rank = rank(element);
    if (best != nullptr && its_rank >= best_rank) continue;
    best = &element;
    best_rank = std::move(its_rank);
  }
  return best;
}

int ReferenceCpus::BestToGiveBack(const Tree& tree, const CpuSet& own, const CpuSet& candidates,
                                  const CpuSet& idle) {
  const auto rank = [&](const Element& element) {
    return std::make_tuple(Counts(element.path, own), Counts(element.path, idle),
                           Negated(element.numbers));
  };
  const Element* best = nullptr;
  for (const Element& element : tree) {
    if (element.level != kThread || !element.cpus.Intersects(candidates)) continue;
    if (best == nullptr || rank(element) < rank(*best)) best = &element;
  }
  return best->cpus.First();
}

CpuSet ReferenceCpus::GrowAmong(const ReferenceWish& wish, const CpuSet& own, const CpuSet& left,
                                int count) const {
  const Tree& tree = TreeFor(wish);
  CpuSet part = BestToGrow(tree, wish, own, left, count)->cpus & left;
  if (part.size() == count || !wish.spread_cores) return part;
  CpuSet chosen;
  while (chosen.size() < count) {
    chosen |= BestToGrow(tree, wish, own | chosen, part - chosen, 1)->cpus;
  }
  return chosen;
}

CpuSet ReferenceCpus::Part(const ReferenceWish& wish, const CpuSet& own, const CpuSet& idle,
                           int count) const {
  return GrowAmong(wish, own, Narrowed(wish, idle, count), count);
}

CpuSet ReferenceCpus::Take(const CpuSet& part, int count) const {
  return TakeIdleGroups(machine_, part, count).value_or(CpuSet());
}

// One by one: the first is the lowest of the answer for all.
CpuSet ReferenceCpus::GrowUnderLoad(ReferenceWish wish, CpuSet own, CpuSet idle, int count) const {
  CpuSet chosen;
  while (chosen.size() < count) {
    wish.loaded |= CoresOf(own);
    const bool together = chosen.empty() && (idle - wish.loaded).size() >= count;
    const int wanted = together ? count : 1;
    const int cpu = Take(Part(wish, own, idle, wanted), wanted).First();
    chosen.Add(cpu);
    own.Add(cpu);
    idle.Remove(cpu);
  }
  return chosen;
}

CpuSet ReferenceCpus::Grow(const ReferenceWish& wish, const CpuSet& own, const CpuSet& idle,
                           int count) const {
  if (count == 0) return {};
  if (count == idle.size()) return idle;
  if (wish.own_load) {
    return GrowUnderLoad(wish, own, idle, count);
  }
  return Take(Part(wish, own, idle, count), count);
}

CpuSet ReferenceCpus::Shrink(const ReferenceWish& wish, const CpuSet& own, const CpuSet& idle,
                             int count) const {
  if (count == own.size()) return own;
  // The hints as a binary number, the first one the highest digit.
  const auto weight = [&](int cpu) {
    std::vector<bool> kept;
    for (const CpuSet& close : wish.close)
      kept.push_back(close.Contains(cpu));
    for (const CpuSet& far : wish.far)
      kept.push_back(!far.Contains(cpu));
    return kept;
  };
  std::vector<std::vector<bool>> weights;
  for (const int cpu : own)
    weights.push_back(weight(cpu));
  std::sort(weights.begin(), weights.end());
  CpuSet given_back;
  CpuSet equals;
  if (count > 0) {
    const std::vector<bool>& last = weights[static_cast<size_t>(count) - 1];
    for (const int cpu : own) {
      if (weight(cpu) < last) given_back.Add(cpu);
      if (weight(cpu) == last) equals.Add(cpu);
    }
  }
  while (given_back.size() < count) {
    given_back.Add(
        BestToGiveBack(TreeFor(wish), own - given_back, equals - given_back, idle | given_back));
  }
  return given_back;
}

}  // namespace resmgr::test
