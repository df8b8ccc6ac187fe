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
// threads. A level is left out if its parts are the same as those of the level above. Finds the
// part of the machine in which a set of CPUs grows, and the CPU that a set gives back first. If
// parts are equal by all rules, the one with the lowest CPU is taken. Immutable; a copy is
// independent.
class CpuTree {
 public:
  // `by_thread`: every NUMA node is divided by the position of the threads in their cores, so that
  // a part of the machine is one thread of each core.
  CpuTree(const Machine& machine, const CpuSet& cpus, bool by_thread);

  // The CPUs of `idle` in the smallest part of the machine that has `count` of them. Among parts of
  // that level, the order of preference, from packages down, is: more CPUs of `own`; then fewer
  // CPUs of `idle` (more if `balance`). Empty if `idle` has fewer than `count`.
  CpuSet PartToGrow(const CpuSet& own, const CpuSet& idle, int count, bool balance) const;

  // Chooses `count` of `candidates`, which are a part of `own`, one by one: the CPU whose part of
  // the machine, from packages down, has the fewest CPUs of `own`, then the fewest of `idle`; the
  // highest number among equals. Each CPU that was chosen counts as idle for the next choice. All
  // candidates if there are fewer.
  CpuSet GiveBack(const CpuSet& own, const CpuSet& candidates, const CpuSet& idle, int count) const;

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
  // Keeps only the parts with the most (fewest) CPUs, level by level from packages down to `level`.
  void KeepBest(const Counts& counts, size_t level, bool most, std::vector<int>& kept) const;

  std::vector<Part> parts_;  // level after level, from the system down to threads
  // The index of the first part of each level and, at the end, the number of parts.
  std::vector<size_t> level_begins_;
  std::vector<int> ancestors_;  // for each part, its ancestor at each level down to its own
  std::vector<int> thread_of_;  // by CPU: the part that is this thread; -1: not in the tree
};

// The levels of the machine that options of balloons can name. kNone: the option is not set.
enum class BalloonLevel { kNone, kSystem, kPackage, kDie, kNuma, kL3, kL2, kCore, kThread };

// The names are "system", "package", ..., "thread"; kNone is "".
std::optional<BalloonLevel> ParseBalloonLevel(std::string_view text);
std::string_view ToString(BalloonLevel level);

// The parts of the machine at a level, as far as they have any of `cpus`.
std::vector<CpuSet> PartsAt(const Machine& machine, BalloonLevel level, const CpuSet& cpus);
// The parts of all online CPUs at a level that a load can have: kCore, kL2 or kL3. Returned without
// a copy.
const std::vector<CpuSet>& PartsOfLoad(const Machine& machine, BalloonLevel level);
// All CPUs of those parts that have any CPU of `touching`.
CpuSet AllOf(const std::vector<CpuSet>& parts, const CpuSet& touching);

// CPUs that a balloon prefers: those near to a device, or all that are far from a device that
// others want. Earlier hints of a balloon count more.
struct BalloonHint {
  std::string name;
  CpuSet cpus;
};

// How the CPUs of a balloon are chosen.
struct CpuChoiceRules {
  bool balance = false;  // spread over the machine, else packed
  bool spread = false;   // takes one thread of each core first
  std::vector<BalloonHint> hints{};
  CpuSet loaded{};  // CPUs to avoid, near loads of other balloons
  // The levels of the balloon's own loads, the largest parts first: its CPUs stay away from each
  // other at the first level that is possible.
  std::vector<BalloonLevel> own_loads{};
};

// Chooses the CPUs that a balloon takes when it grows, and gives back when it shrinks. Pure; the
// machine must outlive it.
class CpuChooser {
 public:
  CpuChooser(const Machine& machine, const CpuSet& available);

  // Chooses `count` of `idle` for a balloon that has `own`; adds hints that could not be followed
  // to `dropped`. ResourceExhausted if `idle` has fewer.
  StatusOr<CpuSet> Grow(const CpuChoiceRules& rules, const CpuSet& own, const CpuSet& idle,
                        int count, std::vector<std::string>* dropped = nullptr) const;
  // Chooses `count` of `own`, one by one: those that the hints want least, then the farthest.
  CpuSet Shrink(const CpuChoiceRules& rules, const CpuSet& own, const CpuSet& idle,
                int count) const {
    return Shrink(rules, own, own, idle, count);
  }
  // As above, but chooses only among `candidates`, a part of `own`.
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
