// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/isolation_needs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/base/status.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {
namespace {

using Isolation = IsolationConfig;

constexpr const char* kCgroupsOfNode = "sys/fs/cgroup";

std::vector<std::string> WordsOfFile(HostFiles& files, const std::string& path) {
  std::vector<std::string> words;
  const StatusOr<std::string> text = files.Read(path);
  if (!text.ok()) return words;
  for (const std::string_view word : Split(Trim(*text), ' '))
    words.emplace_back(word);
  return words;
}

Status CheckController(HostFiles& files, const std::string& name) {
  const std::string path = fmt::format("{}/cgroup.controllers", kCgroupsOfNode);
  RESMGR_RETURN_IF_ERROR(files.Read(path).status());
  const std::vector<std::string> words = WordsOfFile(files, path);
  if (std::ranges::find(words, name) != words.end()) return OkStatus();
  return NotFound("{} has no {}", path, name);
}

Status CheckQuota(HostFiles& files) {
  if (files.Read(fmt::format("{}/cgroup.controllers", kCgroupsOfNode)).ok())
    return CheckController(files, "cpu");
  const std::string path = fmt::format("{}/cpu", kCgroupsOfNode);
  return files.List(path).empty() ? NotFound("there is no {}", path) : OkStatus();
}

// A partition that an administrator made is directly below the root, or in one that is.
bool HasPartition(HostFiles& files) {
  return std::ranges::any_of(files.List(kCgroupsOfNode), [&files](const std::string& name) {
    const StatusOr<std::string> state =
        files.Read(fmt::format("{}/{}/cpuset.cpus.partition", kCgroupsOfNode, name));
    return state.ok() && (Trim(*state) == "root" || Trim(*state) == "isolated");
  });
}

Status CheckPartition(HostFiles& files) {
  RESMGR_RETURN_IF_ERROR(CheckController(files, "cpuset"));
  if (!IsKernelOlderThan(files, 6, 7) || HasPartition(files)) return OkStatus();
  return NotFound("a partition needs Linux 6.7, or a cgroup above that is a partition itself");
}

int FirstOnlineCpu(HostFiles& files) {
  const StatusOr<std::string> text = files.Read("sys/devices/system/cpu/online");
  const CpuSet online = text.ok() ? CpuSet::Parse(Trim(*text)).value_or(CpuSet()) : CpuSet();
  return online.empty() ? 0 : online.First();
}

}  // namespace

std::string LatencyName(const std::string& text) {
  return text == "n/a" || text == "0" ? text : text + "us";
}

std::string PartitionName(Isolation::Partition partition) {
  return partition == Isolation::Partition::kRoot ? "root" : "isolated";
}

std::vector<AskedClass> AskedIsolation(const Isolation& isolation, std::string_view source) {
  std::vector<AskedClass> asked;
  const auto add = [&](std::string_view kind, std::string name) {
    asked.push_back({.kind = kind, .name = std::move(name), .source = std::string(source)});
  };
  if (isolation.interrupts == Isolation::Interrupts::kIsolate) add("interrupts", "isolate");
  if (isolation.interrupts == Isolation::Interrupts::kHousekeeping)
    add("interrupts", "housekeeping");
  if (isolation.workqueues == Isolation::Workqueues::kIsolate) add("workqueues", "isolate");
  if (isolation.quota == Isolation::Quota::kLift) add("quota", "lift");
  if (isolation.partition != Isolation::Partition::kNone)
    add("partition", PartitionName(isolation.partition));
  if (!isolation.max_latency.empty() && isolation.max_latency != "0")
    add("idle", LatencyName(isolation.max_latency));
  if (!isolation.governor.empty()) add("clock", isolation.governor);
  return asked;
}

AbsentKinds FindAbsentIsolation(HostFiles& files) {
  AbsentKinds absent;
  const auto note = [&absent](std::string kind, const Status& status) {
    if (status.code() == StatusCode::kNotFound)
      absent.emplace(std::move(kind), AbsentKind{.reason = std::string(Message(status))});
  };
  const std::string cpu = fmt::format("sys/devices/system/cpu/cpu{}/", FirstOnlineCpu(files));
  note("interrupts", files.Read("proc/irq/default_smp_affinity").status());
  note("workqueues", files.Read("sys/devices/virtual/workqueue/cpumask").status());
  note("quota", CheckQuota(files));
  note("partition", CheckPartition(files));
  note("idle", files.Read(cpu + "power/pm_qos_resume_latency_us").status());
  note("clock", files.Read(cpu + "cpufreq/scaling_governor").status());
  if (absent.contains("clock")) return absent;
  std::vector<std::string> governors =
      WordsOfFile(files, cpu + "cpufreq/scaling_available_governors");
  if (!governors.empty()) {
    absent["clock"] = {
        .reason = fmt::format("there are the governors {}",
                              Printable(fmt::format("{}", fmt::join(governors, ", ")), 256)),
        .but = std::move(governors)};
  }
  return absent;
}

bool IsKernelOlderThan(HostFiles& files, int64_t major, int64_t minor) {
  const StatusOr<std::string> release = files.Read("proc/sys/kernel/osrelease");
  if (!release.ok()) return false;
  const std::vector<std::string_view> numbers = Split(Trim(*release), '.');
  if (numbers.size() < 2) return false;
  const std::string_view second = numbers[1].substr(0, numbers[1].find_first_not_of("0123456789"));
  const std::optional<int64_t> a = ParseInt(numbers[0]);
  const std::optional<int64_t> b = ParseInt(second);
  return a && b && std::pair(*a, *b) < std::pair(major, minor);
}

}  // namespace resmgr
