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
  if (!found) return "";
  // A parent may begin or end with slashes.
  std::string path = found->substr(root.size() + 1);
  for (size_t twice = path.find("//"); twice != std::string::npos; twice = path.find("//", twice))
    path.erase(twice, 1);
  return path;
}

ClassReport ClassWorker::Run(std::vector<ClassSubject> subjects,
                             const std::vector<ClassPool>& pools, const ClassesConfig& config) {
  for (ClassSubject& subject : subjects)
    if (!subject.id.empty()) subject.cgroup = CgroupOf(subject.cgroup_parent, subject.id);
  if (!journal_) {
    journal_.emplace(directory_, BootOf(files_));
    keeper_.emplace(files_, *journal_);
  }
  ClassPlan plan;
  const Status opened = journal_->Open();
  const ClassWork work{.subjects = subjects, .pools = pools, .config = config, .host = *keeper_};
  if (!subjects.empty() || !pools.empty() || config.any()) {
    for (const auto& kind : kinds_)
      kind->Plan(work, plan);
  }
  // The plan needs the values of before.
  if (!opened.ok()) {
    plan.values.clear();
    for (ClassPart& part : plan.parts)
      part.possible = opened;
  }
  const HostKeeper::Result result = keeper_->Keep(plan.values);
  if (result.journal.ok()) {
    for (const auto& kind : kinds_)
      kind->Apply(work, plan);
  }
  ClassReport report = MakeReport(plan, subjects, result);
  for (const auto& [path, entry] : journal_->entries())
    report.held.emplace(path, Trim(entry.first));
  report.damage = journal_->damage();
  return report;
}

}  // namespace resmgr
