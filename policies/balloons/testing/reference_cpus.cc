// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/testing/reference_cpus.h"

#include <algorithm>
#include <map>

namespace resmgr::test {
namespace {

// How many CPUs of the set each part around an element has, from the whole machine on.
std::vector<int> Counts(const std::vector<CpuSet>& path, const CpuSet& set) {
  std::vector<int> counts;
  for (const CpuSet& part : path)
    counts.push_back(part.CountCommon(set));
  return counts;
}

std::vector<int> Negated(std::vector<int> numbers) {
  for (int& number : numbers)
    number = -number;
  return numbers;
}

// The idle CPUs that are left by those hints that leave enough.
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
  for (const ReferenceLoad& load : wish.loads)
    keep(idle - load.loaded);
  return left;
}

}  // namespace

ReferenceCpus::ReferenceCpus(const Machine& machine) : machine_(machine) {
  Element system;
  system.cpus = machine.online();
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
      element.numbers.push_back(number);
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
  for (const Element& element : tree) {
    if (element.cpus.CountCommon(idle) < count) continue;
    if (best == nullptr || element.level > best->level ||
        (element.level == best->level && rank(element) < rank(*best))) {
      best = &element;
    }
  }
  return best;
}

int ReferenceCpus::BestToGiveBack(const Tree& tree, const CpuSet& own, const CpuSet& idle) {
  const auto rank = [&](const Element& element) {
    return std::make_tuple(Counts(element.path, own), Counts(element.path, idle),
                           Negated(element.numbers));
  };
  const Element* best = nullptr;
  for (const Element& element : tree) {
    if (element.level != kThread || !element.cpus.Intersects(own)) continue;
    if (best == nullptr || rank(element) < rank(*best)) best = &element;
  }
  return best->cpus.First();
}

// Whole cores first, then threads where most of the package and of the core is taken.
CpuSet ReferenceCpus::Take(const CpuSet& part, int count) const {
  CpuSet taken;
  for (const CpuSet& core : machine_.cores()) {
    if (!core.IsSubsetOf(part) || taken.size() + core.size() > count) continue;
    taken |= core;
  }
  while (taken.size() < count) {
    const CpuSet left = part - taken;
    const auto rank = [&](int id) {
      const Cpu& cpu = *machine_.FindCpu(id);
      const CpuSet& package = machine_.packages()[static_cast<size_t>(cpu.package)];
      const CpuSet& core = machine_.cores()[static_cast<size_t>(cpu.core)];
      return std::make_tuple(-package.CountCommon(taken), cpu.package, left.CountCommon(package),
                             left.CountCommon(core), id);
    };
    int best = left.First();
    for (const int id : left) {
      if (rank(id) < rank(best)) best = id;
    }
    taken.Add(best);
  }
  return taken;
}

CpuSet ReferenceCpus::GrowAmong(const ReferenceWish& wish, const CpuSet& own, const CpuSet& left,
                                int count) const {
  const Tree& tree = TreeFor(wish);
  const CpuSet part = BestToGrow(tree, wish, own, left, count)->cpus & left;
  if (part.size() == count || !wish.spread_cores) return part;
  CpuSet chosen;
  while (chosen.size() < count) {
    chosen |= BestToGrow(tree, wish, own | chosen, left - chosen, 1)->cpus;
  }
  return chosen;
}

CpuSet ReferenceCpus::Part(const ReferenceWish& wish, const CpuSet& own, const CpuSet& idle,
                           int count) const {
  return GrowAmong(wish, own, Narrowed(wish, idle, count), count);
}

// One by one: the first is the lowest of the answer for all.
CpuSet ReferenceCpus::GrowUnderLoad(ReferenceWish wish, CpuSet own, CpuSet idle, int count) const {
  CpuSet chosen;
  for (int wanted = count; chosen.size() < count; wanted = 1) {
    for (ReferenceLoad& load : wish.loads) {
      if (load.in_balloon) load.loaded |= CoresOf(own);
    }
    const int cpu = Part(wish, own, idle, wanted).First();
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
  if (std::any_of(wish.loads.begin(), wish.loads.end(),
                  [](const ReferenceLoad& load) { return load.in_balloon; })) {
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
  CpuSet free = idle;
  while (given_back.size() < count) {
    const int cpu = BestToGiveBack(TreeFor(wish), equals, free);
    given_back.Add(cpu);
    equals.Remove(cpu);
    free.Add(cpu);
  }
  return given_back;
}

}  // namespace resmgr::test
