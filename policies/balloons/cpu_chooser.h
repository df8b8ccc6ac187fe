// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The machine's CPUs as a tree: system, packages, dies, NUMA nodes, L3 caches, L2 caches, cores,
// threads. Levels whose parts are those of the level above are left out. It finds the part of the
// machine in which a set of CPUs grows, and the CPU that a set gives back first. Where parts are
// equal by all rules, numbers decide: the part with the lowest CPU is the first. Immutable; a copy
// is independent.
class CpuTree {
 public:
  // `by_thread`: every NUMA node is divided by the position of the threads in their cores, so that
  // a part of the machine is one thread of each core.
  CpuTree(const Machine& machine, const CpuSet& cpus, bool by_thread);

  // The CPUs of `idle` in the smallest part of the machine that has `count` of them. Among parts of
  // the same level, from packages down: more CPUs of `own`; then fewer CPUs of `idle` (more of them
  // if `balance`). Empty if `idle` has fewer than `count`.
  CpuSet PartToGrow(const CpuSet& own, const CpuSet& idle, int count, bool balance) const;

  // `count` of `candidates`, which are part of `own`, one after the other: the one whose part of
  // the machine, from packages down, has the fewest CPUs of `own`; then the fewest of `idle`. The
  // highest number among equals. A CPU given back is idle for the next choice. All if there are
  // fewer.
  CpuSet GiveBack(const CpuSet& own, const CpuSet& candidates, const CpuSet& idle, int count) const;
  // The CPU that would be given back first; -1 if there are no candidates.
  int FirstToGiveBack(const CpuSet& own, const CpuSet& candidates, const CpuSet& idle) const {
    return GiveBack(own, candidates, idle, 1).First();
  }

 private:
  struct Part {
    CpuSet cpus;
    int parent = -1;
  };
  // The number of CPUs of each part.
  using Counts = std::vector<int>;

  void Divide(const std::function<int(int cpu)>& group_of);
  void IndexParts();
  size_t levels() const { return level_begins_.size() - 1; }
  // The ancestor of the part at this level.
  size_t AncestorOf(int part, size_t level) const {
    return static_cast<size_t>(ancestors_[static_cast<size_t>(part) * levels() + level]);
  }
  Counts Count(const CpuSet& cpus) const;
  // Keeps the parts with the most (fewest) CPUs, from packages down to the level of these parts.
  void KeepBest(const Counts& counts, size_t level, bool most, std::vector<int>& kept) const;

  std::vector<Part> parts_;  // from the system to threads, each level as a whole
  // The place of the first part of each level, and at last the number of parts.
  std::vector<size_t> level_begins_;
  std::vector<int> ancestors_;  // for each part its ancestor of each level down to its own
  std::vector<int> thread_of_;  // by CPU, the part that has it alone; -1: not in the tree
};

// The levels of the machine that options of balloons name. kNone: the option is not set.
enum class BalloonLevel { kNone, kSystem, kPackage, kDie, kNuma, kL3, kL2, kCore, kThread };

// "system", "package", ..., "thread"; "" is kNone.
std::optional<BalloonLevel> ParseBalloonLevel(std::string_view text);
std::string_view ToString(BalloonLevel level);

// The parts of the machine at a level, as far as they have any of `cpus`.
std::vector<CpuSet> PartsAt(const Machine& machine, BalloonLevel level, const CpuSet& cpus);
// The same for all online CPUs at a level that a load has: kCore, kL2 or kL3. Not copied.
const std::vector<CpuSet>& PartsOfLoad(const Machine& machine, BalloonLevel level);
// The CPUs of all parts that have any of `touching`.
CpuSet AllOf(const std::vector<CpuSet>& parts, const CpuSet& touching);

// CPUs that a balloon wants, in the order of its hints: a device's, or all that are far from a
// device of others.
struct BalloonHint {
  std::string name;
  CpuSet cpus;
};

// How the CPUs of a balloon are chosen.
struct CpuChoiceRules {
  bool balance = false;  // spread over the machine, else packed
  bool spread = false;   // one thread of each core first
  std::vector<BalloonHint> hints{};
  CpuSet loaded{};  // to be avoided: near loads of other balloons
  // The level of the balloon's own load, which it avoids, too.
  BalloonLevel own_load = BalloonLevel::kNone;
};

// Chooses the CPUs that a balloon takes when it grows, and gives back when it shrinks. Pure; the
// machine must outlive it.
class CpuChooser {
 public:
  CpuChooser(const Machine& machine, const CpuSet& available);

  // `count` of `idle`, for a balloon that has `own`; `dropped` gets the names of hints that could
  // not be followed. ResourceExhausted if `idle` has fewer.
  StatusOr<CpuSet> Grow(const CpuChoiceRules& rules, const CpuSet& own, const CpuSet& idle,
                        int count, std::vector<std::string>* dropped = nullptr) const;
  // `count` of `own`, one after the other: those that the hints want least, then the farthest.
  CpuSet Shrink(const CpuChoiceRules& rules, const CpuSet& own, const CpuSet& idle,
                int count) const {
    return Shrink(rules, own, own, idle, count);
  }
  // The same, chosen among a part of `own`.
  CpuSet Shrink(const CpuChoiceRules& rules, const CpuSet& own, CpuSet candidates,
                const CpuSet& idle, int count) const;

 private:
  CpuSet Choose(const CpuChoiceRules& rules, const CpuSet& own, const CpuSet& idle,
                const CpuSet& loaded, int count, std::vector<std::string>* dropped) const;
  CpuSet ChooseApart(const CpuChoiceRules& rules, const CpuSet& own, const CpuSet& idle, int count,
                     std::vector<std::string>* dropped) const;

  const Machine& machine_;
  CpuTree tree_;
  CpuTree by_thread_;
};

}  // namespace resmgr
