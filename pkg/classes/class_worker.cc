// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_worker.h"

#include <utility>

#include "pkg/base/parse.h"
#include "pkg/sys/container_cgroup.h"

namespace resmgr {
namespace {

std::string BootOf(HostFiles& files) {
  const StatusOr<std::string> boot = files.Read("proc/sys/kernel/random/boot_id");
  return boot.ok() ? std::string(Trim(*boot)) : "";
}

}  // namespace

ClassWorker::ClassWorker(std::string_view host_root, std::string directory)
    : host_root_(host_root),
      directory_(std::move(directory)),
      files_(host_root, [this](std::string_view path) {
        const std::lock_guard lock(mutex_);
        in_hand_ = path;
      }) {}

std::string ClassWorker::in_hand() const {
  const std::lock_guard lock(mutex_);
  return in_hand_;
}

std::string ClassWorker::CgroupOf(const std::string& cgroup_parent, const std::string& id) const {
  constexpr std::string_view kMount = "/sys/fs/cgroup";
  std::string_view root = host_root_;
  while (root.ends_with('/'))
    root.remove_suffix(1);
  const std::string mount = fmt::format("{}{}", root, kMount);
  if (!CheckCgroupNames(cgroup_parent, id).ok() || !IsUnifiedMount(mount)) return "";
  const auto found = FindContainerCgroup(mount, "", cgroup_parent, id);
  return found ? found->substr(root.size() + 1) : "";
}

ClassReport ClassWorker::Run(std::vector<IsolationSubject> subjects,
                             const std::vector<MemoryClassSubject>& memory,
                             const ClassesConfig& config) {
  for (IsolationSubject& subject : subjects) {
    if (subject.wish.isolation.partition != IsolationConfig::Partition::kNone &&
        !subject.id.empty())
      subject.cgroup = CgroupOf(subject.cgroup_parent, subject.id);
  }
  if (!journal_) {
    journal_.emplace(directory_, BootOf(files_));
    keeper_.emplace(files_, *journal_);
  }
  IsolationPlan plan;
  const Status opened = journal_->Open();
  if (!subjects.empty() || config.any()) plan = PlanIsolation(subjects, config, *keeper_);
  // The plan needs the values of before.
  if (!opened.ok()) {
    plan.values.clear();
    for (IsolationPart& part : plan.parts)
      part.possible = opened;
  }
  ClassReport report = MakeReport(plan, subjects, keeper_->Keep(plan.values));
  const auto read = [this](const MemoryClassSubject& subject,
                           const std::string& file) -> StatusOr<std::string> {
    const std::string cgroup = CgroupOf(subject.cgroup_parent, subject.id);
    if (cgroup.empty()) return NotFound("the container has no cgroup");
    return files_.Read(fmt::format("{}/{}", cgroup, file));
  };
  const bool unified = files_.Read("sys/fs/cgroup/cgroup.controllers").ok();
  AddMemoryClasses(memory, config, unified, read, report);
  for (const auto& [path, entry] : journal_->entries())
    report.held.emplace(path, Trim(entry.first));
  report.damage = journal_->damage();
  return report;
}

}  // namespace resmgr
