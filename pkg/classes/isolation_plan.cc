// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/isolation_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/classes/class_kind.h"
#include "pkg/classes/cpu_mask.h"
#include "pkg/classes/interrupt_plan.h"
#include "pkg/classes/isolation_wish.h"
#include "pkg/classes/subject_ways.h"
#include "pkg/kube/annotations.h"
#include "pkg/sys/cgroups.h"
#include "pkg/topology/machine.h"

namespace resmgr {
namespace {

constexpr std::string_view kByCpu = "by CPU";
constexpr std::string_view kAfterCreation = "after creation";
constexpr std::string_view kBeforeStart = "before start";
constexpr const char* kDefaultAffinity = "proc/irq/default_smp_affinity";
constexpr const char* kWorkqueues = "sys/devices/virtual/workqueue/cpumask";
constexpr const char* kCgroups = "sys/fs/cgroup";
constexpr std::string_view kPartitionFile = "/cpuset.cpus.partition";
constexpr size_t kCgroupsSize = std::string_view(kCgroups).size();

std::string CpuPath(int cpu, std::string_view file) {
  return fmt::format("sys/devices/system/cpu/cpu{}/{}", cpu, file);
}

std::string LatencyPath(int cpu) {
  return CpuPath(cpu, "power/pm_qos_resume_latency_us");
}

// Whether the cgroup belongs to this pod alone, by the kubelet's names: "…/podUID", or with the
// driver systemd "…-podUID.slice", where a dash of the UID is an underscore.
bool IsPodsOwn(std::string_view cgroup, std::string_view uid) {
  if (uid.empty()) return false;
  while (cgroup.ends_with('/'))
    cgroup.remove_suffix(1);
  const std::string_view name = cgroup.substr(cgroup.rfind('/') + 1);
  if (!IsSlice(name)) return name == fmt::format("pod{}", uid);
  std::string escaped(uid);
  std::ranges::replace(escaped, '-', '_');
  return name.ends_with(fmt::format("pod{}.slice", escaped));
}

class IsolationPlanner {
 public:
  IsolationPlanner(const std::vector<ClassSubject>& subjects, const ClassesConfig& config,
                   HostKeeper& host, ClassPlan& plan)
      : subjects_(subjects), config_(config), host_(host), plan_(plan) {}

  void Plan() {
    online_ = OnlineCpus(host_.files());
    PlanWorkqueues();
    for (size_t i = 0; i < subjects_.size(); ++i)
      PlanOne(i);
    AddPartitions();
    PlanConfigured();
  }

 private:
  using Isolation = IsolationConfig;

  ClassPart& AddPart(size_t subject, std::string_view kind, std::string name,
                     std::string_view way) {
    ClassPart& part = plan_.parts.emplace_back(
        ClassPart{.subject = subject, .kind = kind, .name = std::move(name), .way = way});
    if (subject != ClassPart::kNoSubject) part.source = subjects_[subject].chosen.isolation.source;
    return part;
  }
  void AddValue(const std::string& path, std::string text) { plan_.Add({path, std::move(text)}); }
  Status Exists(const std::string& path) {
    const StatusOr<std::string> text = host_.files().Read(path);
    return text.ok() ? OkStatus() : text.status();
  }

  CpuSet CpusOf(bool (*wants)(const Isolation&)) const {
    CpuSet cpus;
    for (const ClassSubject& subject : subjects_)
      if (wants(subject.chosen.isolation.isolation)) cpus |= subject.cpus;
    return cpus;
  }
  static bool WantsInterrupts(const Isolation& isolation) {
    return isolation.interrupts != Isolation::Interrupts::kLeave;
  }
  static bool WantsWorkqueues(const Isolation& isolation) {
    return isolation.workqueues == Isolation::Workqueues::kIsolate;
  }

  // Adds the first mask without these CPUs, if that differs from it; the mask is never empty.
  Status AddMask(const std::string& path, const CpuSet& isolated) {
    RESMGR_ASSIGN_OR_RETURN(const std::string first, host_.ReadFirst(path));
    RESMGR_ASSIGN_OR_RETURN(const CpuSet before, ParseCpuMask(first));
    CpuSet after = before - isolated;
    const bool none_online = !online_.empty() && (after & online_).empty();
    if (after.empty() || none_online) after = online_ - isolated;
    if (after.empty())
      return FailedPrecondition("{} would have no CPU: all are containers' own", path);
    if (after != before) AddValue(path, FormatCpuMask(after, Trim(first)));
    return OkStatus();
  }

  void PlanWorkqueues() {
    const CpuSet isolated = CpusOf(WantsWorkqueues);
    if (!isolated.empty()) workqueues_ = AddMask(kWorkqueues, isolated);
  }

  void PlanOne(size_t index) {
    const Isolation& isolation = subjects_[index].chosen.isolation.isolation;
    if (WantsWorkqueues(isolation)) {
      ClassPart& part = AddPart(index, "workqueues", "isolate", kByCpu);
      part.possible = workqueues_;
      part.paths.emplace_back(kWorkqueues);
    }
    if (!isolation.max_latency.empty()) PlanLatency(index);
    if (!isolation.governor.empty()) PlanGovernor(index);
    if (isolation.quota == Isolation::Quota::kLift) PlanQuota(index);
    // A container without an id has no cgroup yet.
    if (isolation.partition != Isolation::Partition::kNone && !subjects_[index].id.empty())
      PlanPartition(index);
  }

  void PlanLatency(size_t index) {
    const ClassSubject& subject = subjects_[index];
    const std::string& text = subject.chosen.isolation.isolation.max_latency;
    ClassPart& part = AddPart(index, "idle", LatencyName(text), kByCpu);
    for (const int cpu : subject.cpus) {
      part.paths.push_back(LatencyPath(cpu));
      if (const Status there = Exists(part.paths.back()); !there.ok()) part.possible = there;
    }
    if (!part.possible.ok()) return;
    for (const std::string& path : part.paths)
      AddValue(path, text);
  }

  // OK if the CPU supports this governor, else the reason.
  Status CheckClock(int cpu, const ClassSubject& subject, std::string_view governor) {
    RESMGR_RETURN_IF_ERROR(Exists(CpuPath(cpu, "cpufreq/scaling_governor")));
    const auto available = host_.files().Read(CpuPath(cpu, "cpufreq/scaling_available_governors"));
    if (available.ok()) {
      const std::vector<std::string_view> known = Split(Trim(*available), ' ');
      if (std::ranges::find(known, governor) == known.end())
        return NotFound("CPU {} has no governor {}: it has {}", cpu, governor,
                        Printable(Trim(*available), 256));
    }
    const auto related = host_.files().Read(CpuPath(cpu, "cpufreq/related_cpus"));
    if (!related.ok()) return OkStatus();
    for (const std::string_view other : Split(Trim(*related), ' ')) {
      const std::optional<int64_t> number = ParseInt(other);
      // The file lists CPUs that are offline as well.
      if (number && *number >= 0 && *number <= CpuSet::kMaxId &&
          !subject.cpus.Contains(static_cast<int>(*number)) &&
          (online_.empty() || online_.Contains(static_cast<int>(*number))))
        return FailedPrecondition(
            "CPU {} has its clock in common with CPU {}, which is not the "
            "container's",
            cpu, *number);
    }
    return OkStatus();
  }
  void PlanGovernor(size_t index) {
    const ClassSubject& subject = subjects_[index];
    const std::string& governor = subject.chosen.isolation.isolation.governor;
    ClassPart& part = AddPart(index, "clock", governor, kByCpu);
    for (const int cpu : subject.cpus) {
      part.paths.push_back(CpuPath(cpu, "cpufreq/scaling_governor"));
      if (const Status can = CheckClock(cpu, subject, governor); !can.ok()) part.possible = can;
    }
    if (!part.possible.ok()) return;
    for (const std::string& path : part.paths)
      AddValue(path, governor);
  }

  void PlanQuota(size_t index) {
    const ClassSubject& subject = subjects_[index];
    ClassPart& part = AddPart(index, "quota", "lift", kAfterCreation);
    if (!subject.quota_lifted) {
      part.possible = FailedPrecondition("the policy keeps the container's own CPU quota");
      return;
    }
    if (!CanBeCgroup(subject.cgroup_parent) || !IsPodsOwn(subject.cgroup_parent, subject.pod_uid)) {
      part.possible = FailedPrecondition("the pod has no cgroup of its own: {}",
                                         Printable(subject.cgroup_parent, 256));
      return;
    }
    const std::string path = QuotaPath(subject.cgroup_parent);
    const StatusOr<std::string> now = host_.files().Read(path);
    part.possible = now.ok() ? OkStatus() : now.status();
    part.paths.push_back(path);
    if (now.ok()) AddValue(path, Lifted(path, *now));
  }
  std::string QuotaPath(const std::string& cgroup_parent) {
    std::string parent = SlicePath(cgroup_parent);
    parent.erase(0, parent.find_first_not_of('/'));
    if (Exists(fmt::format("{}/cgroup.controllers", kCgroups)).ok())
      return fmt::format("{}/{}/cpu.max", kCgroups, parent);
    return fmt::format("{}/cpu/{}/cpu.cfs_quota_us", kCgroups, parent);
  }
  static std::string Lifted(std::string_view path, std::string_view now) {
    if (!path.ends_with("cpu.max")) return "-1";
    // The file has "QUOTA PERIOD"; the period stays.
    const std::string_view text = Trim(now);
    const size_t space = text.find(' ');
    return space == std::string_view::npos ? "max" : fmt::format("max{}", text.substr(space));
  }

  // A local partition, below a valid one, needs nothing else. A remote partition needs the CPUs in
  // cpuset.cpus.exclusive of each cgroup above, which then grants them to the container's cgroup.
  void PlanPartition(size_t index) {
    const ClassSubject& subject = subjects_[index];
    const std::string name = PartitionName(subject.chosen.isolation.isolation.partition);
    ClassPart& part = AddPart(index, "partition", name, kBeforeStart);
    if (subject.shares) {
      part.possible = FailedPrecondition(
          "the container has shared CPUs as well, which a partition would take from it");
      return;
    }
    const bool unified = Exists(fmt::format("{}/cgroup.controllers", kCgroups)).ok();
    if (unified && AwaitsCgroup(subject, subject.cgroup)) return;
    if (subject.cgroup.empty()) {
      part.possible = NotFound("the container has no cgroup of version 2");
      return;
    }
    const std::string partition = subject.cgroup + std::string(kPartitionFile);
    if (!IsPartition(subject.cgroup.substr(0, subject.cgroup.rfind('/'))))
      part.possible = PlanRemote(subject, part.paths);
    if (const Status there = Exists(partition); !there.ok()) part.possible = there;
    if (!part.possible.ok()) return;
    for (const std::string& path : part.paths)
      exclusive_[path] |= subject.cpus;
    part.paths.push_back(partition);
    partitions_.push_back({partition, name});
  }
  bool IsPartition(const std::string& cgroup) {
    const StatusOr<std::string> state =
        host_.files().Read(fmt::format("{}{}", cgroup, kPartitionFile));
    return state.ok() && (Trim(*state) == "root" || Trim(*state) == "isolated");
  }
  Status PlanRemote(const ClassSubject& subject, std::vector<std::string>& paths) {
    Status possible;
    for (size_t end = subject.cgroup.find('/', kCgroupsSize + 1);;
         end = subject.cgroup.find('/', end + 1)) {
      const std::string cgroup = subject.cgroup.substr(0, end);
      paths.push_back(cgroup + "/cpuset.cpus.exclusive");
      if (const Status there = Exists(paths.back()); !there.ok()) {
        possible = Annotate(
            there, "a partition needs Linux 6.7, or a cgroup above that is a partition itself");
      }
      if (end == std::string::npos) return possible;
      if (NeedsCpusAbove()) cpus_above_.insert(cgroup + "/cpuset.cpus");
    }
  }
  // Whether cpuset.cpus of the cgroups above must have the CPUs, too, as before Linux 6.11. There
  // this file is mostly empty, which means all CPUs.
  bool NeedsCpusAbove() {
    if (!needs_cpus_above_) needs_cpus_above_ = IsKernelOlderThan(host_.files(), 6, 11);
    return *needs_cpus_above_;
  }
  // Adds the values from the top down; the partition itself comes last.
  void AddPartitions() {
    std::vector<std::string> paths;
    for (const auto& [path, cpus] : exclusive_)
      paths.push_back(path);
    std::ranges::stable_sort(paths, {},
                             [](const std::string& path) { return std::ranges::count(path, '/'); });
    for (const std::string& path : cpus_above_) {
      const StatusOr<std::string> first = host_.ReadFirst(path);
      if (first.ok() && Trim(*first).empty() && !online_.empty())
        AddValue(path, online_.ToString());
    }
    for (const std::string& path : paths) {
      CpuSet cpus = exclusive_[path];
      if (const StatusOr<std::string> first = host_.ReadFirst(path); first.ok()) {
        if (const StatusOr<CpuSet> before = CpuSet::Parse(Trim(*first)); before.ok())
          cpus |= *before;
      }
      AddValue(path, cpus.ToString());
    }
    for (const HostValue& partition : partitions_)
      AddValue(partition.path, partition.text);
  }

  // Checks whether the machine supports the configured classes that no container has at present.
  void PlanConfigured() {
    const Isolation& isolation = config_.isolation;
    const int first = online_.empty() ? 0 : online_.First();
    const auto look = [this](std::string_view kind, std::string name, const std::string& path) {
      const bool used = std::ranges::any_of(plan_.parts, [&](const ClassPart& part) {
        return part.kind == kind && part.name == name;
      });
      if (used) return;
      ClassPart& part = AddPart(ClassPart::kNoSubject, kind, std::move(name), "");
      if (!path.empty()) part.possible = Exists(path);
    };
    if (WantsInterrupts(isolation)) look("interrupts", "isolate", kDefaultAffinity);
    if (WantsWorkqueues(isolation)) look("workqueues", "isolate", kWorkqueues);
    if (!isolation.max_latency.empty())
      look("idle", LatencyName(isolation.max_latency), LatencyPath(first));
    if (!isolation.governor.empty())
      look("clock", isolation.governor, CpuPath(first, "cpufreq/scaling_governor"));
    if (isolation.quota == Isolation::Quota::kLift) look("quota", "lift", "");
    if (isolation.partition != Isolation::Partition::kNone)
      look("partition", PartitionName(isolation.partition),
           fmt::format("{}/cgroup.controllers", kCgroups));
  }

  const std::vector<ClassSubject>& subjects_;
  const ClassesConfig& config_;
  HostKeeper& host_;
  CpuSet online_;
  Status workqueues_;
  std::map<std::string, CpuSet> exclusive_;  // by the cpuset.cpus.exclusive files
  std::set<std::string> cpus_above_;         // cpuset.cpus files of the cgroups above
  std::optional<bool> needs_cpus_above_;
  std::vector<HostValue> partitions_;
  ClassPlan& plan_;
};

class IsolationKind final : public ClassKind {
 public:
  explicit IsolationKind(ClassContext context) : context_(std::move(context)) {}

  Status Choose(const ClassedContainer& container, const ClassesConfig& config,
                ChosenClasses& chosen) const override {
    const bool own_cpus = !container.placement.exclusive.empty();
    StatusOr<IsolationWish> wish = IsolationOf(container.pod, container.name, config);
    if (!wish.ok()) {
      if (own_cpus)
        chosen.isolation = {.isolation = config.isolation, .source = config.isolation_source};
      return wish.status();
    }
    if (!own_cpus) {
      if (wish->affinity.any())
        chosen.AddNote("annotation irq-affinity: the container has no CPUs of its own");
      return OkStatus();
    }
    AddEnvironment(container.placement, *wish);
    chosen.AddNote(wish->note);
    std::ranges::move(AskedIsolation(wish->asked, wish->source), std::back_inserter(chosen.asked));
    chosen.isolation = *std::move(wish);
    return OkStatus();
  }
  void AtCreation(const ChosenClasses& chosen, const ClassesConfig&, bool,
                  Adjustment& adjustment) const override {
    for (const auto& [name, value] : chosen.isolation.environment)
      adjustment.Wide().environment.Set(name, std::string(value));
  }
  // The start waits, since making a partition disturbs threads that already run in the cgroup.
  bool HoldsStart(const ClassSubject& subject, const ClassesConfig&) const override {
    return subject.chosen.isolation.isolation.partition != IsolationConfig::Partition::kNone;
  }
  void Plan(const ClassWork& work, ClassPlan& plan) override {
    if (work.config.absent == ClassesConfig::Absent::kRefuse)
      plan.absent.merge(FindAbsentIsolation(work.host.files()));
    PlanInterrupts(work, known_, plan);
    PlanIsolation(work.subjects, work.config, work.host, plan);
  }
  void Apply(const ClassWork&, ClassPlan&) override { known_.Keep(); }

 private:
  // Sets the environment variables that CRI-O would set.
  void AddEnvironment(const Placement& placement, IsolationWish& wish) const {
    const CpuSet& own = placement.exclusive;
    if (wish.tells_housekeeping) {
      const CpuSet first{own.First()};
      const CpuSet core =
          context_.machine == nullptr ? first : context_.machine->WithSiblings(first) & own;
      wish.environment.Set("OPENSHIFT_HOUSEKEEPING_CPUS", core.ToString());
    }
    if (!wish.tells_shared) return;
    const CpuSet shared = placement.cpus.value_or(own) - own;
    if (shared.empty()) {
      wish.note.append(wish.note.empty() ? "" : "; ")
          .append(fmt::format("annotation {}: the policy gives the container no shared CPUs",
                              kCpuSharedAnnotation));
      return;
    }
    wish.environment.Set("OPENSHIFT_ISOLATED_CPUS", own.ToString());
    wish.environment.Set("OPENSHIFT_SHARED_CPUS", shared.ToString());
  }

  const ClassContext context_;
  KnownInterrupts known_;
};

}  // namespace

void PlanIsolation(const std::vector<ClassSubject>& subjects, const ClassesConfig& config,
                   HostKeeper& host, ClassPlan& plan) {
  IsolationPlanner(subjects, config, host, plan).Plan();
}

std::unique_ptr<ClassKind> MakeIsolationKind(const ClassContext& context) {
  return std::make_unique<IsolationKind>(context);
}

}  // namespace resmgr
