// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_worker.h"

#include <utility>

#include "pkg/base/parse.h"
#include "pkg/classes/partition_steps.h"

namespace resmgr {
namespace {

std::string BootOf(HostFiles& files) {
  const StatusOr<std::string> boot = files.Read("proc/sys/kernel/random/boot_id");
  return boot.ok() ? std::string(Trim(*boot)) : "";
}

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
    journal_.emplace(context_.directory, BootOf(real_files_));
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
  // The plan needs the values of before.
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

}  // namespace resmgr
