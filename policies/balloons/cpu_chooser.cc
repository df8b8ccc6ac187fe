// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/cpu_chooser.h"

#include <array>
#include <utility>

#include "pkg/allocator/idle_groups.h"
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
  if (rules.own_load != BalloonLevel::kNone) return ChooseApart(rules, own, idle, count, dropped);
  return Choose(rules, own, idle, rules.loaded, count, dropped);
}

// One CPU after the other, each away from the load of those before.
CpuSet CpuChooser::ChooseApart(const CpuChoiceRules& rules, const CpuSet& own, const CpuSet& idle,
                               int count, std::vector<std::string>* dropped) const {
  const std::vector<CpuSet>& parts = PartsOfLoad(machine_, rules.own_load);
  CpuSet loaded = rules.loaded | AllOf(parts, own);
  CpuSet chosen;
  for (int i = 0; i < count; ++i) {
    // The first answer is used for all of them, so that they lie together.
    const int wanted = i == 0 && (idle - loaded).size() >= count ? count : 1;
    const CpuSet found =
        Choose(rules, own | chosen, idle - chosen, loaded, wanted, i == 0 ? dropped : nullptr);
    const int cpu = found.First();
    chosen.Add(cpu);
    loaded |= AllOf(parts, {cpu});
  }
  return chosen;
}

// Loads are the last hint.
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
  const CpuSet part = tree.PartToGrow(own, wanted, count, rules.balance);
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

}  // namespace resmgr
