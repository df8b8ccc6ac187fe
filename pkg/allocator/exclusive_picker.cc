// SPDX-License-Identifier: Apache-2.0
#include "pkg/allocator/exclusive_picker.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/allocator/free_cpus.h"
#include "pkg/base/amount_text.h"

namespace resmgr {
namespace {

// All CPUs of the groups that have at least one of `cpus`.
CpuSet GroupsOf(const std::vector<CpuSet>& groups, const CpuSet& cpus) {
  CpuSet members;
  for (const CpuSet& group : groups) {
    if (group.Intersects(cpus)) members |= group;
  }
  return members;
}

int CountTouched(const std::vector<CpuSet>& groups, const CpuSet& cpus) {
  return static_cast<int>(std::ranges::count_if(
      groups, [&cpus](const CpuSet& group) { return group.Intersects(cpus); }));
}

// Whether the first set is in more cores, L3 caches, NUMA nodes or packages than the second one.
bool SplitsMore(const Machine& machine, const CpuSet& cpus, const CpuSet& than) {
  if (cpus == than) return false;
  if (machine.NodesOf(cpus).size() > machine.NodesOf(than).size()) return true;
  return std::ranges::any_of(
      std::array{&machine.packages(), &machine.l3_groups(), &machine.cores()},
      [&](const std::vector<CpuSet>* groups) {
        return CountTouched(*groups, cpus) > CountTouched(*groups, than);
      });
}

// The number of `cpus` in each NUMA node that has some of them, ascending.
std::vector<int> PartsByNode(const Machine& machine, const CpuSet& cpus) {
  std::vector<int> parts;
  for (const NumaNode& node : machine.nodes()) {
    if (node.cpus.Intersects(cpus)) parts.push_back(node.cpus.CountCommon(cpus));
  }
  std::ranges::sort(parts);
  return parts;
}

CpuSet NumaNeighbours(const Machine& machine, const CpuSet& cpus) {
  CpuSet members;
  for (const NumaNode& node : machine.nodes()) {
    if (node.cpus.Intersects(cpus)) members |= node.cpus;
  }
  return members;
}

// The CPUs of all cores of each size.
using CoresBySize = std::map<int, CpuSet>;

// How many CPUs of the cores of each size make up the count, as many as possible of the largest
// ones; empty if no whole cores do.
std::map<int, int> PartsBySize(const CoresBySize& cores_by_size, int count) {
  // For each size the sums that smaller cores make up.
  std::map<int, std::vector<bool>> below;
  std::vector<bool> sums(static_cast<size_t>(count) + 1);
  sums[0] = true;
  for (const auto& [size, cpus] : cores_by_size) {
    below[size] = sums;
    std::vector<int> used(sums.size());  // CPUs of this size in each sum: as few as possible
    const auto step = static_cast<size_t>(size);
    for (size_t sum = step; sum < sums.size(); ++sum) {
      if (sums[sum] || !sums[sum - step] || used[sum - step] == cpus.size()) continue;
      sums[sum] = true;
      used[sum] = used[sum - step] + size;
    }
  }
  std::map<int, int> parts;
  if (!sums.back()) return parts;
  for (auto cores = cores_by_size.rbegin(); cores != cores_by_size.rend(); ++cores) {
    const int size = cores->first;
    int part = std::min(count / size * size, cores->second.size());
    while (!below[size][static_cast<size_t>(count - part)])
      part -= size;
    parts[size] = part;
    count -= part;
  }
  return parts;
}

constexpr std::string_view kFullPcpusOnly = "full-pcpus-only";
constexpr std::string_view kAcrossNuma = "distribute-cpus-across-numa";
constexpr std::string_view kAcrossCores = "distribute-cpus-across-cores";
constexpr std::string_view kAlignBySocket = "align-by-socket";
constexpr std::string_view kUncore = "prefer-align-cpus-by-uncorecache";

void Exclude(ConfigSection& reader, bool a, std::string_view a_name, bool b,
             std::string_view b_name) {
  const ConfigNode* const node = reader.Node(a_name);
  if (!a || !b || node == nullptr) return;
  reader.Fail(*node, a_name, fmt::format("cannot be combined with {}", b_name));
}

}  // namespace

ExclusivePicker::ExclusivePicker(const Machine& machine, const ExclusiveOptions& options,
                                 const CpuSet& all, const CpuSet& offline)
    : machine_(machine),
      options_(options),
      all_(all.empty() ? machine.online() : all),
      cores_(machine, offline) {
  allocator_options_ = {
      .prefer_align_by_uncore = options.prefer_align_cpus_by_uncorecache,
      .spread_across_cores = options.distribute_cpus_across_cores,
      .distribute_across_numa = options.distribute_cpus_across_numa,
      .align_by_package = options.align_by_socket,
      .group_size = options.full_pcpus_only ? cores_.threads() : 1,
  };
}

StatusOr<ExclusivePicker::Pick> ExclusivePicker::Take(const Need& need, const CpuSet& ordinary,
                                                      const CpuSet& isolated) const {
  RESMGR_RETURN_IF_ERROR(CheckCount(need.count));
  const CpuSet free_ordinary = need.require_isolated ? CpuSet() : Grantable(ordinary);
  const bool no_isolated = !need.require_isolated && need.prefer_isolated == false;
  const CpuSet free_isolated = no_isolated ? CpuSet() : Grantable(isolated);
  const CpuSet usable = free_ordinary | free_isolated;
  std::optional<Pick> former = TakeFormer(need, usable);
  // CPUs inside the place that the container asks for are taken even if CPUs elsewhere would split
  // the container less.
  const bool is_right = former && (need.former_is_place ? former->cpus.IsSubsetOf(need.former)
                                                        : former->cpus == need.former);
  if (is_right) return *std::move(former);
  StatusOr<Pick> anew = TakeAnew(need, free_ordinary, free_isolated);
  // Without exactly its former CPUs, a container keeps some of them only if that splits it no more
  // than new ones do.
  if (former && (!anew.ok() || !SplitsMore(machine_, former->cpus, anew->cpus))) {
    return *std::move(former);
  }
  RESMGR_ASSIGN_OR_RETURN(Pick pick, std::move(anew));
  const CpuSet& kind = pick.cpus.IsSubsetOf(free_isolated)   ? free_isolated
                       : pick.cpus.IsSubsetOf(free_ordinary) ? free_ordinary
                                                             : usable;
  if (const std::optional<CpuSet> left = TakeLeft(need, kind, pick.cpus)) {
    pick.cpus = *left;
    pick.rule = "CPUs that a container of the pod left";
    pick.considered.push_back({"what its pod left", pick.rule, (need.left_by_pod & kind).size()});
  }
  return pick;
}

// Takes the former CPUs of the container that are free, and replaces the missing ones by CPUs near
// them.
std::optional<ExclusivePicker::Pick> ExclusivePicker::TakeFormer(const Need& need,
                                                                 const CpuSet& usable) const {
  const CpuSet kept = Grantable(need.former & usable);
  if (kept.empty()) return std::nullopt;
  const StatusOr<CpuSet> cpus = Around(kept, need.count, usable);
  if (!cpus.ok()) return std::nullopt;
  const bool inside = cpus->IsSubsetOf(need.former);
  if (need.former_is_place) {
    const std::string_view rule = inside
                                      ? "CPUs in the place that it asks for"
                                      : "CPUs in the place that it asks for, and others near them";
    return Pick{*cpus, rule, {{"the place that it asks for", rule, kept.size()}}};
  }
  const std::string_view rule = *cpus == need.former ? "the CPUs that it had before"
                                : inside             ? "some of the CPUs that it had before"
                                         : "CPUs that it had before, and others near them";
  return Pick{*cpus, rule, {{"what it had before", rule, kept.size()}}};
}

// Returns CPUs of the kind of `usable` that ended containers of the pod left, unless they split the
// container more than `anew`. If an option spreads or aligns CPUs, their number must be exact,
// since a part of them, or others around them, would not follow that option.
std::optional<CpuSet> ExclusivePicker::TakeLeft(const Need& need, const CpuSet& usable,
                                                const CpuSet& anew) const {
  const CpuSet left = Grantable(need.left_by_pod & usable);
  const bool arranged = options_.distribute_cpus_across_numa ||
                        options_.distribute_cpus_across_cores ||
                        options_.prefer_align_cpus_by_uncorecache;
  if (left.empty() || (arranged && left.size() != need.count)) return std::nullopt;
  const StatusOr<CpuSet> cpus = Around(left, need.count, usable);
  if (!cpus.ok() || SplitsMore(machine_, *cpus, anew) || !SpreadAs(*cpus, anew)) {
    return std::nullopt;
  }
  return *cpus;
}

// Whether `cpus` are spread over cores and NUMA nodes as far as the options require and as `anew`
// is: CPUs left by several containers of the pod may be spread less.
bool ExclusivePicker::SpreadAs(const CpuSet& cpus, const CpuSet& anew) const {
  if (options_.distribute_cpus_across_cores &&
      CountTouched(machine_.cores(), cpus) < CountTouched(machine_.cores(), anew)) {
    return false;
  }
  return !options_.distribute_cpus_across_numa ||
         PartsByNode(machine_, cpus) == PartsByNode(machine_, anew);
}

StatusOr<ExclusivePicker::Pick> ExclusivePicker::TakeAnew(const Need& need, const CpuSet& ordinary,
                                                          const CpuSet& isolated) const {
  const int count = need.count;
  if (need.require_isolated) {
    if (isolated.size() < count) return Shortage(count, isolated, "isolated");
    RESMGR_ASSIGN_OR_RETURN(const CpuSet cpus, Allocate(isolated, {}, count));
    return Pick{cpus, "isolated CPUs are required", {{"isolated CPUs", "taken", isolated.size()}}};
  }
  Pick pick;
  pick.considered.reserve(4);
  if (TriesIsolated(need)) {
    const bool wanted = need.prefer_isolated.value_or(options_.prefer_isolated);
    std::string_view verdict = "too few";
    if (isolated.size() >= count) {
      const StatusOr<CpuSet> cpus = Allocate(isolated, {}, count);
      verdict = "not in one core";
      if (cpus.ok() && (count == 1 || wanted || IsOneCore(*cpus))) {
        pick.considered.push_back({"isolated CPUs", "taken", isolated.size()});
        pick.cpus = *cpus;
        pick.rule = wanted ? "isolated CPUs are preferred" : "isolated CPUs fit";
        return pick;
      }
    }
    pick.considered.push_back({"isolated CPUs", verdict, isolated.size()});
  }
  if (ordinary.size() >= count) {
    RESMGR_ASSIGN_OR_RETURN(pick.cpus, Allocate(ordinary, {}, count));
    pick.rule = "ordinary CPUs";
    pick.considered.push_back({"ordinary CPUs", "taken", ordinary.size()});
    return pick;
  }
  const CpuSet all = ordinary | isolated;
  if (all.size() < count) return Shortage(count, all, "exclusive");
  RESMGR_ASSIGN_OR_RETURN(pick.cpus, Allocate(all, ordinary, count));
  pick.rule = "ordinary CPUs and, as these are too few, isolated ones";
  pick.considered.push_back({"ordinary CPUs", "too few", ordinary.size()});
  pick.considered.push_back({"ordinary and isolated CPUs", "taken", all.size()});
  return pick;
}

StatusOr<CpuSet> ExclusivePicker::Around(const CpuSet& current, int count,
                                         const CpuSet& usable) const {
  if (current.size() == count) return current;
  RESMGR_ASSIGN_OR_RETURN(const Pick pick, current.size() > count ? Shrink(current, count)
                                                                  : Grow(current, count, usable));
  return pick.cpus;
}

StatusOr<ExclusivePicker::Pick> ExclusivePicker::Grow(const CpuSet& current, int count,
                                                      const CpuSet& free) const {
  RESMGR_RETURN_IF_ERROR(CheckCount(count));
  const CpuSet grantable = Grantable(free | current) - current;
  const int missing = count - current.size();
  if (grantable.size() < missing) return Shortage(missing, grantable, "more exclusive");
  struct Level {
    CpuSet cpus;
    std::string_view name;
    std::string_view rule;
  };
  // An L3 cache may span several nodes, and a node several caches, so neither is always the nearer
  // one.
  const CpuSet caches = GroupsOf(machine_.l3_groups(), current);
  const CpuSet nodes = NumaNeighbours(machine_, current);
  const std::array<Level, 5> levels = {{
      {machine_.WithSiblings(current), "same cores", "its CPUs and others of the same core"},
      {caches & nodes, "same L3 caches and NUMA nodes",
       "its CPUs and others of the same L3 cache and NUMA node"},
      {nodes, "same NUMA nodes", "its CPUs and others of the same NUMA node"},
      {caches, "same L3 caches", "its CPUs and others of the same L3 cache"},
      {GroupsOf(machine_.packages(), current), "same packages",
       "its CPUs and others of the same package"},
  }};
  Pick pick;
  pick.considered.reserve(levels.size() + 1);
  for (const Level& level : levels) {
    const CpuSet near = grantable & level.cpus;
    if (near.size() < missing) {
      pick.considered.push_back({level.name, "too few", near.size()});
      continue;
    }
    RESMGR_ASSIGN_OR_RETURN(const CpuSet added, Allocate(near, {}, missing));
    pick.considered.push_back({level.name, "taken", near.size()});
    pick.cpus = current | added;
    pick.rule = level.rule;
    return pick;
  }
  RESMGR_ASSIGN_OR_RETURN(const CpuSet added, Allocate(grantable, levels.back().cpus, missing));
  pick.considered.push_back({"the machine", "taken", grantable.size()});
  pick.cpus = current | added;
  pick.rule = "its CPUs and the nearest ones";
  return pick;
}

StatusOr<ExclusivePicker::Pick> ExclusivePicker::Shrink(const CpuSet& current, int count,
                                                        const CpuSet& preferred) const {
  RESMGR_RETURN_IF_ERROR(CheckCount(count));
  const CpuSet first = options_.full_pcpus_only ? machine_.WithSiblings(preferred) : preferred;
  RESMGR_ASSIGN_OR_RETURN(const CpuSet cpus, Allocate(Grantable(current), first, count));
  const std::string_view rule = "a part of the CPUs that it had";
  return Pick{cpus, rule, {{"its CPUs", rule, current.size()}}};
}

Status ExclusivePicker::CheckCount(int count) const {
  const bool whole = !cores_.uniform() || count % cores_.threads() == 0;
  if (!options_.full_pcpus_only || whole) return OkStatus();
  return InvalidArgument("needs {}, but full-pcpus-only grants whole cores of {}",
                         CountText(count, "exclusive CPU"), CountText(cores_.threads(), "CPU"));
}

CpuSet ExclusivePicker::Grantable(const CpuSet& free) const {
  return options_.full_pcpus_only ? cores_.Whole(free) : free;
}

bool ExclusivePicker::MadeOfWholeCores(const CpuSet& cpus) const {
  return cores_.WithSiblings(cpus) == cpus;
}

bool ExclusivePicker::IsOneCore(const CpuSet& cpus) const {
  return cores_.WithSiblings(CpuSet{cpus.First()}) == cpus;
}

bool ExclusivePicker::TriesIsolated(const Need& need) const {
  if (need.prefer_isolated.has_value()) return *need.prefer_isolated;
  return options_.prefer_isolated || need.count == 1 || need.count == cores_.threads();
}

StatusOr<CpuSet> ExclusivePicker::Allocate(const CpuSet& available, const CpuSet& preferred,
                                           int count) const {
  RESMGR_ASSIGN_OR_RETURN(
      const CpuSet cpus,
      AllocateCpus(machine_, available, preferred & available, count, allocator_options_));
  if (!options_.full_pcpus_only || MadeOfWholeCores(cpus)) return cpus;
  const CpuSet by_size = AllocateBySize(available, preferred, count);
  if (by_size.size() == count && MadeOfWholeCores(by_size)) return by_size;
  return ResourceExhausted(
      "needs {}, which the free cores {} do not make up without dividing one, as full-pcpus-only "
      "demands",
      CountText(count, "exclusive CPU"), available.ToString());
}

// If cores differ in size, taking the fullest place first may begin with a core that makes the
// count odd. So it is decided first how many cores of each size make up the count: as many of the
// large ones as possible.
CpuSet ExclusivePicker::AllocateBySize(const CpuSet& available, const CpuSet& preferred,
                                       int count) const {
  CoresBySize cores_by_size;
  for (const CpuSet& core : cores_.all()) {
    if (core.IsSubsetOf(available)) cores_by_size[core.size()] |= core;
  }
  CpuSet taken;
  for (const auto& [size, part] : PartsBySize(cores_by_size, count)) {
    const CpuSet& cores = cores_by_size[size];
    const StatusOr<CpuSet> more =
        AllocateCpus(machine_, cores, preferred & cores, part, allocator_options_);
    if (more.ok()) taken |= *more;
  }
  return taken;
}

Status ExclusivePicker::Shortage(int count, const CpuSet& free, std::string_view kind) const {
  const CpuSet all = kind == "isolated" ? (all_ & machine_.isolated()) | free : all_;
  return ResourceExhausted("needs {}, {} of {} free{}",
                           CountText(count, fmt::format("{} CPU", kind)), free.size(), all.size(),
                           options_.full_pcpus_only ? " in whole cores" : "");
}

void DescribeExclusiveOptions(ConfigSection& section, ExclusiveOptions& options) {
  section.Bool(kFullPcpusOnly, options.full_pcpus_only,
               "only whole physical cores are granted; a request that is not a multiple of the "
               "threads per core is refused");
  section.Bool(kAcrossNuma, options.distribute_cpus_across_numa,
               "takes the same number of CPUs from each of the smallest number of NUMA nodes that "
               "can hold the request");
  section.Bool(kAcrossCores, options.distribute_cpus_across_cores,
               "threads of different cores; excludes the two options above and "
               "`prefer-align-cpus-by-uncorecache`");
  section.Bool(kAlignBySocket, options.align_by_socket,
               "all CPUs from one package if its free CPUs suffice");
  section.Bool(kUncore, options.prefer_align_cpus_by_uncorecache,
               "whole L3 groups first, then one that holds the rest");
  section.Choice<bool>("cpu-quota", {{"lift", true}, {"keep", false}}, options.lift_quota,
                       "`lift`: an exclusive container runs without CFS quota; `keep`: the quota "
                       "stays as requested");

  // The kubelet refuses the same combinations of its options.
  const bool across_cores = options.distribute_cpus_across_cores;
  Exclude(section, across_cores, kAcrossCores, options.full_pcpus_only, kFullPcpusOnly);
  Exclude(section, across_cores, kAcrossCores, options.distribute_cpus_across_numa, kAcrossNuma);
  Exclude(section, across_cores, kAcrossCores, options.prefer_align_cpus_by_uncorecache, kUncore);
  Exclude(section, options.prefer_align_cpus_by_uncorecache, kUncore,
          options.distribute_cpus_across_numa, kAcrossNuma);
}

Status CheckExclusiveOptions(const Machine& machine, const ExclusiveOptions& options) {
  const int nodes = NodesWithCpus(machine);
  const auto packages = static_cast<int>(machine.packages().size());
  if (options.align_by_socket && nodes > 0 && packages > nodes) {
    return InvalidArgument(
        "{} needs NUMA nodes that are parts of packages, but here are {} packages in {}",
        kAlignBySocket, packages, nodes);
  }
  return OkStatus();
}

}  // namespace resmgr
