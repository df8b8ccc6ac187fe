// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/cgroup_reader.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/sys/cgroups.h"
#include "pkg/sys/files.h"
#include "pkg/topology/numa_stat.h"

namespace resmgr {
namespace {

// Cgroup v1 reports a memory limit of about this size or more if there is none.
constexpr int64_t kUnlimited = int64_t{1} << 62;

// The only line of a file; nullopt if the file cannot be read.
std::optional<std::string> Line(const std::string& directory, std::string_view file) {
  const StatusOr<std::string> text =
      ReadFile(fmt::format("{}/{}", directory, file), CgroupReader::kMostBytes);
  return text.ok() ? std::optional<std::string>(Trim(*text)) : std::nullopt;
}

// Leaves the target unset for an empty list, since it restricts nothing.
template <typename Set>
void ReadList(const std::string& directory, std::string_view file, std::optional<Set>& target) {
  const std::optional<std::string> line = Line(directory, file);
  if (!line || line->empty()) return;
  if (StatusOr<Set> set = Set::Parse(*line); set.ok()) target = *std::move(set);
}

std::optional<int64_t> Number(const std::string& directory, std::string_view file) {
  const std::optional<std::string> line = Line(directory, file);
  return line ? ParseInt(*line) : std::nullopt;
}

void ReadSets(const std::string& directory, std::string_view effective_cpus,
              std::string_view effective_mems, CgroupValues& values) {
  ReadList(directory, "cpuset.cpus", values.set.cpus);
  ReadList(directory, "cpuset.mems", values.set.mems);
  ReadList(directory, effective_cpus, values.effective_cpus);
  ReadList(directory, effective_mems, values.effective_mems);
}

// Adds the CPUs that partitions below the container's cgroup took: the kernel does not count them
// as effective in that cgroup, but they still belong to the container.
void AddPartitionsBelow(const std::string& directory, CgroupValues& values) {
  std::optional<CpuSet> below;
  ReadList(directory, "cpuset.cpus.exclusive.effective", below);
  if (below && values.effective_cpus) *values.effective_cpus |= *below;
}

// Fills in why the container's cgroup `path` lacks CPUs, memory nodes or a cpuset.
void FindCauses(const std::string& path, CpusetLimits& limits, CgroupValues& values) {
  const std::string above = path.substr(0, path.rfind('/'));
  const auto lost = [](const auto& set, const auto& left) { return *set - *left; };
  if (values.set.cpus && values.effective_cpus) {
    const CpuSet fewer = lost(values.set.cpus, values.effective_cpus);
    if (!fewer.empty()) values.why_fewer_cpus = limits.WhyNot(above, fewer);
  }
  if (values.set.mems && values.effective_mems) {
    const NodeSet fewer = lost(values.set.mems, values.effective_mems);
    if (!fewer.empty()) values.why_fewer_mems = limits.WhyNot(above, fewer);
  }
  if (!values.set.cpus) values.why_no_cpuset = limits.WhyNone(path);
}

// "max 100000"
void ReadMax(const std::string& directory, CgroupValues& values) {
  const std::optional<std::string> line = Line(directory, "cpu.max");
  if (!line) return;
  const size_t space = line->find(' ');
  const std::string_view quota = std::string_view(*line).substr(0, space);
  values.set.cpu_quota = quota == "max" ? std::optional<int64_t>(-1) : ParseInt(quota);
  if (space != std::string::npos)
    values.set.cpu_period = ParseInt(std::string_view(*line).substr(space + 1));
}

void ReadCpu(const std::string& directory, bool unified, CgroupValues& values) {
  if (unified) {
    values.cpu_weight = Number(directory, "cpu.weight");
    values.idle = Number(directory, "cpu.idle").value_or(0) == 1;
    return ReadMax(directory, values);
  }
  values.set.cpu_shares = Number(directory, "cpu.shares");
  values.set.cpu_quota = Number(directory, "cpu.cfs_quota_us");
  values.set.cpu_period = Number(directory, "cpu.cfs_period_us");
}

// The memory limit in this file; -1 for no limit, nullopt if unknown.
std::optional<int64_t> Limit(const std::string& directory, std::string_view file) {
  const std::optional<std::string> line = Line(directory, file);
  if (!line) return std::nullopt;
  if (*line == "max") return -1;
  const std::optional<int64_t> bytes = ParseInt(*line);
  return bytes && *bytes >= kUnlimited ? std::optional<int64_t>(-1) : bytes;
}

// Reads the memory limits. On cgroup v2, swap has a limit of its own, which excludes memory.
void ReadMemory(const std::string& directory, CgroupValues& values) {
  values.set.memory_limit = Limit(directory, "memory.max");
  const std::optional<int64_t> swap = Limit(directory, "memory.swap.max");
  if (!values.set.memory_limit || !swap) return;
  const bool limited = *values.set.memory_limit >= 0 && *swap >= 0;
  values.set.memory_swap_limit = limited ? *values.set.memory_limit + *swap : -1;
}

struct Process {
  CpuSet cpus;
  std::optional<int64_t> parent{};
};

// nullopt if the process has ended or is not visible in this PID namespace.
std::optional<Process> ReadProcess(const std::string& proc, std::optional<int64_t> number) {
  constexpr std::string_view kCpus = "Cpus_allowed_list:\t";
  constexpr std::string_view kParent = "PPid:\t";
  if (!number || *number <= 0) return std::nullopt;
  const StatusOr<std::string> status =
      ReadFile(fmt::format("{}/{}/status", proc, *number), CgroupReader::kMostBytes);
  if (!status.ok()) return std::nullopt;
  const auto line = [&status](std::string_view key) {
    const size_t begin = status->find(fmt::format("\n{}", key));
    if (begin == std::string::npos) return std::string_view();
    const std::string_view rest = std::string_view(*status).substr(begin + 1 + key.size());
    return rest.substr(0, rest.find('\n'));
  };
  const StatusOr<CpuSet> cpus = CpuSet::Parse(line(kCpus));
  if (!cpus.ok() || cpus->empty()) return std::nullopt;
  return Process{.cpus = *cpus, .parent = ParseInt(line(kParent))};
}

// Smaller amounts are not reported: a process may allocate some memory anywhere before it is bound.
constexpr int64_t kLeast = int64_t{1} << 20;

// Where the memory controller has the container's cgroup, which FindCpuset found for the cpusets.
std::string MemoryDirectory(const CgroupReader& cgroups,
                            const CgroupReader::CpusetDirectory& cpuset) {
  constexpr std::string_view kCpuset = "cpuset/";
  std::string_view path = cpuset.path;
  if (cpuset.unified || !path.starts_with(kCpuset)) {
    return fmt::format("{}/{}", cgroups.mount_point(), path);
  }
  path.remove_prefix(kCpuset.size());
  return fmt::format("{}/memory/{}", cgroups.mount_point(), path);
}

}  // namespace

CgroupReader::CgroupReader(std::string mount_point, std::string proc, std::string online)
    : mount_point_(std::move(mount_point)), proc_(std::move(proc)), online_(std::move(online)) {}

CpusetLimits CgroupReader::Limits() const {
  CpusetHierarchy hierarchy = CpusetHierarchy::At(mount_point_);
  hierarchy.online = online_;
  return CpusetLimits(std::move(hierarchy));
}

// Reads the CPUs of the container's first process and of its parent. A process of another PID
// namespace has the number 0, so nothing is known of it. A container with threaded cgroups is
// skipped: their processes are listed in the container's own cgroup, and may have been given fewer
// CPUs by it.
void CgroupReader::ReadAffinity(const std::string& directory, CgroupValues& values) const {
  if (Line(directory, "cgroup.type") == "domain threaded") return;
  // The list of a container with thousands of processes may be longer than any other file here.
  constexpr size_t kLongestNumber = 32;
  const StatusOr<std::string> processes =
      ReadBeginning(fmt::format("{}/cgroup.procs", directory), kLongestNumber);
  if (!processes.ok()) return;
  const std::optional<int64_t> first =
      ParseInt(std::string_view(*processes).substr(0, processes->find('\n')));
  const auto process = ReadProcess(proc_, first);
  if (!process) return;
  const auto parent = ReadProcess(proc_, process->parent);
  if (!parent) return;
  values.process_cpus = process->cpus;
  values.parent_cpus = parent->cpus;
}

StatusOr<CgroupReader::CpusetDirectory> CgroupReader::FindCpuset(std::string_view cgroup_parent,
                                                                 std::string_view id) const {
  RESMGR_RETURN_IF_ERROR(CheckCgroupNames(cgroup_parent, id));
  const bool unified = IsUnifiedMount(mount_point_);
  const auto found = FindContainerCgroup(mount_point_, unified ? "" : "cpuset", cgroup_parent, id);
  if (!found) return NoContainerCgroup(mount_point_, cgroup_parent, id);
  return CpusetDirectory{.path = found->substr(mount_point_.size() + 1), .unified = unified};
}

StatusOr<CgroupValues> CgroupReader::Read(std::string_view cgroup_parent, std::string_view id,
                                          CpusetLimits* limits) const {
  RESMGR_ASSIGN_OR_RETURN(const CpusetDirectory found, FindCpuset(cgroup_parent, id));
  const std::string cpuset = fmt::format("{}/{}", mount_point_, found.path);
  const bool unified = found.unified;
  CgroupValues values;
  ReadAffinity(cpuset, values);
  if (unified) {
    ReadSets(cpuset, "cpuset.cpus.effective", "cpuset.mems.effective", values);
    AddPartitionsBelow(cpuset, values);
    ReadCpu(cpuset, unified, values);
  } else {
    ReadSets(cpuset, "cpuset.effective_cpus", "cpuset.effective_mems", values);
    const auto cpu = FindContainerCgroup(mount_point_, "cpu", cgroup_parent, id);
    if (cpu) ReadCpu(*cpu, unified, values);
  }
  if (limits != nullptr) FindCauses(found.InHierarchy(), *limits, values);
  return values;
}

StatusOr<CgroupValues> CgroupReader::ReadNumbers(std::string_view cgroup_parent,
                                                 std::string_view id) const {
  RESMGR_RETURN_IF_ERROR(CheckCgroupNames(cgroup_parent, id));
  const bool unified = IsUnifiedMount(mount_point_);
  const auto cpu = FindContainerCgroup(mount_point_, unified ? "" : "cpu", cgroup_parent, id);
  if (!cpu) return NoContainerCgroup(mount_point_, cgroup_parent, id);
  CgroupValues values;
  ReadCpu(*cpu, unified, values);
  if (unified) {
    ReadMemory(*cpu, values);
  } else if (const auto memory = FindContainerCgroup(mount_point_, "memory", cgroup_parent, id)) {
    values.set.memory_limit = Limit(*memory, "memory.limit_in_bytes");
    values.set.memory_swap_limit = Limit(*memory, "memory.memsw.limit_in_bytes");
  }
  return values;
}

std::string MemoryElsewhere(const CgroupReader& cgroups, const MemorySubject& subject) {
  const auto cpuset = cgroups.FindCpuset(subject.cgroup_parent, subject.id);
  if (!cpuset.ok()) return "";
  const StatusOr<std::string> counted =
      ReadFile(MemoryDirectory(cgroups, *cpuset) + "/memory.numa_stat", CgroupReader::kMostBytes);
  if (!counted.ok()) return "";
  const auto found = ParseNumaStat(*counted, cpuset->unified, false).anonymous;
  std::string text;
  for (const auto& [node, bytes] : found) {
    if (bytes < kLeast || subject.nodes.Contains(node)) continue;
    text += fmt::format("{}{} on memory node {}", text.empty() ? "" : ", ", BytesText(bytes), node);
  }
  if (text.empty()) return "";
  return text + (cpuset->unified ? ": the kernel has not moved it"
                                 : " stays there: cgroup v1 moves no memory");
}

}  // namespace resmgr
