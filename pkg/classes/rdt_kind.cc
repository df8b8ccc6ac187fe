// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <sys/types.h>

#include "pkg/base/parse.h"
#include "pkg/classes/class_kind.h"
#include "pkg/classes/container_threads.h"
#include "pkg/classes/kept_texts.h"
#include "pkg/classes/rdt_plan.h"

namespace resmgr {
namespace {

// Limit of rounds for one container: if it keeps starting threads, the next work continues.
constexpr int kMostTaskRounds = 4;

std::set<std::string> Lines(std::string_view text) {
  std::set<std::string> lines;
  for (const std::string_view line : Split(text, '\n'))
    if (!Trim(line).empty()) lines.emplace(Trim(line));
  return lines;
}

struct MovedTasks {
  size_t tasks = 0;  // tasks of the container that are in the group now
  bool moved = false;
};

// Moves the container's tasks into a group.
StatusOr<MovedTasks> MoveTasks(const ClassSubject& subject, const std::string& group,
                               HostFiles& files) {
  const std::string file = RdtGroupFile(group, "tasks");
  MovedTasks all;
  for (int round = 0;; ++round) {
    RESMGR_ASSIGN_OR_RETURN(const std::set<pid_t> threads, ThreadsOfContainer(subject, files));
    RESMGR_ASSIGN_OR_RETURN(const std::set<pid_t> in_group, ReadTasks(file, files));
    bool moved = false;
    for (const pid_t thread : threads) {
      if (in_group.contains(thread)) continue;
      RESMGR_ASSIGN_OR_RETURN(const bool there, MoveTask(thread, file, files));
      moved = moved || there;
    }
    all.moved = all.moved || moved;
    all.tasks = threads.size();
    if (!moved || round + 1 >= kMostTaskRounds) return all;
  }
}

class RdtKind final : public ClassKind {
 public:
  explicit RdtKind(ClassContext context)
      : context_(std::move(context)),
        ways_(context_.directory.empty() ? "" : context_.directory + "/rdt-ways") {}

  Status Choose(const ClassedContainer& container, const ClassesConfig& config,
                ChosenClasses& chosen) const override {
    if (!config.rdt.enable) return OkStatus();
    if (config.rdt.any()) context_.rdt->SetStartedIn(StartsInGroups(config));
    std::vector<KnownClass> known;
    for (const auto& [name, partition] : config.rdt.partitions)
      for (const auto& [class_name, one] : partition.classes)
        known.push_back({.name = class_name,
                         .denies_pod_annotation = one.denies_pod_annotation,
                         .denies_container_annotation = one.denies_container_annotation});
    return AddClass(kRdt, container.Ask(kRdt, config.rdt.default_by_qos), known, config, chosen);
  }

  void AtCreation(const ChosenClasses& chosen, const ClassesConfig& config, bool,
                  Adjustment& adjustment) const override {
    const ClassChoice* const choice = chosen.Find(kRdt);
    if (choice == nullptr) return;
    using Assign = RdtConfig::Assign;
    const std::string group = RdtGroupOf(choice->name, config.rdt);
    // If the runtime creates the container in the group, all its tasks begin there.
    const bool joins = StartsInGroups(config) && context_.rdt->Has(group);
    if (group.empty() || (config.rdt.assign != Assign::kRuntime && !joins)) return;
    adjustment.Wide().rdt_class = group;
  }

  // The start waits if tasks have to be moved: children of a task that begin before its move would
  // stay in their group. If the container's own CPUs have the class, no task is moved.
  bool HoldsStart(const ClassSubject& subject, const ClassesConfig& config) const override {
    using Assign = RdtConfig::Assign;
    if (subject.chosen.Find(kRdt) == nullptr) return false;
    return config.rdt.assign == Assign::kTasks ||
           (config.rdt.assign == Assign::kAuto && !HasOwnRdtCpus(subject, config.rdt));
  }

  void Plan(const ClassWork& work, ClassPlan& plan) override {
    if (work.config.rdt.any()) PlanRdt(work, plan);
  }

  void Apply(const ClassWork& work, ClassPlan& plan) override {
    HostFiles& files = work.host.files();
    ways_.KeepOnly(work.subjects);
    // Containers whose class cannot be applied at the moment: their tasks stay in their groups.
    std::set<size_t> as_they_are;
    for (ClassPart& part : plan.parts) {
      if (part.kind != kRdt || part.subject == ClassPart::kNoSubject) continue;
      if (!part.possible.ok() || !ApplyOne(work, part, files)) as_they_are.insert(part.subject);
    }
    // The ways matter only if the runtime starts containers in groups. If saving fails, `explain`
    // guesses after a restart.
    if (context_.rdt->started_in()) ways_.Save().IgnoreError();
    RdtGroups::Names groups;
    for (const std::string& group : RdtGroupsOf(work.config.rdt))
      if (files.Read(RdtGroupFile(group, "schemata")).ok()) groups.insert(group);
    context_.rdt->Set(std::move(groups));
    if (!work.config.rdt.any()) return;
    GiveTasksBack(work, as_they_are);
    RemoveUnknown(work, plan);
  }

 private:
  // Whether the runtime starts containers in existing groups. On the loop's thread.
  bool StartsInGroups(const ClassesConfig& config) const {
    return config.rdt.assign == RdtConfig::Assign::kAuto && context_.ways().rdt_groups;
  }

  bool ApplyOne(const ClassWork& work, ClassPart& part, HostFiles& files) {
    const ClassSubject& subject = work.subjects[part.subject];
    const std::string group = RdtGroupOf(part.name, work.config.rdt);
    const StatusOr<std::string> masks = files.Read(RdtGroupFile(group, "schemata"));
    // The reason is in the outcome of the group's own values.
    if (!masks.ok()) return false;
    part.in_force = fmt::format("{}", fmt::join(Lines(*masks), " "));
    if (part.way != kRdtByTasks || AwaitsCgroup(subject, CgroupOf(subject))) return true;
    const StatusOr<MovedTasks> all = MoveTasks(subject, group, files);
    part.possible = all.status();
    if (!all.ok()) return false;
    part.in_force += fmt::format(" of {} tasks", all->tasks);
    const bool started_there = context_.rdt->started_in() && !group.empty() && !all->moved;
    if (all->tasks > 0 && WayOf(subject, started_there, ways_) == kAtCreation)
      part.way = kRdtByStart;
    return true;
  }

  // Moves tasks of containers that no longer have the class of their group back into the root
  // group, also if the class ended while no daemon ran.
  static void GiveTasksBack(const ClassWork& work, const std::set<size_t>& as_they_are) {
    const RdtConfig& config = work.config.rdt;
    // With this setting the runtime itself puts tasks into the groups, those of exec included.
    if (config.assign == RdtConfig::Assign::kRuntime) return;
    HostFiles& files = work.host.files();
    // Read before the containers' threads: a thread that begins in between is not in this
    // list, so it is not moved.
    std::map<std::string, std::set<pid_t>> tasks;
    for (const std::string& group : RdtGroupsOf(config)) {
      StatusOr<std::set<pid_t>> found = ReadTasks(RdtGroupFile(group, "tasks"), files);
      if (found.ok() && !found->empty()) tasks.emplace(group, *std::move(found));
    }
    for (size_t i = 0; !tasks.empty() && i < work.subjects.size(); ++i) {
      const ClassSubject& subject = work.subjects[i];
      const ClassChoice* const choice = subject.chosen.Find(kRdt);
      if (choice == nullptr || AwaitsCgroup(subject, CgroupOf(subject))) continue;
      const StatusOr<std::set<pid_t>> threads = ThreadsOfContainer(subject, files);
      if (!threads.ok()) return;
      const std::string own = RdtGroupOf(choice->name, config);
      for (auto& [group, in_group] : tasks) {
        if (group != own && !as_they_are.contains(i)) continue;
        for (const pid_t thread : *threads)
          in_group.erase(thread);
      }
    }
    for (const auto& [group, in_group] : tasks)
      for (const pid_t task : in_group)
        MoveTask(task, RdtGroupFile("", "tasks"), files).status().IgnoreError();
  }

  // Removes groups with this daemon's prefix that the configuration does not have.
  static void RemoveUnknown(const ClassWork& work, ClassPlan& plan) {
    const RdtConfig& config = work.config.rdt;
    HostFiles& files = work.host.files();
    for (const std::string& group : files.List(kResctrlRoot)) {
      if (!group.starts_with(config.prefix)) continue;
      const std::string_view name = std::string_view(group).substr(config.prefix.size());
      const bool known = std::ranges::any_of(config.partitions, [name](const auto& partition) {
        return partition.second.classes.contains(name);
      });
      const StatusOr<std::string> tasks = files.Read(RdtGroupFile(group, "tasks"));
      if (known || !tasks.ok()) continue;
      Status removed;
      if (Trim(*tasks).empty() || config.force) {
        const std::string path = RdtGroupPath(group) + "/.";
        if (const int error = files.Write(path, "\n"); error != 0)
          removed = WriteError(error, path, "");
      } else {
        removed = FailedPrecondition("refusing to remove non-empty resctrl group {}",
                                     Printable(group, 128));
      }
      if (!removed.ok())
        plan.parts.push_back({.kind = kRdt, .name = std::string(name), .possible = removed});
    }
  }

  const ClassContext context_;
  KeptTexts ways_;  // used on the worker's thread only
};

}  // namespace

std::unique_ptr<ClassKind> MakeRdtKind(const ClassContext& context) {
  return std::make_unique<RdtKind>(context);
}

}  // namespace resmgr
