// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_worker.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "pkg/base/amount_text.h"
#include "pkg/classes/partition_steps.h"

namespace resmgr {
namespace {

constexpr size_t kMostNamed = 5;

Status NotLookedAt(std::string_view kind, std::string_view name, std::string_view source) {
  return Unavailable("{}: it is not known yet whether the machine has what {} {} needs", source,
                     kind, name);
}

Status Lacks(std::string_view kind, std::string_view name, std::string_view source,
             std::string_view reason) {
  return FailedPrecondition("{}: the machine lacks {} {}: {}", source, kind, name, reason);
}

class Reporter {
 public:
  Reporter(const ClassPlan& plan, const std::vector<ClassSubject>& subjects,
           const HostKeeper::Result& result)
      : plan_(plan), subjects_(subjects), result_(result) {}

  ClassReport Report() {
    ClassReport report;
    std::map<std::pair<std::string, std::string>, ClassState> classes;
    std::set<std::pair<std::string, std::string>> lacking;
    for (const ClassPart& part : plan_.parts) {
      ContainerClass outcome = OutcomeOf(part);
      const std::pair key(std::string(part.kind), part.name);
      const bool lacks = part.possible.code() == StatusCode::kNotFound;
      ClassState& known = classes[key];
      known.kind = part.kind;
      known.name = part.name;
      if (known.active && (!outcome.active || known.reason.empty())) known.reason = outcome.reason;
      known.active = known.active && outcome.active;
      if (part.subject == ClassPart::kNoSubject) {
        known.absent = lacks;
        // The reason why the machine lacks the class is more useful than why a container or a pool
        // failed.
        if (lacks && lacking.insert(key).second) known.reason = outcome.reason;
        continue;
      }
      if (lacks) lacking.insert(key);
      const ClassSubject& subject = subjects_[part.subject];
      known.containers.push_back(subject.container);
      if (!outcome.active) known.without.push_back(subject.container);
      if (!subject.id.empty()) report.containers[subject.id].push_back(std::move(outcome));
    }
    for (auto& [key, known] : classes)
      report.classes.push_back(std::move(known));
    report.absent = plan_.absent;
    report.not_given_back = result_.not_given_back;
    report.waiting = result_.waiting;
    report.notes = result_.notes;
    if (!result_.journal.ok()) report.journal = Message(result_.journal);
    return report;
  }

 private:
  ContainerClass OutcomeOf(const ClassPart& part) const {
    ContainerClass outcome{.kind = std::string(part.kind),
                           .name = part.name,
                           .source = part.source,
                           .way = std::string(part.way),
                           .in_force = part.in_force,
                           .active = part.possible.ok(),
                           .reason = part.note};
    if (!outcome.active) {
      outcome.reason = Message(part.possible);
      return outcome;
    }
    std::vector<std::string> managed;
    std::vector<std::string> values;
    size_t moved = 0;
    for (const std::string& path : part.paths) {
      const auto found = result_.outcomes.find(path);
      if (found == result_.outcomes.end()) continue;
      const HostOutcome& one = found->second;
      const auto interrupt = plan_.interrupts.find(path);
      const bool is_interrupt = interrupt != plan_.interrupts.end();
      if (one.status.ok()) {
        if (is_interrupt) ++moved;
        std::string line = HostValueLine(one.in_force);
        if (std::ranges::find(values, line) == values.end()) values.push_back(std::move(line));
      } else if (is_interrupt && IsManaged(one.error)) {
        managed.push_back(interrupt->second);
      } else if (is_interrupt && one.status.code() == StatusCode::kNotFound) {
        continue;  // the interrupt has gone since it was listed
      } else if (outcome.active) {
        outcome.active = false;
        outcome.reason = Message(one.status);
      }
    }
    if (part.kind == "interrupts") {
      outcome.in_force =
          fmt::format("{} moved", CountText(static_cast<int64_t>(moved), "interrupt"));
      if (outcome.active && !managed.empty())
        outcome.reason.append(outcome.reason.empty() ? "" : "; ")
            .append("the kernel does not let these be moved: ")
            .append(NamesText(managed));
    } else if (part.in_force.empty()) {
      outcome.in_force = NamesText(values);
    }
    return outcome;
  }

  const ClassPlan& plan_;
  const std::vector<ClassSubject>& subjects_;
  const HostKeeper::Result& result_;
};

}  // namespace

ClassWorker::ClassWorker(ClassContext context)
    : context_(std::move(context)), real_files_(context_.host_root, [this](std::string_view path) {
        const std::lock_guard lock(mutex_);
        in_hand_ = path;
      }) {}

std::string ClassWorker::in_hand() const {
  const std::lock_guard lock(mutex_);
  return in_hand_;
}

Status ClassWorker::Prepare(std::vector<ClassSubject>& subjects) {
  for (ClassSubject& subject : subjects) {
    if (subject.id.empty()) continue;
    subject.cgroup = FindSubjectCgroup(context_.host_root, "", subject.cgroup_parent, subject.id);
    subject.cgroup_v1 =
        FindSubjectCgroup(context_.host_root, "cpuset", subject.cgroup_parent, subject.id);
  }
  if (!journal_) {
    journal_.emplace(context_.directory, ReadText(real_files_, "proc/sys/kernel/random/boot_id"));
    keeper_.emplace(files_, *journal_);
  }
  return journal_->Open();
}

ClassPlan ClassWorker::MakePlan(const ClassWork& work) {
  ClassPlan plan;
  if (!work.subjects.empty() || !work.pools.empty() || work.config.any()) {
    for (const auto& kind : kinds_)
      kind->Plan(work, plan);
  }
  return plan;
}

StatusOr<std::vector<HostDifference>> ClassWorker::Compare(std::vector<ClassSubject> subjects,
                                                           const std::vector<ClassPool>& pools,
                                                           const ClassesConfig& config) {
  RESMGR_RETURN_IF_ERROR(Prepare(subjects));
  const ClassPlan plan =
      MakePlan({.subjects = subjects, .pools = pools, .config = config, .host = *keeper_});
  return keeper_->Compare(plan.values);
}

ClassReport ClassWorker::Run(std::vector<ClassSubject> subjects,
                             const std::vector<ClassPool>& pools, const ClassesConfig& config) {
  const Status opened = Prepare(subjects);
  const ClassWork work{.subjects = subjects, .pools = pools, .config = config, .host = *keeper_};
  ClassPlan plan = MakePlan(work);
  // Without the journal, the values to restore later are unknown, so nothing is written.
  if (!opened.ok()) {
    plan.values.clear();
    for (ClassPart& part : plan.parts)
      part.possible = opened;
  }
  const HostKeeper::Result result = KeepInSteps(plan.values, *keeper_);
  if (result.journal.ok()) {
    for (const auto& kind : kinds_)
      kind->Apply(work, plan);
  }
  ClassReport report = MakeReport(plan, subjects, result);
  for (const auto& [path, entry] : journal_->entries())
    report.held.emplace(path, HostValueLine(entry.first));
  report.damage = journal_->damage();
  return report;
}

std::string NamesText(const std::vector<std::string>& names) {
  return FirstOf(names, kMostNamed);
}

std::string ClassState::Why() const {
  if (without.empty() || without.size() == containers.size()) return reason;
  return fmt::format("{}: {}", NamesText(without), reason);
}

ClassReport MakeReport(const ClassPlan& plan, const std::vector<ClassSubject>& subjects,
                       const HostKeeper::Result& result) {
  return Reporter(plan, subjects, result).Report();
}

Status CheckPresent(const ClassReport* report, const ChosenClasses& chosen) {
  for (const auto& [kind, choice] : chosen.by_name) {
    if (!choice.by_pod) continue;
    if (report == nullptr) return NotLookedAt(kind, choice.name, choice.source);
    for (const ClassState& one : report->classes) {
      if (one.kind != kind || one.name != choice.name || one.active || !one.absent) continue;
      return Lacks(kind, one.name, choice.source, one.reason);
    }
  }
  for (const AskedClass& asked : chosen.asked) {
    if (report == nullptr) return NotLookedAt(asked.kind, asked.name, asked.source);
    const auto absent = report->absent.find(asked.kind);
    if (absent == report->absent.end()) continue;
    const std::vector<std::string>& but = absent->second.but;
    if (std::ranges::find(but, asked.name) == but.end())
      return Lacks(asked.kind, asked.name, asked.source, absent->second.reason);
  }
  return OkStatus();
}

}  // namespace resmgr
