// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/isolation_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/classes/cpu_machine.h"
#include "pkg/classes/cpu_mask.h"
#include "pkg/classes/interrupt_plan.h"
#include "pkg/classes/isolation_wish.h"
#include "pkg/kube/annotations.h"
#include "pkg/sys/cgroups.h"
#include "pkg/topology/machine.h"

namespace resmgr {
namespace {

constexpr std::string_view kByCpu = "by CPU";
constexpr std::string_view kAfterCreation = "after creation";
constexpr std::string_view kBeforeStart = "before start";

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
  IsolationPlanner(const ClassWork& work, ClassPlan& plan)
      : subjects_(work.subjects), config_(work.config), host_(work.host), plan_(plan) {}

  void Plan() {
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
  Status Exists(const std::string& path) { return host_.files().Read(path).status(); }
  static bool WantsWorkqueues(const Isolation& isolation) {
    return isolation.workqueues == Isolation::Workqueues::kIsolate;
  }

  void PlanWorkqueues() {
    CpuSet isolated;
    for (const ClassSubject& subject : subjects_)
      if (WantsWorkqueues(subject.chosen.isolation.isolation)) isolated |= subject.cpus;
    if (!isolated.empty()) workqueues_ = AddMaskWithout(isolated);
  }
  Status AddMaskWithout(const CpuSet& isolated) {
    RESMGR_ASSIGN_OR_RETURN(const std::string first, host_.ReadFirst(kWorkqueuesMask));
    RESMGR_ASSIGN_OR_RETURN(std::string mask,
                            MaskWithout(first, isolated, online_, kWorkqueuesMask));
    if (!mask.empty()) AddValue(kWorkqueuesMask, std::move(mask));
    return OkStatus();
  }

  void PlanOne(size_t index) {
    const Isolation& isolation = subjects_[index].chosen.isolation.isolation;
    if (WantsWorkqueues(isolation)) {
      ClassPart& part = AddPart(index, "workqueues", "isolate", kByCpu);
      part.possible = workqueues_;
      part.paths.emplace_back(kWorkqueuesMask);
    }
    if (!isolation.max_latency.empty())
      PlanCpuFiles(AddPart(index, "idle", LatencyName(isolation.max_latency), kByCpu), kLatencyFile,
                   isolation.max_latency);
    if (!isolation.governor.empty())
      PlanCpuFiles(AddPart(index, "clock", isolation.governor, kByCpu), kGovernorFile,
                   isolation.governor);
    if (isolation.quota == Isolation::Quota::kLift) PlanQuota(index);
    // A container without an id has no cgroup yet.
    if (isolation.partition != Isolation::Partition::kNone && !subjects_[index].id.empty())
      PlanPartition(index);
  }

  // OK if the CPU supports this governor, else the reason.
  Status CheckClock(int cpu, const ClassSubject& subject, std::string_view governor) {
    RESMGR_RETURN_IF_ERROR(machine_.CheckListed(cpu, kGovernorsFile, "governor", governor));
    // The kernel lists CPUs that are offline as well.
    CpuSet others = machine_.ClockOf(cpu) - subject.cpus;
    if (!online_.empty()) others &= online_;
    if (others.empty()) return OkStatus();
    return FailedPrecondition(
        "CPU {} has its clock in common with CPU {}, which is not the container's", cpu,
        others.First());
  }
  // Plans this text for the file of each of the container's CPUs.
  void PlanCpuFiles(ClassPart& part, std::string_view file, const std::string& text) {
    const ClassSubject& subject = subjects_[part.subject];
    for (const int cpu : subject.cpus) {
      part.paths.push_back(CpuFile(cpu, file));
      Status can = Exists(part.paths.back());
      if (can.ok() && file == kGovernorFile) can = CheckClock(cpu, subject, text);
      if (!can.ok()) part.possible = std::move(can);
    }
    if (!part.possible.ok()) return;
    for (const std::string& path : part.paths)
      AddValue(path, text);
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
    part.possible = now.status();
    part.paths.push_back(path);
    if (now.ok()) AddValue(path, Lifted(path, *now));
  }
  std::string QuotaPath(const std::string& cgroup_parent) {
    std::string parent = SlicePath(cgroup_parent);
    parent.erase(0, parent.find_first_not_of('/'));
    if (HasCgroupV2(host_.files())) return fmt::format("{}/{}/cpu.max", kCgroupRoot, parent);
    return fmt::format("{}/cpu/{}/cpu.cfs_quota_us", kCgroupRoot, parent);
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
    if (HasCgroupV2(host_.files()) && AwaitsCgroup(subject, subject.cgroup)) return;
    if (subject.cgroup.empty()) {
      part.possible = NotFound("the container has no cgroup of version 2");
      return;
    }
    const std::string partition = subject.cgroup + "/cpuset.cpus.partition";
    if (!IsPartition(host_.files(), subject.cgroup.substr(0, subject.cgroup.rfind('/'))))
      part.possible = PlanRemote(subject, part.paths);
    if (const Status there = Exists(partition); !there.ok()) part.possible = there;
    if (!part.possible.ok()) return;
    for (const std::string& path : part.paths)
      exclusive_[path] |= subject.cpus;
    part.paths.push_back(partition);
    partitions_.push_back({partition, name});
  }
  Status PlanRemote(const ClassSubject& subject, std::vector<std::string>& paths) {
    Status possible;
    for (size_t end = subject.cgroup.find('/', std::string_view(kCgroupRoot).size() + 1);;
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
    const int first = online_.empty() ? 0 : online_.First();
    const std::map<std::string_view, std::string> files = {
        {"interrupts", kNewInterruptsMask},
        {"workqueues", kWorkqueuesMask},
        {"idle", CpuFile(first, kLatencyFile)},
        {"clock", CpuFile(first, kGovernorFile)},
        {"partition", fmt::format("{}/cgroup.controllers", kCgroupRoot)}};
    for (const AskedClass& one : IsolationClasses(config_.isolation, "")) {
      const bool used = std::ranges::any_of(plan_.parts, [&one](const ClassPart& part) {
        return part.kind == one.kind && part.name == one.name;
      });
      if (used) continue;
      ClassPart& part = AddPart(ClassPart::kNoSubject, one.kind, one.name, "");
      if (const auto file = files.find(one.kind); file != files.end())
        part.possible = Exists(file->second);
    }
  }

  const std::vector<ClassSubject>& subjects_;
  const ClassesConfig& config_;
  HostKeeper& host_;
  CpuMachine machine_{host_};
  const CpuSet online_ = OnlineCpus(host_.files());
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
    std::ranges::move(IsolationClasses(wish->asked, wish->source),
                      std::back_inserter(chosen.asked));
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
    PlanIsolation(work, plan);
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

void PlanIsolation(const ClassWork& work, ClassPlan& plan) {
  IsolationPlanner(work, plan).Plan();
}

std::unique_ptr<ClassKind> MakeIsolationKind(const ClassContext& context) {
  return std::make_unique<IsolationKind>(context);
}

}  // namespace resmgr
