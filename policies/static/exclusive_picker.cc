// SPDX-License-Identifier: Apache-2.0
#include "policies/static/exclusive_picker.h"

#include <algorithm>
#include <array>
#include <vector>

namespace resmgr {
namespace {

// All CPUs of those groups that have one of `cpus`.
CpuSet GroupsOf(const std::vector<CpuSet>& groups, const CpuSet& cpus) {
  CpuSet members;
  for (const CpuSet& group : groups) {
    if (group.Intersects(cpus)) members |= group;
  }
  return members;
}

CpuSet NumaNeighbours(const Machine& machine, const CpuSet& cpus) {
  CpuSet members;
  for (const NumaNode& node : machine.nodes()) {
    if (node.cpus.Intersects(cpus)) members |= node.cpus;
  }
  return members;
}

}  // namespace

ExclusivePicker::ExclusivePicker(const Machine& machine, const StaticOptions& options)
    : machine_(machine), options_(options) {
  for (const CpuSet& core : machine.cores()) {
    if (!core.empty()) threads_ = std::max(threads_, core.size());
  }
  for (const CpuSet& core : machine.cores()) {
    if (!core.empty() && core.size() != threads_) uniform_ = false;
  }
  allocator_options_ = {
      .prefer_align_by_uncore = options.prefer_align_cpus_by_uncorecache,
      .spread_across_cores = options.distribute_cpus_across_cores,
      .distribute_across_numa = options.distribute_cpus_across_numa,
      .group_size = options.full_pcpus_only ? threads_ : 1,
  };
}

StatusOr<ExclusivePicker::Pick> ExclusivePicker::Take(const Need& need, const CpuSet& ordinary,
                                                      const CpuSet& isolated) const {
  RESMGR_RETURN_IF_ERROR(CheckCount(need.count));
  const CpuSet free_ordinary = Grantable(ordinary);
  const CpuSet free_isolated = Grantable(isolated);
  if (need.former.size() == need.count && need.former.IsSubsetOf(free_ordinary | free_isolated)) {
    return Pick{need.former, "the CPUs of its former attempt"};
  }
  if (TriesIsolated(need) && free_isolated.size() >= need.count) {
    const StatusOr<CpuSet> cpus = Allocate(free_isolated, need.former, need.count);
    const bool wanted = need.prefer_isolated.value_or(options_.relaxed_isolation);
    if (cpus.ok() && (need.count == 1 || wanted || IsOneCore(*cpus))) {
      return Pick{*cpus, wanted ? "isolated CPUs are preferred" : "isolated CPUs fit"};
    }
  }
  if (free_ordinary.size() >= need.count) {
    RESMGR_ASSIGN_OR_RETURN(const CpuSet cpus, Allocate(free_ordinary, need.former, need.count));
    return Pick{cpus, "ordinary CPUs"};
  }
  const CpuSet all = free_ordinary | free_isolated;
  if (all.size() < need.count) return Shortage(need.count, all);
  RESMGR_ASSIGN_OR_RETURN(const CpuSet cpus,
                          Allocate(all, need.former | free_ordinary, need.count));
  return Pick{cpus, "ordinary CPUs and, as these are too few, isolated ones"};
}

StatusOr<ExclusivePicker::Pick> ExclusivePicker::Grow(const CpuSet& current, int count,
                                                      const CpuSet& free) const {
  RESMGR_RETURN_IF_ERROR(CheckCount(count));
  const CpuSet grantable = Grantable(free | current) - current;
  const int missing = count - current.size();
  if (grantable.size() < missing) return Shortage(missing, grantable);
  struct Level {
    CpuSet cpus;
    const char* name;
  };
  const std::array<Level, 4> levels = {{
      {machine_.WithSiblings(current), "core"},
      {GroupsOf(machine_.l3_groups(), current), "L3 cache"},
      {NumaNeighbours(machine_, current), "NUMA node"},
      {GroupsOf(machine_.packages(), current), "package"},
  }};
  for (const Level& level : levels) {
    const CpuSet near = grantable & level.cpus;
    if (near.size() < missing) continue;
    RESMGR_ASSIGN_OR_RETURN(const CpuSet added, Allocate(near, {}, missing));
    return Pick{current | added, fmt::format("its CPUs and others of the same {}", level.name)};
  }
  RESMGR_ASSIGN_OR_RETURN(const CpuSet added, Allocate(grantable, levels.back().cpus, missing));
  return Pick{current | added, "its CPUs and the nearest ones"};
}

StatusOr<ExclusivePicker::Pick> ExclusivePicker::Shrink(const CpuSet& current, int count) const {
  RESMGR_RETURN_IF_ERROR(CheckCount(count));
  RESMGR_ASSIGN_OR_RETURN(const CpuSet cpus, Allocate(current, {}, count));
  return Pick{cpus, "a part of the CPUs that it had"};
}

Status ExclusivePicker::CheckCount(int count) const {
  if (!options_.full_pcpus_only || !uniform_ || count % threads_ == 0) return OkStatus();
  return InvalidArgument(
      "needs {} exclusive CPUs, but full-pcpus-only grants whole cores of {} CPUs", count,
      threads_);
}

CpuSet ExclusivePicker::Grantable(const CpuSet& free) const {
  if (!options_.full_pcpus_only) return free;
  CpuSet whole;
  for (const CpuSet& core : machine_.cores()) {
    if (core.IsSubsetOf(free)) whole |= core;
  }
  return whole;
}

bool ExclusivePicker::MadeOfWholeCores(const CpuSet& cpus) const {
  return machine_.WithSiblings(cpus) == cpus;
}

bool ExclusivePicker::IsOneCore(const CpuSet& cpus) const {
  return machine_.WithSiblings(CpuSet{cpus.First()}) == cpus;
}

bool ExclusivePicker::TriesIsolated(const Need& need) const {
  if (need.prefer_isolated.has_value()) return *need.prefer_isolated;
  return options_.relaxed_isolation || need.count == 1 || need.count == threads_;
}

StatusOr<CpuSet> ExclusivePicker::Allocate(const CpuSet& available, const CpuSet& preferred,
                                           int count) const {
  RESMGR_ASSIGN_OR_RETURN(
      const CpuSet cpus,
      AllocateCpus(machine_, available, preferred & available, count, allocator_options_));
  if (options_.full_pcpus_only && !MadeOfWholeCores(cpus)) {
    return InvalidArgument(
        "needs {} exclusive CPUs, which the free cores {} do not make up without dividing one, as "
        "full-pcpus-only demands",
        count, available.ToString());
  }
  return cpus;
}

Status ExclusivePicker::Shortage(int count, const CpuSet& free) const {
  return ResourceExhausted("needs {} exclusive CPUs, but only {} are free{}{}", count, free.size(),
                           options_.full_pcpus_only ? " in whole cores" : "",
                           free.empty() ? "" : fmt::format(" ({})", free.ToString()));
}

}  // namespace resmgr
