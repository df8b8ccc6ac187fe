// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/constraints.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/topology/kernel_lists.h"

namespace resmgr {

namespace {

std::vector<std::string> CgroupDirectories(std::string_view name, std::string_view mount) {
  std::vector<std::string> directories;
  if (name.starts_with('/')) directories.emplace_back(name);
  const std::string_view separator = name.starts_with('/') ? "" : "/";
  directories.push_back(fmt::format("{}{}{}", mount, separator, name));
  directories.push_back(fmt::format("{}/cpuset{}{}", mount, separator, name));
  return directories;
}

StatusOr<CpuSet> ReadCgroup(const std::string& name, const ConstraintOptions& options) {
  const std::vector<std::string> directories = CgroupDirectories(name, options.cgroup_mount);
  bool found = false;
  for (const std::string& directory : directories) {
    // The effective CPUs are read first: with cgroup v2 a child with an empty cpuset.cpus has its
    // parent's CPUs.
    for (const char* file : {"cpuset.cpus.effective", "cpuset.cpus"}) {
      StatusOr<CpuSet> cpus = ReadKernelCpus(fmt::format("{}/{}", directory, file));
      if (cpus.status().code() == StatusCode::kNotFound) continue;
      if (!cpus.ok()) return cpus;
      found = true;
      // Adds the CPUs that partitions below this cgroup (classes.isolation) took out of its
      // effective CPUs.
      const StatusOr<CpuSet> taken =
          ReadKernelCpus(fmt::format("{}/cpuset.cpus.exclusive.effective", directory));
      if (taken.ok()) *cpus |= *taken;
      if (!cpus->empty()) return cpus;
    }
  }
  if (found) return InvalidArgument("the cgroup {} has no CPUs", name);
  return InvalidArgument("there is no cgroup {} with a cpuset; looked into {}", name,
                         fmt::join(directories, ", "));
}

CpuSet AllCpus(const Machine& machine) {
  CpuSet cpus;
  for (const Cpu& cpu : machine.cpus())
    cpus.Add(cpu.id);
  return cpus;
}

// The online CPUs of a set or cgroup, or of its complement for "all but"; may be empty.
StatusOr<CpuSet> ResolveSet(const Machine& machine, const CpuConstraint& constraint,
                            const ConstraintOptions& options) {
  CpuSet cpus = constraint.cpus;
  if (constraint.kind == CpuConstraint::Kind::kCgroup) {
    RESMGR_ASSIGN_OR_RETURN(cpus, ReadCgroup(constraint.cgroup, options));
  }
  const CpuSet all = AllCpus(machine);
  const bool all_but = constraint.kind == CpuConstraint::Kind::kAllBut;
  if (!cpus.IsSubsetOf(all)) {
    return InvalidArgument("this machine has no CPU {}; it has {}", (cpus - all).ToString(),
                           all.ToString());
  }
  return all_but ? cpus : cpus & machine.online();
}

Status CheckEnough(const CpuSet& from, int64_t count, std::string_view what) {
  if (count <= from.size()) return OkStatus();
  return InvalidArgument("asks for {}, but {} {}: {}", CountText(count, "CPU"),
                         CountIs(from.size(), "CPU"), what,
                         from.empty() ? "none" : from.ToString());
}

StatusOr<CpuSet> NotEmpty(const CpuSet& rest, const CpuSet& others) {
  if (!rest.empty()) return rest;
  return InvalidArgument("without CPU {} there is none left", others.ToString());
}

int64_t RoundedUp(const MilliCpu& quantity) {
  return quantity.Whole() + (quantity.Fraction() == 0 ? 0 : 1);
}

// If a quantity is reserved, the picked CPUs include the ones to reserve. These do not depend on
// `count`, so that a smaller `count` moves none of them.
StatusOr<CpuSet> PickAvailable(const Machine& machine, int count,
                               const std::optional<CpuConstraint>& reserved,
                               const ConstraintOptions& options) {
  RESMGR_ASSIGN_OR_RETURN(const CpuSet picked, options.pick(machine.allowed(), count));
  if (!reserved || reserved->kind != CpuConstraint::Kind::kQuantity) return picked;
  const int64_t reserves = RoundedUp(reserved->quantity);
  const CpuSet from = machine.allowed() - machine.isolated();
  if (reserves > std::min(count, from.size())) return picked;
  RESMGR_ASSIGN_OR_RETURN(const CpuSet first, options.pick(from, static_cast<int>(reserves)));
  if (first.IsSubsetOf(picked)) return picked;
  if (first.size() == count) return first;
  RESMGR_ASSIGN_OR_RETURN(const CpuSet rest,
                          options.pick(machine.allowed() - first, count - first.size()));
  return first | rest;
}

StatusOr<CpuSet> ResolveAvailable(const Machine& machine, const CpuConstraint& constraint,
                                  const std::optional<CpuConstraint>& reserved,
                                  const ConstraintOptions& options) {
  if (constraint.kind == CpuConstraint::Kind::kAllBut) {
    RESMGR_ASSIGN_OR_RETURN(const CpuSet others, ResolveSet(machine, constraint, options));
    return NotEmpty(machine.allowed() - others, others);
  }
  if (constraint.kind != CpuConstraint::Kind::kQuantity) {
    RESMGR_ASSIGN_OR_RETURN(CpuSet cpus, ResolveSet(machine, constraint, options));
    if (!cpus.empty()) return cpus;
    return InvalidArgument("all of its CPUs are offline; online are {}",
                           machine.online().ToString());
  }
  if (constraint.quantity.Whole() == 0) {
    return InvalidArgument("{}m is less than one CPU", constraint.quantity.value);
  }
  const int64_t count = constraint.quantity.Whole();
  RESMGR_RETURN_IF_ERROR(CheckEnough(machine.allowed(), count, "usable"));
  return PickAvailable(machine, static_cast<int>(count), reserved, options);
}

// Picks `count` CPUs of `from`: those that would be picked if all allowed CPUs were free to choose,
// and others for the ones that `from` lacks. So if `from` shrinks, only missing CPUs are replaced.
StatusOr<CpuSet> PickSteadily(const Machine& machine, const CpuSet& from, int count,
                              const ConstraintOptions& options) {
  CpuSet others = (machine.allowed() | from) - machine.isolated();
  RESMGR_ASSIGN_OR_RETURN(CpuSet next, options.pick(others, count));
  CpuSet picked = next & from;
  while (picked.size() < count) {
    others -= next;
    RESMGR_ASSIGN_OR_RETURN(next, options.pick(others, 1));
    picked |= next & from;
  }
  return picked;
}

// Picks other CPUs in place of the reserved ones, which are all offline.
StatusOr<CpuSet> PickInstead(const Machine& machine, const CpuSet& available, int count,
                             const ConstraintOptions& options) {
  CpuSet from = available - machine.isolated();
  if (from.empty()) from = available;
  return options.pick(from, std::min(count, from.size()));
}

StatusOr<CpuSet> ResolveReserved(const Machine& machine, const CpuConstraint& constraint,
                                 const CpuSet& available, const ConstraintOptions& options) {
  if (constraint.kind == CpuConstraint::Kind::kQuantity) {
    const int64_t count = RoundedUp(constraint.quantity);
    const CpuSet from = available - machine.isolated();
    RESMGR_RETURN_IF_ERROR(CheckEnough(from, count, "available and not isolated"));
    return PickSteadily(machine, from, static_cast<int>(count), options);
  }
  RESMGR_ASSIGN_OR_RETURN(const CpuSet cpus, ResolveSet(machine, constraint, options));
  if (constraint.kind == CpuConstraint::Kind::kAllBut) {
    return NotEmpty(available - machine.isolated() - cpus, cpus);
  }
  const CpuSet others = cpus - available - options.offline;
  if (!others.empty()) {
    return InvalidArgument("CPU {} is not available; available are {}", others.ToString(),
                           available.ToString());
  }
  // All reserved CPUs are offline, so others take their place.
  if (cpus.empty()) return PickInstead(machine, available, constraint.cpus.size(), options);
  return cpus;
}

// Removes offline CPUs from the configured ones. The other CPUs stay, so that no container moves
// without need.
StatusOr<PolicyCpus> WithoutOffline(PolicyCpus cpus, const Machine& machine, bool so_many,
                                    const ConstraintOptions& options) {
  const CpuSet lost = (cpus.available | cpus.reserved) & options.offline;
  if (lost.empty()) return cpus;
  const CpuSet all = cpus.available;
  const CpuSet others = machine.allowed() - all - options.offline;
  cpus.available -= lost;
  if (so_many && !others.empty()) {
    const int missing = std::min((all & lost).size(), others.size());
    RESMGR_ASSIGN_OR_RETURN(const CpuSet instead, options.pick(others, missing));
    cpus.available |= instead;
  }
  if (cpus.available.empty()) {
    return InvalidArgument("all available CPUs ({}) are offline", all.ToString());
  }
  const int reserved = cpus.reserved.size();
  cpus.reserved -= lost;
  if (reserved > 0 && cpus.reserved.empty()) {
    RESMGR_ASSIGN_OR_RETURN(cpus.reserved, PickInstead(machine, cpus.available, reserved, options));
  }
  return cpus;
}

}  // namespace

StatusOr<PolicyCpus> ResolveCpuConstraints(const Machine& machine,
                                           const std::optional<CpuConstraint>& available,
                                           const std::optional<CpuConstraint>& reserved,
                                           const ConstraintOptions& options) {
  PolicyCpus cpus{.available = machine.allowed(), .reserved = {}};
  if (available) {
    StatusOr<CpuSet> resolved = ResolveAvailable(machine, *available, reserved, options);
    if (!resolved.ok()) return Annotate(resolved.status(), available->origin);
    cpus.available = *resolved;
  }
  if (reserved) {
    StatusOr<CpuSet> resolved = ResolveReserved(machine, *reserved, cpus.available, options);
    if (!resolved.ok()) return Annotate(resolved.status(), reserved->origin);
    cpus.reserved = *resolved;
  }
  const bool so_many = available && available->kind == CpuConstraint::Kind::kQuantity;
  RESMGR_ASSIGN_OR_RETURN(cpus, WithoutOffline(std::move(cpus), machine, so_many, options));
  if (reserved && reserved->kind == CpuConstraint::Kind::kQuantity) {
    const int64_t whole = int64_t{1000} * cpus.reserved.size();
    cpus.unreserved.value = std::max<int64_t>(whole - reserved->quantity.value, 0);
  }
  return cpus;
}

}  // namespace resmgr
