// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/scheduling_kind.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/classes/class_kind.h"
#include "pkg/classes/container_threads.h"
#include "pkg/classes/kept_texts.h"

namespace resmgr {
namespace {

constexpr std::string_view kScheduling = "scheduling";
using SchedPolicy = SchedulerSettings::Policy;

// Whether a kernel may refuse these settings. If the runtime set them, the container could not
// start.
bool IsRisky(const SchedulerSettings& scheduler) {
  return scheduler.policy == SchedPolicy::kFifo || scheduler.policy == SchedPolicy::kRoundRobin ||
         scheduler.policy == SchedPolicy::kDeadline || scheduler.nice < 0;
}

bool SetsThreads(const SchedulingClassConfig& config) {
  return config.scheduler.policy != SchedPolicy::kNone ||
         config.io_priority.io_class != IoPriority::Class::kNone;
}

// Names a thread and the settings that it got. Numbers of threads begin anew with each boot.
std::string AppliedText(pid_t thread, const SchedulingClassConfig& config, HostFiles& files) {
  return fmt::format("{} {} {}", ReadText(files, "proc/sys/kernel/random/boot_id"), thread,
                     ShownSettings(config));
}

class SchedulingKind final : public ClassKind {
 public:
  SchedulingKind(ClassContext context, std::unique_ptr<ThreadAttributes> threads)
      : context_(std::move(context)),
        threads_(std::move(threads)),
        kept_(context_.directory.empty() ? "" : context_.directory + "/scheduling") {}

  Status Choose(const ClassedContainer& container, const ClassesConfig& config,
                ChosenClasses& chosen) const override {
    std::vector<KnownClass> known;
    for (const SchedulingClassConfig& one : config.scheduling.classes)
      known.push_back({.name = one.name});
    return AddClass(kScheduling, container.Ask(kScheduling), known, config, chosen);
  }
  void AtCreation(const ChosenClasses& chosen, const ClassesConfig& config, bool,
                  Adjustment& adjustment) const override {
    const SchedulingClassConfig* const found = ClassOf(chosen, config);
    if (found == nullptr) return;
    const CreationWays ways = context_.ways();
    const SchedulerSettings& scheduler = found->scheduler;
    if (ways.scheduler && scheduler.policy != SchedPolicy::kNone && !IsRisky(scheduler))
      adjustment.Wide().scheduler = scheduler;
    if (ways.io_priority && found->io_priority.io_class != IoPriority::Class::kNone &&
        found->io_priority.io_class != IoPriority::Class::kRealTime)
      adjustment.Wide().io_priority = found->io_priority;
  }
  bool HoldsStart(const ClassSubject& subject, const ClassesConfig& config) const override {
    const SchedulingClassConfig* const found = ClassOf(subject.chosen, config);
    return found != nullptr && SetsThreads(*found) && context_.ways().holds_starts;
  }
  void Plan(const ClassWork& work, ClassPlan& plan) override;
  void Apply(const ClassWork& work, ClassPlan& plan) override;

 private:
  using Applied = std::pair<SchedulerSettings, IoPriority>;

  static const SchedulingClassConfig* ClassOf(const ChosenClasses& chosen,
                                              const ClassesConfig& config) {
    const ClassChoice* const choice = chosen.Find(kScheduling);
    return choice == nullptr ? nullptr : config.scheduling.Find(choice->name);
  }
  std::string CgroupOf(const ClassSubject& subject) const {
    if (unified_) return subject.cgroup;
    return FindSubjectCgroup(context_.host_root, "cpu", subject.cgroup_parent, subject.id);
  }
  void PlanBurst(const std::string& cgroup, int64_t percent, int64_t coming, HostFiles& files,
                 ClassPart& part, ClassPlan& plan) const;
  bool WasApplied(const std::string& id, const std::string& cgroup,
                  const SchedulingClassConfig& config, HostFiles& files);
  void ApplyOne(const ClassSubject& subject, const SchedulingClassConfig& config, HostFiles& files,
                ClassPart& part);

  const ClassContext context_;
  // Used on the worker's thread only.
  const std::unique_ptr<ThreadAttributes> threads_;
  bool unified_ = false;
  KeptTexts ways_;
  std::map<std::string, Applied, std::less<>> applied_;  // by container id
  // AppliedText of the containers, for the next process.
  KeptTexts kept_;
  // Containers whose threads the kernel refused some settings: for them, the first thread does not
  // show the settings of all.
  std::set<std::string, std::less<>> refused_;
};

// Reads the quota from the cgroup, since the runtime may have set another one than decided, and the
// kernel refuses a burst above the quota.
void SchedulingKind::PlanBurst(const std::string& cgroup, int64_t percent, int64_t coming,
                               HostFiles& files, ClassPart& part, ClassPlan& plan) const {
  const std::string path =
      fmt::format("{}/{}", cgroup, unified_ ? "cpu.max.burst" : "cpu.cfs_burst_us");
  const StatusOr<std::string> text =
      files.Read(fmt::format("{}/{}", cgroup, unified_ ? "cpu.max" : "cpu.cfs_quota_us"));
  const StatusOr<int64_t> quota = text.ok() ? ParseQuota(*text) : text.status();
  if (!quota.ok()) {
    part.possible = quota.status();
    return;
  }
  // The kernel also refuses to lower the quota below the burst, so the burst comes down first.
  const int64_t lower = coming > 0 && *quota > 0 ? std::min(coming, *quota) : *quota;
  const std::optional<int64_t> burst = BurstOf(lower, percent);
  if (!burst) {
    part.note = "the container has no CPU limit, so there is no burst";
    return;
  }
  if (const Status there = files.Read(path).status(); !there.ok()) {
    part.possible = there;
    return;
  }
  part.paths.push_back(path);
  plan.Add({.path = path, .text = fmt::format("{}", *burst)});
}

void SchedulingKind::Plan(const ClassWork& work, ClassPlan& plan) {
  ways_.KeepOnly(work.subjects);
  kept_.KeepOnly(work.subjects);
  const auto is_gone = [&work](const std::string& id) {
    return std::ranges::find(work.subjects, id, &ClassSubject::id) == work.subjects.end();
  };
  std::erase_if(applied_, [&is_gone](const auto& one) { return is_gone(one.first); });
  std::erase_if(refused_, is_gone);
  if (!work.config.scheduling.any()) return;
  HostFiles& files = work.host.files();
  unified_ = HasCgroupV2(files);
  for (const SchedulingClassConfig& one : work.config.scheduling.classes)
    plan.parts.push_back({.kind = kScheduling, .name = one.name});
  for (size_t i = 0; i < work.subjects.size(); ++i) {
    const ClassSubject& subject = work.subjects[i];
    const ClassChoice* const choice = subject.chosen.Find(kScheduling);
    if (choice == nullptr) continue;
    ClassPart part{
        .subject = i, .kind = kScheduling, .name = choice->name, .source = choice->source};
    const SchedulingClassConfig* const found = ClassOf(subject.chosen, work.config);
    const std::string cgroup = CgroupOf(subject);
    if (found == nullptr) {
      part.possible = NotFound("there is no class \"{}\" of scheduling", Printable(part.name, 64));
    } else if (AwaitsCgroup(subject, cgroup)) {
      part.way = "before start";
    } else if (cgroup.empty()) {
      part.possible = NotFound("the container has no cgroup");
    } else {
      const auto now = ReadThreads(cgroup, unified_, *found, files, *threads_);
      const std::string wanted = ShownSettings(*found);
      part.way = WayOf(subject, SetsThreads(*found) && now == wanted, ways_);
      if (found->burst_percent)
        PlanBurst(cgroup, *found->burst_percent, subject.coming_quota, files, part, plan);
    }
    plan.parts.push_back(std::move(part));
  }
}

// Whether an earlier process gave a thread of the container these settings. The thread still runs,
// so the container's program has not been started again.
bool SchedulingKind::WasApplied(const std::string& id, const std::string& cgroup,
                                const SchedulingClassConfig& config, HostFiles& files) {
  const std::string* const kept = kept_.Find(id);
  return kept != nullptr &&
         std::ranges::any_of(ThreadsOf(cgroup, unified_, files), [&](const pid_t thread) {
           return *kept == AppliedText(thread, config, files);
         });
}

void SchedulingKind::ApplyOne(const ClassSubject& subject, const SchedulingClassConfig& config,
                              HostFiles& files, ClassPart& part) {
  const std::string cgroup = CgroupOf(subject);
  const std::optional<std::string> now = ReadThreads(cgroup, unified_, config, files, *threads_);
  if (!now) {
    part.possible = NotFound("the container has no threads that this daemon can see");
    return;
  }
  part.in_force = *now;
  const Applied wanted(config.scheduler, config.io_priority);
  const auto applied = applied_.find(subject.id);
  if (applied != applied_.end() && applied->second == wanted) {
    refused_.erase(subject.id);
    return;
  }
  const bool done =
      applied == applied_.end() && !refused_.contains(subject.id) &&
      (*now == ShownSettings(config) || WasApplied(subject.id, cgroup, config, files));
  if (!done) {
    const ThreadsOutcome outcome = SetThreads(cgroup, unified_, config, files, *threads_);
    part.in_force = outcome.in_force;
    if (!outcome.scheduler.ok() || !outcome.io.ok()) {
      part.possible = outcome.scheduler.ok() ? outcome.io : outcome.scheduler;
      refused_.insert(subject.id);
      kept_.Set(subject.id, "");
      return;
    }
  }
  refused_.erase(subject.id);
  applied_.insert_or_assign(subject.id, wanted);
  const std::set<pid_t> threads = ThreadsOf(cgroup, unified_, files);
  if (!threads.empty()) kept_.Set(subject.id, AppliedText(*threads.begin(), config, files));
}

void SchedulingKind::Apply(const ClassWork& work, ClassPlan& plan) {
  HostFiles& files = work.host.files();
  for (ClassPart& part : plan.parts) {
    if (part.kind != kScheduling || part.subject == ClassPart::kNoSubject) continue;
    const ClassSubject& subject = work.subjects[part.subject];
    const SchedulingClassConfig* const found = ClassOf(subject.chosen, work.config);
    if (found == nullptr || !SetsThreads(*found) || AwaitsCgroup(subject, CgroupOf(subject)) ||
        !part.possible.ok())
      continue;
    ApplyOne(subject, *found, files, part);
    // `in_force` replaces the values of the files in the report, so it must name the burst, too.
    for (const std::string& path : part.paths) {
      const StatusOr<std::string> burst = files.Read(path);
      if (burst.ok()) part.in_force += fmt::format(", burst {}us", Printable(Trim(*burst), 32));
    }
  }
  // If saving fails, the next process sets the threads again.
  kept_.Save().IgnoreError();
}

}  // namespace

std::unique_ptr<ClassKind> MakeSchedulingKind(const ClassContext& context) {
  return MakeSchedulingKind(context, std::make_unique<KernelThreadAttributes>());
}

std::unique_ptr<ClassKind> MakeSchedulingKind(const ClassContext& context,
                                              std::unique_ptr<ThreadAttributes> threads) {
  return std::make_unique<SchedulingKind>(context, std::move(threads));
}

std::optional<int64_t> BurstOf(int64_t quota, int64_t percent) {
  constexpr int64_t kWhole = 100;
  if (quota <= 0) return std::nullopt;
  if (percent >= kWhole) return quota;
  // In two parts to avoid an overflow.
  return quota / kWhole * percent + quota % kWhole * percent / kWhole;
}

StatusOr<int64_t> ParseQuota(std::string_view text) {
  const std::string_view trimmed = Trim(text);
  const std::string_view quota = trimmed.substr(0, trimmed.find(' '));
  if (quota == "max") return -1;
  const std::optional<int64_t> number = ParseInt(quota);
  if (number && *number >= -1) return *number;
  return InvalidArgument("\"{}\" is no CPU quota", Printable(trimmed, 64));
}

}  // namespace resmgr
