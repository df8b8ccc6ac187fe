// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/isolation_wish.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/classes/cpu_machine.h"
#include "pkg/config/config_section.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/kube/annotations.h"
#include "pkg/kube/names.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {
namespace {

constexpr std::string_view kKey = "isolation";
constexpr std::string_view kAffinity = "irq-affinity";

Status WrongValue(std::string_view key, std::string_view value, std::string_view known) {
  return InvalidArgument("annotation {}: \"{}\" is not {}", key, Printable(value, 64), known);
}

bool Disables(std::string_view value) {
  return value == "disable" || value == "true";
}

Status ReadInterrupts(std::string_view key, std::string_view value, IsolationWish& wish) {
  if (!Disables(value) && value != "housekeeping")
    return WrongValue(key, value, "disable or housekeeping");
  wish.isolation.interrupts = Disables(value) ? IsolationConfig::Interrupts::kIsolate
                                              : IsolationConfig::Interrupts::kHousekeeping;
  wish.tells_housekeeping = !Disables(value);
  return OkStatus();
}

Status ReadQuota(std::string_view key, std::string_view value, IsolationWish& wish) {
  if (!Disables(value)) return WrongValue(key, value, "disable");
  wish.isolation.quota = IsolationConfig::Quota::kLift;
  return OkStatus();
}

Status ReadLoadBalancing(std::string_view key, std::string_view value, IsolationWish& wish) {
  if (!Disables(value)) return WrongValue(key, value, "disable");
  wish.isolation.partition = IsolationConfig::Partition::kIsolated;
  return OkStatus();
}

Status ReadIdleStates(std::string_view key, std::string_view value, IsolationWish& wish) {
  constexpr std::string_view kMaximum = "max_latency:";
  constexpr int64_t kMost = 1'000'000;
  if (value == "disable") {
    wish.isolation.max_latency = "n/a";
    return OkStatus();
  }
  if (value == "enable") {
    wish.isolation.max_latency = "0";
    return OkStatus();
  }
  if (value.starts_with(kMaximum)) {
    const std::optional<int64_t> latency = ParseInt(value.substr(kMaximum.size()));
    if (latency && *latency > 0 && *latency <= kMost) {
      wish.isolation.max_latency = fmt::format("{}", *latency);
      return OkStatus();
    }
  }
  return WrongValue(key, value, "disable, enable or max_latency:MICROSECONDS");
}

Status ReadGovernor(std::string_view key, std::string_view value, IsolationWish& wish) {
  if (value.empty() || !CheckGovernor(value).ok())
    return WrongValue(key, value, "the name of a governor");
  wish.isolation.governor = value;
  return OkStatus();
}

Status ReadCpuShared(std::string_view key, std::string_view value, IsolationWish& wish) {
  if (value != "enable") return WrongValue(key, value, "enable");
  wish.tells_shared = true;
  return OkStatus();
}

struct CrioKey {
  std::string_view key;
  Status (*read)(std::string_view key, std::string_view value, IsolationWish& wish);
};

constexpr std::array kCrioKeys = {CrioKey{"irq-load-balancing.crio.io", ReadInterrupts},
                                  CrioKey{"cpu-quota.crio.io", ReadQuota},
                                  CrioKey{"cpu-load-balancing.crio.io", ReadLoadBalancing},
                                  CrioKey{"cpu-c-states.crio.io", ReadIdleStates},
                                  CrioKey{"cpu-freq-governor.crio.io", ReadGovernor},
                                  CrioKey{kCpuSharedAnnotation, ReadCpuShared}};

Status ReadOwn(const Pod& pod, std::string_view container, IsolationConfig& isolation) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode node, ReadAnnotation(pod.annotations, kKey, container));
  ConfigSection section(node, kKey);
  DescribeIsolation(section, isolation);
  return section.Finish();
}

// Limits the work: each glob is compared with each interrupt of the machine.
constexpr size_t kMostGlobs = 64;

void ReadGlobs(ConfigSection& section, std::string_view key, std::vector<std::string>& globs) {
  section.List(key, globs, "globs of interrupts");
  if (globs.size() > kMostGlobs)
    section.Fail(key, fmt::format("has more than {} globs", kMostGlobs));
  const auto wrong =
      std::ranges::find_if(globs, [](const std::string& glob) { return !IsGlob(glob); });
  if (wrong != globs.end())
    section.Fail(key, fmt::format("\"{}\" has a [ without its ]", Printable(*wrong, 64)));
}

using Isolation = IsolationConfig;

Status CheckQuota(HostFiles& files) {
  if (HasCgroupV2(files)) return CheckController(files, "cpu");
  const std::string path = fmt::format("{}/cpu", kCgroupRoot);
  return files.List(path).empty() ? NotFound("there is no {}", path) : OkStatus();
}

// Whether an administrator made a partition: only partitions directly below the root are looked
// for, since others lie inside one of these.
bool HasPartition(HostFiles& files) {
  return std::ranges::any_of(files.List(kCgroupRoot), [&files](const std::string& name) {
    return IsPartition(files, fmt::format("{}/{}", kCgroupRoot, name));
  });
}

Status CheckPartition(HostFiles& files) {
  RESMGR_RETURN_IF_ERROR(CheckController(files, "cpuset"));
  if (!IsKernelOlderThan(files, 6, 7) || HasPartition(files)) return OkStatus();
  return NotFound("a partition needs Linux 6.7, or a cgroup above that is a partition itself");
}

}  // namespace

StatusOr<IsolationWish> IsolationOf(const Pod& pod, std::string_view container,
                                    const ClassesConfig& config) {
  IsolationWish wish{.isolation = config.isolation, .source = config.isolation_source};
  if (pod.annotations.empty()) return wish;
  const bool allowed = config.Allows(kKey, "", pod.namespace_name);
  std::string keys;
  const auto counts = [&](std::string_view key) {
    keys.append(keys.empty() ? "" : ", ").append(key);
    return allowed;
  };
  const auto own = FindAnnotation(pod.annotations, kKey, container);
  const bool notes_asked = config.absent == ClassesConfig::Absent::kRefuse;
  IsolationWish asked;
  if (own && counts(own->key)) {
    RESMGR_RETURN_IF_ERROR(ReadOwn(pod, container, wish.isolation));
    if (notes_asked) RESMGR_RETURN_IF_ERROR(ReadOwn(pod, container, asked.isolation));
  }
  for (const CrioKey& crio : kCrioKeys) {
    const auto found = FindCrioAnnotation(pod.annotations, crio.key, container);
    if (!found || !counts(found->first)) continue;
    RESMGR_RETURN_IF_ERROR(crio.read(found->first, found->second, wish));
    if (notes_asked) RESMGR_RETURN_IF_ERROR(crio.read(found->first, found->second, asked));
  }
  const auto affinity = FindAnnotation(pod.annotations, kAffinity, container);
  if (affinity && counts(affinity->key))
    RESMGR_RETURN_IF_ERROR(ReadInterruptWish(pod.annotations, container, wish.affinity));
  wish.asked = std::move(asked.isolation);
  if (keys.empty()) return wish;
  if (allowed) {
    wish.source = fmt::format("annotation {}", Printable(keys, 512));
  } else {
    wish.note = fmt::format(
        "annotation {} ignored: namespace {} is not in classes.AllowedNamespaces.isolation",
        Printable(keys, 512), Printable(pod.namespace_name));
  }
  return wish;
}

std::string InterruptWish::ToString() const {
  std::string text;
  for (const auto& [word, globs] : {std::pair("claim", &claim), std::pair("mask", &mask)})
    if (!globs->empty())
      text += fmt::format("{}{} {}", text.empty() ? "" : "; ", word, fmt::join(*globs, ", "));
  return text;
}

Status ReadInterruptWish(const StringMap& annotations, std::string_view container,
                         InterruptWish& wish) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode node, ReadAnnotation(annotations, kAffinity, container));
  ConfigSection section(node, kAffinity);
  ReadGlobs(section, "claim", wish.claim);
  ReadGlobs(section, "mask", wish.mask);
  section.Choice<bool>("mode", {{"mask-first", false}, {"claim-first", true}}, wish.mask_wins,
                       "the list that is applied first");
  return section.Finish();
}

std::string LatencyName(const std::string& text) {
  return text == "n/a" || text == "0" ? text : text + "us";
}

std::string PartitionName(Isolation::Partition partition) {
  return partition == Isolation::Partition::kRoot ? "root" : "isolated";
}

std::vector<AskedClass> IsolationClasses(const Isolation& isolation, std::string_view source) {
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
  if (!isolation.max_latency.empty()) add("idle", LatencyName(isolation.max_latency));
  if (!isolation.governor.empty()) add("clock", isolation.governor);
  return asked;
}

AbsentKinds FindAbsentIsolation(HostFiles& files) {
  AbsentKinds absent;
  const auto note = [&absent](std::string kind, const Status& status) {
    if (status.code() == StatusCode::kNotFound)
      absent.emplace(std::move(kind), AbsentKind{.reason = std::string(Message(status))});
  };
  const CpuSet online = OnlineCpus(files);
  const int cpu = online.empty() ? 0 : online.First();
  note("interrupts", files.Read(kNewInterruptsMask).status());
  note("workqueues", files.Read(kWorkqueuesMask).status());
  note("quota", CheckQuota(files));
  note("partition", CheckPartition(files));
  note("idle", files.Read(CpuFile(cpu, kLatencyFile)).status());
  note("clock", files.Read(CpuFile(cpu, kGovernorFile)).status());
  // Any latency, "0", is what a machine without idle states has.
  if (const auto idle = absent.find("idle"); idle != absent.end()) idle->second.but = {"0"};
  if (absent.contains("clock")) return absent;
  std::vector<std::string> governors = ReadWords(files, CpuFile(cpu, kGovernorsFile));
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
