// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "policies/balloons/cpu_tree.h"

namespace resmgr {

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
  // The balloon avoids its own load, too: the level of it.
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
