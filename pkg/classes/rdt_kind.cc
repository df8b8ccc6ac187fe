// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/rdt_kind.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/classes/rdt_machine.h"
#include "pkg/classes/rdt_plan.h"

namespace resmgr {
namespace {

// A container that starts threads all the time is looked at again the next time.
constexpr int kMostRounds = 4;

// The file with the ids of the container's threads; "": it has no cgroup.
std::string ThreadsFile(const ClassSubject& subject) {
  if (!subject.cgroup.empty()) return subject.cgroup + "/cgroup.threads";
  return subject.cgroup_v1.empty() ? "" : subject.cgroup_v1 + "/tasks";
}

std::set<std::string> Lines(std::string_view text) {
  std::set<std::string> lines;
  for (const std::string_view line : Split(text, '\n'))
    if (!Trim(line).empty()) lines.emplace(Trim(line));
  return lines;
}

// Moves tasks into groups.
class TaskMover {
 public:
  explicit TaskMover(HostFiles& files) : files_(files) {}

  // The number of the tasks that are in the group then.
  StatusOr<size_t> Move(const std::string& threads_file, const std::string& group) {
    const std::string tasks =
        group.empty() ? fmt::format("{}/tasks", kResctrlRoot) : RdtGroupFile(group, "tasks");
    for (int round = 0;; ++round) {
      RESMGR_ASSIGN_OR_RETURN(const std::string text, files_.Read(threads_file));
      RESMGR_ASSIGN_OR_RETURN(const std::string now, files_.Read(tasks));
      const std::set<std::string> in_group = Lines(now);
      const std::set<std::string> threads = Lines(text);
      // A thread outside of this process's PID namespace. Written, it would be this thread itself.
      if (threads.contains("0"))
        return FailedPrecondition(
            "{} has threads that this daemon cannot see: it needs the host's "
            "PID namespace",
            threads_file);
      bool moved = false;
      for (const std::string& thread : threads) {
        if (in_group.contains(thread)) continue;
        const int error = files_.Write(tasks, thread);
        if (error == ESRCH) continue;  // it has ended meanwhile
        if (error != 0) return RefusedTask(error, tasks, thread);
        moved = true;
      }
      if (!moved || round + 1 >= kMostRounds) return threads.size();
    }
  }

 private:
  Status RefusedTask(int error, const std::string& tasks, const std::string& thread) {
    Status plain = WriteError(error, tasks, thread);
    const StatusOr<std::string> told =
        files_.Read(fmt::format("{}/info/last_cmd_status", kResctrlRoot));
    if (!told.ok() || Trim(*told) == "ok") return plain;
    return MakeStatus(plain.code(),
                      fmt::format("{} ({})", Message(plain), Printable(Trim(*told), 256)));
  }

  HostFiles& files_;
};

class RdtKind final : public ClassKind {
 public:
  Status Choose(const ClassedContainer& container, const ClassesConfig& config,
                ChosenClasses& chosen) const override {
    if (!config.rdt.any()) return OkStatus();
    std::vector<KnownClass> known;
    for (const auto& [name, partition] : config.rdt.partitions)
      for (const auto& [class_name, one] : partition.classes)
        known.push_back({.name = class_name,
                         .denies_pod_annotation = one.denies_pod_annotation,
                         .denies_container_annotation = one.denies_container_annotation});
    const ClassQuestion question = container.Ask(kRdt, config.rdt.default_by_qos);
    StatusOr<ClassChoice> choice = ChooseClass(kRdt, question, known, config);
    const Status status = choice.status();
    if (!status.ok()) {
      Pod bare;
      bare.qos = container.pod.qos;
      const StringMap none;
      choice = ChooseClass(kRdt,
                           {.pod = bare,
                            .container = question.container,
                            .annotations = none,
                            .pool = question.pool,
                            .class_of_pool = question.class_of_pool,
                            .by_qos = question.by_qos},
                           known, config);
    }
    if (!choice.ok()) return status;
    chosen.AddNote(choice->note);
    if (!choice->name.empty()) chosen.by_name.insert_or_assign(std::string(kRdt), *choice);
    return status;
  }

  void AtCreation(const ChosenClasses& chosen, const ClassesConfig& config, bool,
                  Adjustment& adjustment) const override {
    const ClassChoice* const choice = chosen.Find(kRdt);
    if (choice == nullptr || config.rdt.assign != RdtConfig::Assign::kRuntime) return;
    const std::string group = RdtGroupOf(choice->name, config.rdt);
    if (!group.empty()) adjustment.Wide().rdt_class = group;
  }

  // Processes that a task has started before it is moved stay where they were. No task is moved
  // where the container's own CPUs have the class.
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
    std::map<std::string, Moved> moved;
    for (ClassPart& part : plan.parts) {
      if (part.kind != kRdt || part.subject == ClassPart::kNoSubject) continue;
      const ClassSubject& subject = work.subjects[part.subject];
      // A class that cannot be given at the moment is not taken away, either.
      const auto before = moved_.find(subject.id);
      const auto keep = [&] {
        if (before != moved_.end()) moved.insert(*before);
      };
      if (!part.possible.ok()) {
        keep();
        continue;
      }
      const std::string group = RdtGroupOf(part.name, work.config.rdt);
      const StatusOr<std::string> masks = files.Read(
          group.empty() ? std::string(kResctrlSchemata) : RdtGroupFile(group, "schemata"));
      // The outcome of the group's values has the reason.
      if (!masks.ok()) {
        keep();
        continue;
      }
      part.in_force = InForce(*masks);
      if (part.way != kRdtByTasks || subject.id.empty()) continue;
      const std::string threads = ThreadsFile(subject);
      const StatusOr<size_t> count =
          threads.empty() ? StatusOr<size_t>(NotFound("the container has no cgroup yet"))
                          : TaskMover(files).Move(threads, group);
      if (!count.ok()) {
        part.possible = count.status();
        keep();
        continue;
      }
      part.in_force += fmt::format(" of {} tasks", *count);
      moved.emplace(subject.id, Moved{threads, group});
    }
    GiveTasksBack(moved, files);
    if (work.config.rdt.any()) RemoveUnknown(work, plan);
  }

 private:
  struct Moved {
    std::string threads;
    std::string group;
  };

  static std::string InForce(std::string_view masks) {
    std::string text;
    for (const std::string& line : Lines(masks))
      text.append(text.empty() ? "" : " ").append(line);
    return text;
  }

  // Containers that have no class any more, and live on.
  void GiveTasksBack(std::map<std::string, Moved>& moved, HostFiles& files) {
    for (const auto& [id, before] : moved_)
      if (!moved.contains(id) && !before.group.empty())
        TaskMover(files).Move(before.threads, "").IgnoreError();
    moved_ = std::move(moved);
  }

  // Groups with our prefix that the configuration does not have.
  static void RemoveUnknown(const ClassWork& work, ClassPlan& plan) {
    const RdtConfig& config = work.config.rdt;
    HostFiles& files = work.host.files();
    for (const std::string& group : files.List(std::string(kResctrlRoot))) {
      if (!group.starts_with(config.prefix)) continue;
      const std::string_view name = std::string_view(group).substr(config.prefix.size());
      const bool known = std::ranges::any_of(config.partitions, [name](const auto& partition) {
        return partition.second.classes.contains(name);
      });
      const StatusOr<std::string> tasks = files.Read(RdtGroupFile(group, "tasks"));
      if (known || !tasks.ok()) continue;
      const std::string path = RdtGroupPath(group) + "/.";
      if (!Trim(*tasks).empty() && !config.force) {
        plan.parts.push_back(
            {.kind = kRdt,
             .name = std::string(name),
             .possible = FailedPrecondition("refusing to remove non-empty resctrl group {}",
                                            Printable(group, 128))});
        continue;
      }
      if (const int error = files.Write(path, "\n"); error != 0) {
        plan.parts.push_back(
            {.kind = kRdt, .name = std::string(name), .possible = WriteError(error, path, "")});
      }
    }
  }

  std::map<std::string, Moved> moved_;  // by the container's id
};

}  // namespace

std::unique_ptr<ClassKind> MakeRdtKind() {
  return std::make_unique<RdtKind>();
}

}  // namespace resmgr
